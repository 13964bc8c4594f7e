"""A training that is stopped saves a checkpoint first: no iteration that it has logged is lost."""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.launchers import LocalLauncher

WAIT_S, START_S = 30.0, 120.0
SLOW = {"iteration_s": 0.03}
LIBRARIES = ("rsl_rl", "rl_games", "skrl", "sb3")


def until(condition: Callable[[], object], timeout_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"the condition does not hold after {timeout_s} s"
        time.sleep(0.02)


def running(**arguments: object) -> rlnb.Run:
    """Return an echo run that has logged something."""
    settings: dict[str, object] = {"library": "echo", "max_iterations": 1000, "agent": SLOW, **arguments}
    run = rlnb.train("Echo", **settings)  # type: ignore[arg-type]
    until(lambda: run.state == "running")
    return run


def processes_of(run: rlnb.Run) -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if str(run.path) in " ".join(process.info["cmdline"] or ())]


def check_nothing_is_lost(run: rlnb.Run, more: int, metric: str = "reward") -> None:
    """Compare the newest checkpoint with the last logged iteration, and resume."""
    last = run.metrics[metric].iterations[-1]
    assert run.checkpoints.iterations[-1] == last
    assert run.result is not None
    assert run.result.checkpoint == str(run.checkpoints[-1].relative_to(run.path))
    total = int(last) + 1 + more
    run.resume(max_iterations=total).wait(START_S)
    assert run.started is not None
    assert run.started.first_iteration == last + 1
    assert run.progress == (total, total)
    assert run.metrics[metric].iterations == [*range(total)]


@pytest.mark.parametrize("seed", range(3))
def test_a_cancelled_training_loses_no_iteration(root: Path, seed: int) -> None:
    run = running()
    time.sleep(random.Random(seed).uniform(0.0, 0.5))
    run.cancel()
    assert run.wait(WAIT_S).state == "cancelled"
    check_nothing_is_lost(run, more=5)


def test_a_training_past_its_walltime_loses_no_iteration(root: Path) -> None:
    run = running(launcher=LocalLauncher(walltime_s=1.5))
    until(lambda: run.state == "timeout")
    assert run.result is not None
    assert run.result.error == "stopped after its walltime of 2 s"
    assert run.checkpoints.iterations[-1] == run.metrics["reward"].iterations[-1]


def test_a_training_whose_agent_gets_a_signal_loses_no_iteration(root: Path) -> None:
    run = running()
    handle = run.jobs[0].handle
    assert handle is not None
    os.kill(int(handle["pid"]), signal.SIGTERM)  # type: ignore[arg-type]
    until(lambda: run.state == "cancelled")
    check_nothing_is_lost(run, more=5)


def test_a_training_that_is_cancelled_without_saving_ends_at_once(root: Path) -> None:
    run = running(agent={"iteration_s": 0.5})
    run.cancel(save_s=0)
    assert run.wait(WAIT_S).state == "cancelled"
    assert not run.checkpoints, "the first is due after five iterations"
    assert not (run.path / "jobs" / "0-train" / "stop.json").exists()


def test_a_training_that_hangs_is_ended_after_its_time_to_save(root: Path) -> None:
    run = running(agent={"hang_at": 2})
    begin_s = time.monotonic()
    run.cancel(save_s=1.0)
    assert run.wait(WAIT_S).state == "cancelled"
    assert 0.9 < time.monotonic() - begin_s < 10.0
    until(lambda: not processes_of(run), 5.0)  # the agent writes the result and ends a moment later


@pytest.mark.parametrize("save_s", [-1, float("nan"), float("inf"), True, "5"])
def test_an_odd_time_to_save_is_refused(root: Path, save_s: object) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(WAIT_S)
    with pytest.raises(rlnb.RlnbError, match="is not a number of seconds"):
        run.cancel(save_s=save_s)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.isaaclab
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed")
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_cancelled_training_of_a_real_library_loses_no_iteration(root: Path, library: str) -> None:
    run = rlnb.train("Isaac-Cartpole-Direct", library=library, num_envs=16, device="cpu", max_iterations=2000)
    until(lambda: run.state == "running", START_S)
    time.sleep(1.0)
    run.cancel()
    assert run.wait(WAIT_S).state == "cancelled"
    check_nothing_is_lost(run, more=3, metric="fps")
