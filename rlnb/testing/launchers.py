"""The contract of a launcher, as tests that a plugin's author runs with pytest.

    from rlnb.testing import LauncherConformance

    class TestMyLauncher(LauncherConformance):
        launcher = "my_launcher"

Jobs of the library echo (``rlnb-echo``), which needs no simulator, are started by it: what becomes of them is what
their runs say. Takes about a quarter of a minute beside what the launcher itself takes to start jobs.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

import rlnb
from rlnb import plugins
from rlnb.spec import Json

RETURN_S = 10.0
"""Seconds within which ``train`` returns, whatever the launcher waits for."""
LONG = 1000
SHORT = 5
WAITING_S = 2.0
ENDED = {"completed", "failed", "cancelled", "timeout", "lost"}
OTHER_PROCESS = "import sys, rlnb; rlnb.options.root = sys.argv[1]; print(rlnb.get_run(sys.argv[2]).state)"


class LauncherConformance:
    """Subclass it as ``Test...``, set ``launcher``, and every test of the contract runs for it."""

    launcher: str
    """Its name: ``rlnb.<name>(...)`` makes one."""
    settings: Mapping[str, Any] = {}
    """Arguments that make one whose jobs start here."""
    one_at_a_time: Mapping[str, Any] | None = None
    """Further arguments with which a second job has to wait for the first; None: that is not tested."""
    cut_short: Mapping[str, Any] | None = None
    """Further arguments with which a job is stopped after some seconds, as by a walltime; None: that is not tested."""
    start_s: float = 90.0
    """Seconds that a job may take to start."""
    end_s: float = 20.0
    """Seconds that a cancelled job may take to be gone, with every process."""
    lost_s: float = 90.0
    """Seconds within which a job whose agents were killed is known to be lost: by its heartbeat, if by nothing else."""

    @pytest.fixture
    def root(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """A folder for runs, and a queue that nobody else is in. A run that still goes on in the end is cancelled."""
        monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
        monkeypatch.setattr(rlnb.options, "root", tmp_path)
        monkeypatch.setattr(rlnb.options, "warm", False)
        yield tmp_path
        for run in rlnb.runs():
            run.cancel()
        self.until(lambda: not any(self.processes(run) for run in rlnb.runs()), self.end_s)

    @classmethod
    def make(cls, **further: Any) -> Any:
        """Return the launcher under test."""
        return getattr(rlnb, cls.launcher)(**{**cls.settings, **further})

    @classmethod
    def train(cls, iterations: int = LONG, *, agent: Mapping[str, Json] | None = None, **further: Any) -> rlnb.Run:
        """Start a training on it, a tenth of a second an iteration."""
        return rlnb.train(
            "Echo",
            library="echo",
            max_iterations=iterations,
            agent={"iteration_s": 0.1, **(agent or {})},
            launcher=cls.make(**further),
        )

    def running(self, run: rlnb.Run) -> rlnb.Run:
        """Wait until a training has got somewhere."""
        self.until(lambda: run.state in {"running", *ENDED}, self.start_s)
        assert run.state == "running", run.logs()
        return run

    @staticmethod
    def until(fact: Callable[[], object], within_s: float) -> None:
        """Wait for something to be so."""
        deadline = time.monotonic() + within_s
        while not fact():
            assert time.monotonic() < deadline, f"it did not come to that within {within_s:g} s"
            time.sleep(0.1)

    @staticmethod
    def processes(run: rlnb.Run) -> list[psutil.Process]:
        """Return the processes of a run on this machine."""
        return [
            process
            for process in psutil.process_iter(["cmdline", "status"])
            if process.info["status"] != psutil.STATUS_ZOMBIE
            and any(run.id in word for word in process.info["cmdline"] or ())
        ]

    # -- registration

    def test_it_is_made_again_from_its_name_and_settings(self) -> None:
        """A run records the settings as JSON, and what is started in it later is started by one like it."""
        launcher = self.make()
        assert launcher.name == self.launcher
        copy = getattr(rlnb, self.launcher)(**json.loads(json.dumps(dict(launcher.settings))))
        assert dict(copy.settings) == dict(launcher.settings)
        assert launcher.nodes >= 1
        assert plugins.load(plugins.launcher(self.launcher).factory)().name == self.launcher, "without arguments too"

    def test_what_it_cannot_do_is_said_before_anything_is_written(self, root: Path) -> None:
        """Its own problems come with the others, and each has a fix."""
        with pytest.raises(rlnb.CheckError, match="num_envs=-1") as raised:
            rlnb.train("Echo", library="echo", num_envs=-1, max_iterations=1, launcher=self.make())
        assert "fix:" in str(raised.value)
        assert not rlnb.runs()

    # -- a job

    def test_a_run_completes_and_goes_on(self, root: Path) -> None:
        """A run through this launcher is a run as any other: its log, its curves, a further training, an evaluation."""
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

    def test_a_job_is_started_at_once_and_found_from_another_process(self, root: Path) -> None:
        """``train`` waits for no end; what ``submit`` returned is JSON; the job outlives who asked for it."""
        deadline = time.monotonic() + RETURN_S
        run = self.train()  # a hundred seconds long
        assert time.monotonic() < deadline
        self.running(run)
        handle = run.jobs[-1].handle
        assert handle is not None
        assert json.loads(json.dumps(handle)) == handle
        argv = [sys.executable, "-c", OTHER_PROCESS, str(root), run.id]
        answer = subprocess.run(argv, capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == "running"
        for process in self.processes(run):
            assert os.getsid(process.pid) != os.getsid(0), f"an interrupt here would reach {process.cmdline()}"

    def test_a_cancelled_run_ends_with_all_its_processes(self, root: Path) -> None:
        """Also those of the launcher itself."""
        run = self.running(self.train())
        run.cancel()
        self.until(lambda: run.state == "cancelled", self.end_s)
        self.until(lambda: not self.processes(run), self.end_s)
        reached = run.progress
        time.sleep(1.0)
        assert run.progress == reached, "it goes on somewhere"

    def test_why_a_training_failed_reaches_the_kernel(self, root: Path) -> None:
        """Its traceback; and it is not tried again."""
        with pytest.raises(rlnb.RunError, match="Traceback"):
            self.train(agent={"crash_at": 2}).wait(self.start_s)
        assert len(rlnb.runs()[0].jobs) == 1

    def test_a_run_whose_agents_are_killed_is_lost_and_nothing_of_it_is_left(self, root: Path) -> None:
        """Also what they had started ends; a resumed run begins where it was."""
        run = self.running(self.train())
        self.until(lambda: run.checkpoints, self.start_s)
        for process in self.processes(run):
            with contextlib.suppress(psutil.NoSuchProcess):  # it ends with its agent
                if "rlnb.node" in process.info["cmdline"]:
                    process.kill()
        self.until(lambda: run.state in ENDED, self.lost_s)
        assert run.state in ("lost", "failed")
        self.until(lambda: not self.processes(run), self.end_s)
        assert self.running(run.resume()).jobs[-1].state() == "running"

    # -- its queue

    def test_a_run_that_waits_is_queued_and_can_be_cancelled(self, root: Path) -> None:
        """The run before it goes on."""
        if self.one_at_a_time is None:
            pytest.skip("one_at_a_time is not set")
        first = self.running(self.train(**self.one_at_a_time))
        second = self.train(**self.one_at_a_time)
        time.sleep(WAITING_S)
        assert second.state == "queued"
        second.cancel()
        self.until(lambda: second.state == "cancelled" and not self.processes(second), self.end_s)
        assert first.state == "running"

    def test_a_run_that_takes_too_long_is_stopped(self, root: Path) -> None:
        """With outcome ``timeout``, and nothing of it is left."""
        if self.cut_short is None:
            pytest.skip("cut_short is not set")
        run = self.train(**self.cut_short)
        self.until(lambda: run.state == "timeout", self.start_s)
        self.until(lambda: not self.processes(run), self.end_s)
