"""How the threads of a worker wait for each other, with the real torch and its libgomp."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pytest

from rlnb.machine import threads
from rlnb.machine.threads import Spent
from rlnb.worker.openmp import waited_share

PROGRAM = """
import json, os, sys, threading, time
from pathlib import Path
from rlnb.worker import openmp

waits = openmp.Waits(openmp.load()) if sys.argv[1:] else openmp.manage_waits()
import torch

values = torch.ones(200_000).add_(1.0)  # an operation of all threads

def ran_ms():
    found = {}
    for thread in set(os.listdir("/proc/self/task")) - {str(os.getpid())}:
        try:
            found[thread] = int(Path("/proc/self/task", thread, "schedstat").read_text().split()[0]) / 1e6
        except OSError:  # it has ended
            pass
    return found

def second_thread_ms():
    before = ran_ms()
    for _ in range(100):
        values.add_(1.0)
        end = time.perf_counter() + 0.002
        while time.perf_counter() < end:
            pass
    return max((after - before.get(thread, 0.0) for thread, after in ran_ms().items()), default=0.0) / 100

for line in sys.stdin:
    if line.strip():
        for share in json.loads(line):
            waits.see(share)
    variables = {name: os.environ.get(name) for name in ("GOMP_SPINCOUNT", "KMP_BLOCKTIME")}
    names = [thread.name for thread in threading.enumerate()]
    print(json.dumps([second_thread_ms(), torch.get_num_threads(), variables, "waits of OpenMP" in names]), flush=True)
"""
"""Takes the samples of each line, and answers with the CPU time of the second thread between two
operations, 2 ms apart, in ms."""
SPINS_MS = 0.25
"""A thread that spins takes 2 ms on an idle machine, less than half of that beside others; one that sleeps, 0.03."""


class Answer(NamedTuple):
    """What the program answers."""

    ran_ms: float
    threads: int
    variables: dict[str, str | None]
    is_watched: bool

    @property
    def spins(self) -> bool:
        return self.ran_ms > SPINS_MS


Ask = Callable[..., Answer]
Start = Callable[..., Ask]

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores of Linux"
)


@pytest.fixture
def start() -> Iterator[Start]:
    """Start the program on two cores, with further variables and arguments."""
    started = []

    def begin(variables: Mapping[str, str], *argv: str) -> Ask:
        env = {name: value for name, value in os.environ.items() if name not in (threads.OMP_THREADS, *threads.BY_USER)}
        cores = sorted(os.sched_getaffinity(0))[:2]
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"import os; os.sched_setaffinity(0, {cores})\n{PROGRAM}", *argv],
            env={**env, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)

        def ask(*samples: float) -> Answer:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{json.dumps(samples) if samples else ''}\n")
            process.stdin.flush()
            return Answer(*json.loads(process.stdout.readline()))

        return ask

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_threads_sleep_while_they_lack_cores_and_spin_otherwise(start: Start) -> None:
    ask = start({}, "samples")
    assert ask().spins, "as without rlnb"
    assert ask(0.02, 0.2, 0.02).spins, "a core is missing for a moment, as ever"
    assert not ask(0.4).spins
    assert not ask(*[0.1] * 9, 0.0, 0.04, 0.0).spins, "the machine is not idle for long enough"
    assert ask(0.0).spins
    assert not ask(0.4).spins, "it was not idle"
    assert not ask(*[0.0] * 3).spins, "so it takes twice as long"
    assert ask(0.0).spins
    assert not ask(*[0.02] * 3, 0.4).spins, "it was idle for a while"
    assert ask(*[0.0] * 2).spins


def test_the_thread_that_lacks_a_core_most_says_that_the_machine_is_busy() -> None:
    spent = [Spent(0.99, 0.01)] * 15 + [Spent(0.5, 0.5), Spent(0.001, 0.0)]
    assert waited_share(spent) == pytest.approx(0.5)
    assert waited_share([Spent(0.3, 0.0), Spent(0.1, 0.06)]) == pytest.approx(0.2)
    assert waited_share([Spent(0.01, 0.05)]) == 0.0, "hardly a thread was ready to run"
    assert waited_share([]) == 0.0


def test_threads_sleep_beside_busy_processes(start: Start) -> None:
    ask = start({})
    assert ask()[1:] == (2, dict(threads.SHORT), True), "the processes that a worker starts get short waits"
    code = f"import os; os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[:2]})\nwhile True: pass"
    busy = [subprocess.Popen([sys.executable, "-c", code], start_new_session=True) for _ in range(2)]
    try:
        deadline = time.monotonic() + 20.0
        while ask().spins:
            assert time.monotonic() < deadline
        assert ask().threads == 2, "their number, and thus the order of sums, is the same"
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("variables", "spins"),
    [
        ({"OMP_WAIT_POLICY": "PASSIVE"}, False),
        ({"GOMP_SPINCOUNT": "100"}, False),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, True),
    ],
)
def test_threads_wait_as_the_user_says(start: Start, variables: dict[str, str], spins: bool) -> None:
    ask = start(variables)
    assert ask().spins == spins
    assert ask().variables == {"GOMP_SPINCOUNT": variables.get("GOMP_SPINCOUNT"), "KMP_BLOCKTIME": None}
    assert not ask().is_watched


def test_threads_of_a_part_of_the_cores_soon_sleep(start: Start) -> None:
    assert start({"OMP_NUM_THREADS": "1"})()[1:] == (1, dict(threads.SHORT), False)
