"""How torch's threads wait for each other in a worker: by spinning on an idle machine, asleep on a busy one.

In libgomp, the OpenMP library that comes with torch's packages for Linux, a thread that waits for the others of its
team first spins for some milliseconds. That is fastest on an idle machine. On a busy one, it takes the core from the
very thread that it waits for. There are variables for this, but they hold from the start of a process to its end.

libgomp hardly spins while it has more threads than there are cores: see ``do_spin`` in ``config/linux/wait.h``, and
``gomp_managed_threads`` in ``team.c``. So while threads of this process wait for cores, a second team is kept, of two
threads that sleep. The team with which torch computes keeps its threads, and thereby the order of every sum.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from rlnb.machine import cores, threads

SAMPLE_S = 0.5
"""Time between two counts, each of which takes half a millisecond."""
BUSY = 0.25
"""Share of the time without a core from which on the machine is busy, of threads that spin. Measured on 2 cores: 0.02
alone and 0.18 for a moment, 0.4 beside one busy process."""
IDLE = 0.02
"""The same share of threads that do not spin, on a machine that is idle again. Measured on 2 cores: 0.004 alone, 0.06
and more beside one busy process."""
CALM_SAMPLES = 2
"""Samples in a row below ``IDLE`` after which threads spin again. If the machine turns out to be busy as soon as they
do, as it may where there are many cores, the next time takes twice as many."""
MOST_CALM_SAMPLES = 128
LITTLE_S = 0.1
"""A thread that was ready to run for less than this says nothing about the machine."""


def manage_waits() -> None:
    """Let the threads of this process wait as suits the machine. Call it before torch is imported.

    Does nothing if the user's variables say how threads wait. Where torch has no libgomp of its own, or the job has
    fewer threads than there are cores, threads spin for a short time only (:data:`rlnb.machine.threads.SHORT`), as
    they do in the processes that this one starts.
    """
    short = threads.short_waits(os.environ)
    if not short:
        return
    libgomp = load() if threads.of_openmp() >= cores.bound() > 1 else None
    os.environ.update(short)
    if libgomp is not None:
        threading.Thread(target=_watch, args=(Waits(libgomp),), daemon=True, name="waits of OpenMP").start()


def load() -> ctypes.CDLL | None:
    """Load the libgomp of torch, which reads its variables meanwhile."""
    torch = find_spec("torch")
    path = torch and torch.origin and Path(torch.origin).parent / "lib" / "libgomp.so.1"
    if not path or not path.exists():
        return None
    libgomp = ctypes.CDLL(str(path))
    return libgomp if hasattr(libgomp, "GOMP_parallel") else None


def _watch(waits: Waits) -> None:
    before, before_s = threads.spent([os.getpid()]), time.monotonic()
    while True:
        time.sleep(SAMPLE_S)
        now, now_s = threads.spent([os.getpid()]), time.monotonic()
        if now_s - before_s < 2 * SAMPLE_S:  # else this process was stopped for a while
            waits.see(waited_share(threads.spent_since(before, now).values()))
        before, before_s = now, now_s


def waited_share(threads: Iterable[threads.Spent]) -> float:
    """Return the longest time for which one of several threads had no core.

    It is a share of the longest time for which one was ready to run, which is nearly all of the time in a training.
    """
    spent = list(threads)
    ready_s = max(map(sum, spent), default=0.0)
    return max(one.waited_s for one in spent) / ready_s if ready_s > LITTLE_S else 0.0


class Waits:
    """Decides how threads wait for each other."""

    def __init__(self, libgomp: ctypes.CDLL) -> None:
        self._libgomp = libgomp
        self._team: _Team | None = None
        self._calm = self._spinning = 0
        self._patience = CALM_SAMPLES

    @property
    def asleep(self) -> bool:
        """Whether threads sleep while they wait for others of their team."""
        return self._team is not None

    def see(self, share: float) -> None:
        """Take a sample into account: the share of the time in which a thread had no core."""
        if self._team is None:
            self._spinning += 1
            if share > BUSY:
                again = self._calm > 0 and self._spinning <= CALM_SAMPLES
                self._patience = min(2 * self._patience, MOST_CALM_SAMPLES) if again else CALM_SAMPLES
                self._team, self._calm = _Team(self._libgomp), 0
            return
        self._calm = self._calm + 1 if share < IDLE else 0
        if self._calm >= self._patience:
            self._team.end()
            self._team, self._spinning = None, 0


class _Team:
    """A team of two OpenMP threads that sleep until :meth:`end`."""

    def __init__(self, libgomp: ctypes.CDLL) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, args=(libgomp,), daemon=True, name="second team of OpenMP")
        self._thread.start()

    def _keep(self, libgomp: ctypes.CDLL) -> None:
        nothing = ctypes.cast(libgomp.omp_get_thread_num, ctypes.c_void_p)  # what each of the two threads calls
        libgomp.GOMP_parallel(nothing, None, ctypes.c_uint(2), ctypes.c_uint(0))
        self._ended.wait()

    def end(self) -> None:
        """End the team: libgomp ends the threads of a thread that has ended."""
        self._ended.set()
        self._thread.join()
