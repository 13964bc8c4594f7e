"""Faults in a run's processes, disk and files. All tests use real processes.

Most tests run twice: with the echo library, and in `make test-all` with RSL-RL in Isaac Lab.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

import rlnb
from rlnb.launchers import LocalLauncher
from rlnb.storage import files

SLOW = {"iteration_s": 0.1}
LONG = 300
CANCEL_BOUND_S = 5.0
LOST_BOUND_S = 12.0


def until(condition: Callable[[], object], timeout_s: float = 20.0) -> float:
    """Wait until a condition holds; return the seconds that it took."""
    start_s = time.monotonic()
    while not condition():
        assert time.monotonic() - start_s < timeout_s, f"the condition does not hold after {timeout_s} s"
        time.sleep(0.02)
    return time.monotonic() - start_s


@dataclass(frozen=True)
class Subject:
    """A training, and a time limit for its start."""

    task: str
    library: str
    start_s: float
    arguments: dict[str, Any] = field(default_factory=dict)

    def train(self, max_iterations: int) -> rlnb.Run:
        return rlnb.train(self.task, library=self.library, max_iterations=max_iterations, **self.arguments)

    def running(self) -> rlnb.Run:
        """Start a long run and return it once it has logged something."""
        run = self.train(LONG)
        until(lambda: run.state == "running", self.start_s)
        return run

    def trained(self) -> rlnb.Run:
        return self.train(20).wait(timeout_s=self.start_s)


ECHO = Subject("Echo", "echo", 20.0, {"agent": SLOW})
ISAACLAB = Subject(
    "Isaac-Cartpole-Direct",
    "rsl_rl",
    300.0,
    {"num_envs": 16, "device": "cpu", "agent": {"save_interval": 5}},
)


@pytest.fixture(
    params=[
        pytest.param(ECHO, id="echo"),
        pytest.param(
            ISAACLAB,
            id="isaaclab",
            marks=[
                pytest.mark.isaaclab,
                pytest.mark.slow,
                pytest.mark.timeout(600),
                pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed"),
            ],
        ),
    ]
)
def subject(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Subject:
    """The training under test: of the fast library, or of the real one."""
    if request.param is ISAACLAB:
        from rlnb.worker.assets.packs import build

        monkeypatch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    return request.param  # type: ignore[no-any-return]


def running_echo(**agent: object) -> rlnb.Run:
    """Start a long echo run and return it once it has logged something."""
    return Subject("Echo", "echo", 20.0, {"agent": {**SLOW, **agent}}).running()


def processes_of(run: rlnb.Run) -> list[psutil.Process]:
    """Return every process of a run: its agent and all descendants of the agent."""
    handle = run.jobs[-1].handle
    assert handle is not None
    agent = psutil.Process(handle["pid"])
    return [agent, *agent.children(recursive=True)]


def gone(processes: list[psutil.Process]) -> bool:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                return False
    return True


@pytest.mark.parametrize("stubborn", [{}, {"ignore_sigterm": True}, {"fork": True}])
def test_cancel_leaves_no_process_within_the_bound(root: Path, stubborn: dict[str, object]) -> None:
    run = running_echo(**stubborn)
    processes = processes_of(run)
    run.cancel()
    assert until(lambda: gone(processes)) < CANCEL_BOUND_S
    assert run.state == "cancelled"
    assert run.checkpoints or run.progress[0] < 5


def test_cancel_ends_a_run_and_keeps_its_checkpoints(root: Path, subject: Subject) -> None:
    run = subject.running()
    until(lambda: run.checkpoints)
    processes = processes_of(run)
    run.cancel()
    assert until(lambda: gone(processes)) < CANCEL_BOUND_S
    assert run.state == "cancelled"
    assert run.checkpoints


def test_a_queued_run_can_be_cancelled(root: Path) -> None:
    first = running_echo()
    second = rlnb.train("Echo", library="echo")
    assert second.state == "queued"
    second.cancel()
    until(lambda: second.state == "cancelled")
    assert first.state == "running"
    first.cancel()
    until(lambda: first.state == "cancelled")


def test_a_killed_rank_fails_the_run_and_the_error_names_log_and_next_call(root: Path, subject: Subject) -> None:
    run = subject.running()
    processes_of(run)[1].kill()
    with pytest.raises(rlnb.RunError, match="SIGKILL") as error:
        run.wait(timeout_s=20)
    assert "node0.log" in str(error.value)
    assert "get_run(" in str(error.value)
    assert run.state == "failed"


def test_a_killed_agent_ends_its_ranks_and_the_run_is_lost(root: Path, subject: Subject) -> None:
    run = subject.running()
    agent, *ranks = processes_of(run)
    agent.kill()
    until(lambda: gone(ranks))
    assert until(lambda: run.state == "lost") < LOST_BOUND_S
    with pytest.raises(rlnb.RunError, match="lost"):
        run.wait()


def test_a_crash_shows_its_traceback(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", agent={"crash_at": 3})
    with pytest.raises(rlnb.RunError, match="echo crashes at iteration 3") as error:
        run.wait(timeout_s=20)
    assert "Traceback" in str(error.value)


def test_a_run_outlives_its_killed_kernel_and_is_found_again(root: Path, subject: Subject) -> None:
    code = (
        "import rlnb, sys, time\n"
        "rlnb.options.warm = False\n"
        f"run = rlnb.train({subject.task!r}, library={subject.library!r}, max_iterations=40, **{subject.arguments!r})\n"
        "sys.stdout.write(run.id + '\\n'); sys.stdout.flush()\n"
        "time.sleep(600)\n"
    )
    environment = {**os.environ, "RLNB_ROOT": str(root)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment) as kernel:
        assert kernel.stdout is not None
        name = kernel.stdout.readline().strip()
        kernel.send_signal(signal.SIGKILL)
    run = rlnb.get_run(name)
    run.wait(timeout_s=subject.start_s)
    assert run.progress == (40, 40)


def test_resume_after_a_kill_continues_from_the_last_checkpoint_with_one_curve(root: Path, subject: Subject) -> None:
    run = subject.running()
    until(lambda: run.progress[0] > 12, subject.start_s)
    processes_of(run)[1].kill()
    until(lambda: run.state == "failed")
    last = int(run.checkpoints[-1].stem.removeprefix("model_"))
    run.resume(max_iterations=last + 10)
    run.wait(timeout_s=subject.start_s)
    assert run.metrics["fps"].iterations == list(range(last + 10))
    assert run.started is not None
    assert run.started.first_iteration == last + 1


def test_a_torn_event_file_keeps_its_earlier_points(root: Path, subject: Subject) -> None:
    run = subject.trained()
    events = next(run.path.glob("logs/*tfevents*"))
    content = events.read_bytes()
    events.write_bytes(content[: len(content) // 2])
    torn = rlnb.get_run(run.id)
    assert 0 < len(torn.metrics["reward"]) < 20
    assert torn.state == "completed"


@pytest.mark.parametrize("name", ["started.json", "result.json", "handle.json"])
def test_a_half_written_record_does_not_hang_or_crash_the_listing(root: Path, name: str) -> None:
    run = rlnb.train("Echo", library="echo")
    run.wait(timeout_s=20)
    record = run.path / "jobs" / "0-train" / name
    record.write_bytes(record.read_bytes()[:20])
    assert len(rlnb.runs()) == 1
    assert rlnb.runs()[0].state in ("completed", "lost")
    assert repr(rlnb.runs()[0])


def test_a_half_written_manifest_is_named_and_hides_no_other_run(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    good = rlnb.train("Echo", library="echo").wait(timeout_s=20)
    bad = rlnb.train("Echo", library="echo").wait(timeout_s=20)
    (bad.path / "manifest.json").write_text('{"run_id": "x"')
    assert [run.id for run in rlnb.runs()] == [good.id]
    assert "manifest.json is damaged" in caplog.text


def test_a_full_disk_is_refused_before_anything_is_written(root: Path, small_disk: Callable[[int], Path]) -> None:
    disk = rlnb.options.root = small_disk(1024)
    with pytest.raises(rlnb.CheckError, match="is full"):
        rlnb.train("Echo", library="echo")
    assert list(disk.iterdir()) == []


def test_a_disk_that_fills_up_ends_the_run_with_a_result(
    root: Path, small_disk: Callable[[int], Path], subject: Subject
) -> None:
    disk = rlnb.options.root = small_disk(60 * 1024)
    run = subject.running()
    with contextlib.suppress(OSError), open(disk / "filler", "wb") as filler:
        while True:
            filler.write(b"\0" * 65536)
    until(lambda: run.state == "failed", subject.start_s)
    assert files.read_json(run.path / "jobs" / "0-train" / "result.json")
    with pytest.raises(rlnb.RunError, match="No space left"):
        run.wait()


def test_a_run_past_its_walltime_is_stopped(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=LONG, agent=SLOW, launcher=LocalLauncher(walltime_s=1.5))
    until(lambda: run.state == "timeout")
    with pytest.raises(rlnb.RunError, match="walltime"):
        run.wait()


def test_a_logged_scalar_is_readable_within_a_second(root: Path) -> None:
    run = running_echo()
    delays = []
    seen = len(run.metrics["reward"])
    while len(delays) < 10:
        points = run.metrics["reward"].points
        if len(points) > seen:
            delays.append(time.time() - points[-1][1])
            seen = len(points)
        time.sleep(0.02)
    run.cancel()
    until(lambda: run.state == "cancelled")
    *others, worst = sorted(delays)
    assert max(others) < 1.0
    assert worst < 10.0, "a busy machine may delay one point"
