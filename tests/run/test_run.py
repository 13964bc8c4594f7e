"""The verbs of a run: wait, resume, evaluate, export."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import rlnb

WAIT_S = 60.0


SLOW = {"iteration_s": 0.1}


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


def echo(**arguments: object) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **arguments)  # type: ignore[arg-type]


def test_a_run_that_was_extended_is_resumed_to_where_it_was_to_end(root: Path) -> None:
    run = echo(max_iterations=5, agent={"iteration_s": 0.05}).wait(WAIT_S)
    run.resume(max_iterations=100)
    until(lambda: run.progress[0] > 10)
    run.cancel()
    until(lambda: run.state == "cancelled")
    run.resume().wait(WAIT_S)
    assert run.progress == (100, 100)
    assert run.metrics["reward"].iterations == list(range(100))
