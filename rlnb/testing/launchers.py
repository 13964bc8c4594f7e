"""The contract of a launcher, as tests that a plugin's author runs with pytest::

    from rlnb.testing import LauncherConformance

    class TestMyLauncher(LauncherConformance):
        launcher = "my_launcher"

The tests start jobs of the library echo (``rlnb-echo``), which needs no simulator, through the launcher, and check the
states of their runs. They take about a quarter of a minute, plus the time that the launcher needs to start jobs.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.spec import Json

RETURN_S = 10.0
"""Seconds within which ``train`` must return, even if the job waits in a queue."""
ALIVE_S = 0.1
"""Seconds within which ``alive`` must answer, in most of several looks."""
LOOKS = 11
"""Number of looks."""
LONG = 1000
"""Iterations of a training that outlasts the test."""
SHORT = 5
"""Iterations of a training that completes within the test."""
WAITING_S = 2.0
"""Seconds after which a second job must still be queued."""
ENDED = {"completed", "failed", "cancelled", "timeout", "lost"}
"""States of a run that has ended."""
OTHER_PROCESS = "import sys, rlnb; rlnb.options.root = sys.argv[1]; print(rlnb.get_run(sys.argv[2]).state)"
NO_PROCESS = "No process of the run was seen. Run these tests where the nodes are, or override processes and kill."


def here(run: rlnb.Run) -> list[psutil.Process]:
    """Return the processes of a run on this machine."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(run.id in word for word in process.info["cmdline"] or ())
    ]


class LauncherConformance:
    """Tests that every launcher must pass. Subclass it as ``Test...`` and set :attr:`launcher`."""

    launcher: str
    """Name of the launcher under test, which ``rlnb.<name>(...)`` makes."""
    settings: Mapping[str, Any] = {}
    """Arguments of a launcher that can start jobs where the tests run."""
    one_at_a_time: Mapping[str, Any] | None = None
    """Further arguments with which a second job waits for the first; None skips the test of the queue."""
    cut_short: Mapping[str, Any] | None = None
    """Further arguments with which a job is stopped after some seconds, as by a walltime; None skips that test."""
    start_s: float = 90.0
    """Seconds that a job may take to start."""
    end_s: float = 20.0
    """Seconds within which all processes of a cancelled job must end."""
    lost_s: float = 90.0
    """Seconds within which a job with killed agents must be reported as lost, at the latest by its heartbeat."""

    @pytest.fixture
    def root(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """Provide a folder for runs and a separate queue. At the end, cancel every run that still goes on."""
        monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
        monkeypatch.setattr(rlnb.options, "root", tmp_path)
        monkeypatch.setattr(rlnb.options, "warm", False)
        yield tmp_path
        for run in rlnb.runs():
            run.cancel()
        self.until(lambda: not any(self.processes(run) for run in rlnb.runs()), self.end_s)

    @classmethod
    def make(cls, **further: Any) -> Any:
        """Return the launcher under test.

        Args:
            further: Arguments in addition to :attr:`settings`.
        """
        return getattr(rlnb, cls.launcher)(**{**cls.settings, **further})

    @classmethod
    def train(cls, iterations: int = LONG, *, agent: Mapping[str, Json] | None = None, **further: Any) -> rlnb.Run:
        """Start a training through the launcher, with a tenth of a second per iteration.

        Args:
            iterations: Number of iterations.
            agent: Agent config values of the library echo.
            further: Further arguments of the launcher.
        """
        return rlnb.train(
            "Echo",
            library="echo",
            max_iterations=iterations,
            agent={"iteration_s": 0.1, **(agent or {})},
            launcher=cls.make(**further),
        )

    def running(self, run: rlnb.Run) -> rlnb.Run:
        """Wait until a training runs, and return its run."""
        self.until(lambda: run.state in {"running", *ENDED}, self.start_s)
        assert run.state == "running", run.logs()
        return run

    @staticmethod
    def until(fact: Callable[[], object], within_s: float) -> None:
        """Wait until a condition holds.

        Args:
            fact: Function that returns whether the condition holds.
            within_s: Seconds after which the test fails.
        """
        deadline = time.monotonic() + within_s
        while not fact():
            assert time.monotonic() < deadline, f"the condition did not hold within {within_s:g} s"
            time.sleep(0.1)

    def processes(self, run: rlnb.Run) -> Sequence[object]:
        """Return the processes of a run on the machine where it runs. Override this for another machine than this one.

        A test that expects processes fails if there are none, so it cannot pass because it looks on the wrong machine.
        """
        return here(run)

    def kill(self, run: rlnb.Run) -> None:
        """Kill the agents of a run (``python -m rlnb.node``) with SIGKILL, on the machine where they run."""
        for process in here(run):
            with contextlib.suppress(psutil.NoSuchProcess):  # the process ended with its agent
                if "rlnb.node" in process.info["cmdline"]:
                    process.kill()

    # -- registration

    def test_an_equal_launcher_is_made_from_name_and_settings(self) -> None:
        """The settings are JSON, and a launcher with the same settings starts the later jobs of a run."""
        launcher = self.make()
        assert launcher.name == self.launcher
        copy = getattr(rlnb, self.launcher)(**json.loads(json.dumps(dict(launcher.settings))))
        assert dict(copy.settings) == dict(launcher.settings)
        assert launcher.nodes >= 1
        assert plugins.load(plugins.launcher(self.launcher).factory)().name == self.launcher, "without arguments too"

    def test_a_request_that_would_fail_is_refused_before_anything_is_written(self, root: Path) -> None:
        """All problems are reported at once, with a fix."""
        with pytest.raises(rlnb.CheckError, match="num_envs=-1") as raised:
            rlnb.train("Echo", library="echo", num_envs=-1, max_iterations=1, launcher=self.make())
        assert "fix:" in str(raised.value)
        assert not rlnb.runs()

    # -- a job

    def test_a_run_completes_resumes_and_is_evaluated(self, root: Path) -> None:
        """A run has its log and its progress, can be trained further, and can be evaluated."""
        run = self.train(SHORT).wait(self.start_s)
        assert (run.state, run.progress) == ("completed", (SHORT, SHORT))
        assert run.manifest.launcher == self.launcher
        assert f"iteration {SHORT - 1} of {SHORT}" in run.logs()
        launcher = self.make()
        world = launcher.nodes * (run.manifest.resources.nproc_per_node or 1)
        assert run.started is not None
        assert run.started.world_size == world
        run.resume(max_iterations=2 * SHORT).wait(self.start_s)
        assert run.progress == (2 * SHORT, 2 * SHORT)
        assert run.evaluate(episodes=4).episodes >= 4

    def test_a_job_starts_in_the_background_and_another_process_finds_it(self, root: Path) -> None:
        """``train`` returns at once, the handle is JSON, and no process of the job belongs to this session."""
        deadline = time.monotonic() + RETURN_S
        run = self.train()  # takes a hundred seconds
        assert time.monotonic() < deadline
        self.running(run)
        handle = run.jobs[-1].handle
        assert handle is not None
        assert json.loads(json.dumps(handle)) == handle
        self.assert_quick(run)
        argv = [sys.executable, "-c", OTHER_PROCESS, str(root), run.id]
        answer = subprocess.run(argv, capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == "running"
        for process in here(run):
            with contextlib.suppress(ProcessLookupError):
                assert os.getsid(process.pid) != os.getsid(0), f"an interrupt here would reach {process.cmdline()}"

    def assert_quick(self, run: rlnb.Run) -> None:
        """Assert that a launcher made without arguments knows a running job, and answers without waiting."""
        launcher, job = plugins.load(plugins.launcher(self.launcher).factory)(), run.jobs[-1]
        seconds = []
        for _ in range(LOOKS):
            began = time.monotonic()
            assert launcher.alive(job.handle, job.folder.path) is not False, "alive() is False for a running job"
            seconds.append(time.monotonic() - began)
        assert statistics.median(seconds) < ALIVE_S, (
            f"alive() takes {statistics.median(seconds):.2f} s, and every look at a run calls it. Keep the answer of "
            "another machine or a queue for some seconds."
        )

    def test_a_cancelled_run_ends_with_all_its_processes(self, root: Path) -> None:
        """The processes of the launcher itself end too, and no iteration follows."""
        run = self.running(self.train())
        assert self.processes(run), NO_PROCESS
        run.cancel()
        self.until(lambda: run.state == "cancelled", self.end_s)
        self.until(lambda: not self.processes(run), self.end_s)
        reached = run.progress
        time.sleep(1.0)
        assert run.progress == reached, "a process of the cancelled run still trains"

    def test_the_traceback_of_a_failed_training_reaches_the_kernel(self, root: Path) -> None:
        """The error shows the traceback, and the launcher does not start the job again."""
        with pytest.raises(rlnb.RunError, match="Traceback"):
            self.train(agent={"crash_at": 2}).wait(self.start_s)
        assert len(rlnb.runs()[0].jobs) == 1

    def test_a_run_with_killed_agents_is_lost_and_leaves_no_process(self, root: Path) -> None:
        """The processes that the agents started end too, and the run can be resumed."""
        run = self.running(self.train())
        self.until(lambda: run.checkpoints, self.start_s)
        assert self.processes(run), NO_PROCESS
        self.kill(run)
        self.until(lambda: run.state in ENDED, self.lost_s)
        assert run.state in ("lost", "failed")
        self.until(lambda: not self.processes(run), self.end_s)
        assert self.running(run.resume()).jobs[-1].state() == "running"

    # -- its queue

    def test_a_waiting_run_is_queued_and_can_be_cancelled(self, root: Path) -> None:
        """The cancellation does not affect the running job."""
        if self.one_at_a_time is None:
            pytest.skip("one_at_a_time is not set")
        first = self.running(self.train(**self.one_at_a_time))
        second = self.train(**self.one_at_a_time)
        time.sleep(WAITING_S)
        assert second.state == "queued"
        second.cancel()
        self.until(lambda: second.state == "cancelled" and not self.processes(second), self.end_s)
        assert first.state == "running"

    def test_a_run_that_exceeds_its_walltime_is_stopped(self, root: Path) -> None:
        """The outcome is ``timeout``, and no process is left."""
        if self.cut_short is None:
            pytest.skip("cut_short is not set")
        run = self.train(**self.cut_short)
        self.until(lambda: run.state == "timeout", self.start_s)
        self.until(lambda: not self.processes(run), self.end_s)
