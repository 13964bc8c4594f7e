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
from importlib.util import find_spec
from pathlib import Path

from rlnb.machine import cores, schedstat, threads

SAMPLE_S = 0.5
"""Time between two counts, each of which takes half a millisecond."""
BUSY = 0.1
"""Share of the time that they are ready to run, in which threads that spin have no core on a busy machine. Measured on
2 cores: 0.005 to 0.03 alone, 0.35 and more beside one busy process."""
IDLE = 0.02
"""The same share of threads that do not spin, on a machine that is idle again. Measured on 2 cores: 0.01 and less
alone, 0.09 and more beside one busy process."""
CALM_SAMPLES = 4
"""Samples in a row below ``IDLE`` after which threads spin again."""


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
    before = schedstat.spent([os.getpid()])
    while True:
        time.sleep(SAMPLE_S)
        now = schedstat.spent([os.getpid()])
        waits.see(schedstat.since(before, now))
        before = now


class Waits:
    """Decides how threads wait for each other."""

    def __init__(self, libgomp: ctypes.CDLL) -> None:
        self._libgomp = libgomp
        self._team: _Team | None = None
        self._calm = 0

    @property
    def asleep(self) -> bool:
        """Whether threads sleep while they wait for others of their team."""
        return self._team is not None

    def see(self, spent: schedstat.Spent) -> None:
        """Take a sample into account: what the threads of this process have done since the last one."""
        share = spent.waited_s / (sum(spent) or 1.0)
        self._calm = self._calm + 1 if share < IDLE else 0
        if self._team is None and share > BUSY:
            self._team = _Team(self._libgomp)
        elif self._team is not None and self._calm >= CALM_SAMPLES:
            self._team.end()
            self._team = None


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
