"""The processes of a run, as the conformance kit finds and kills them."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.testing.runs import lives, processes_of, until


def test_a_condition_that_does_not_come_is_named() -> None:
    with pytest.raises(AssertionError, match="the second checkpoint has not come within 0 s"):
        until(lambda: False, 0.01, "the second checkpoint")


def test_the_processes_of_a_run_are_its_agent_and_its_worker(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1000, agent={"iteration_s": 0.1})
    until(lambda: run.state == "running", 60.0, "the start of the run")
    agent, *below = processes_of(run)
    assert "rlnb.node" in agent.cmdline()
    assert below
    assert all(lives(process) for process in (agent, *below))
    below[-1].kill()
    until(lambda: run.state == "failed", 30.0, "the end of the killed run")
    assert not lives(below[-1])


def test_a_process_that_is_gone_does_not_live() -> None:
    done = psutil.Popen(["true"])
    done.wait()
    assert not lives(done)
