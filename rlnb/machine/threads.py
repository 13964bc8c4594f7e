"""The threads with which the processes of a job compute: how many each has, and how they wait for each other.

By default, OpenMP starts a thread for each core that a process can run on, and a thread that waits for the others keeps
its core busy for a long time before it sleeps. Beside other processes, the threads of a training then wait in this way
for one that has lost its core. Here each process gets its share of the cores that the job may use. Workers let their
threads wait as suits the machine (``rlnb/worker/openmp.py``), and those of other programs soon sleep.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from rlnb.machine.cores import available, bound

OMP_THREADS = "OMP_NUM_THREADS"
"""Variable with the threads of each process, which torch and NumPy read."""
THREADS_REASON = "RLNB_THREADS"
"""Variable in which rlnb says why it has set the number."""
SHORT: Mapping[str, str] = {"GOMP_SPINCOUNT": "3000", "KMP_BLOCKTIME": "1"}
"""Short waits, for the OpenMP libraries of GCC, with which torch comes, and of LLVM: a hundredth of the 300,000 turns
of a loop, and of the 200 ms, that are usual. With 1,000 turns, a training on an idle machine was 15 % slower. With
10,000 turns, one beside a busy process was a fifth slower. The value for LLVM has not been measured.
"""
BY_USER = (*SHORT, "OMP_WAIT_POLICY")
"""Variables with which a user says how threads wait."""


def variables(environ: Mapping[str, str], *, ranks: int = 1, at_once: int = 1) -> dict[str, str]:
    """Return the variables with the number of threads that the processes of a job need in addition to its environment.
    The user's own take precedence.

    Args:
        environ: Environment of the job.
        ranks: Processes of the job on this machine.
        at_once: Jobs that may run on this machine at the same time.
    """
    if environ.get(OMP_THREADS):
        return {}
    cores = available(environ)
    number = cores.each(ranks * at_once)
    if ranks == 1 and number >= bound():
        return {}  # which is what OpenMP takes by itself
    shares = [f" for {ranks} ranks"] * (ranks > 1) + [f" for {at_once} trainings at once"] * (at_once > 1)
    return {OMP_THREADS: str(number), THREADS_REASON: "".join([cores.why, *shares])}


def short_waits(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which threads soon sleep, unless the user's own say how they wait."""
    return {} if any(name in environ for name in BY_USER) else dict(SHORT)


def of_openmp(environ: Mapping[str, str] = os.environ) -> int:
    """Return how many threads OpenMP starts in a process with this environment."""
    said = environ.get(OMP_THREADS, "")
    return int(said) if said.isdecimal() else bound()


def of_user(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of threads that the user has set."""
    return {name: environ[name] for name in (OMP_THREADS, *BY_USER) if environ.get(name)}


def reason(number: int, environ: Mapping[str, str] = os.environ) -> str:
    """Return why this process computes with this number of threads."""
    if number != of_openmp(environ):
        return "the library's or the task's own choice"
    said = environ.get(OMP_THREADS)
    return environ.get(THREADS_REASON) or (f"{OMP_THREADS}={said}" if said else available(environ).why)


# -- times on a core, and without one --------------------------------------------------------------------------------
# Linux counts them in ``/proc/<pid>/task/<tid>/schedstat``. The first number is the time that the thread has spent on a
# core, the second one the time on a run queue, in nanoseconds; see "Scheduler Statistics" in the kernel's
# documentation. A time in which a CPU quota is used up counts as time on a run queue.


class Spent(NamedTuple):
    """What a thread has done while it was ready to run, in seconds."""

    ran_s: float
    """On a core."""
    waited_s: float
    """Without a core."""


ThreadTimes = Mapping[tuple[int, int], Spent]
"""Times by the numbers of the process and the thread."""


def spent(pids: Iterable[int]) -> ThreadTimes:
    """Return the times of each thread; empty where they are not counted.

    Args:
        pids: Processes; those that have ended are left out.
    """
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):
                with contextlib.suppress(OSError, IndexError, ValueError):
                    ran, waited, *_ = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
                    found[pid, thread] = Spent(int(ran) / 1e9, int(waited) / 1e9)
    return found


def spent_since(before: ThreadTimes, now: ThreadTimes) -> ThreadTimes:
    """Return what each thread has done between two counts. One that is new counts from the next one on."""
    return {
        thread: Spent(times.ran_s - before[thread].ran_s, times.waited_s - before[thread].waited_s)
        for thread, times in now.items()
        if thread in before
    }
