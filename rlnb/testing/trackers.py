"""The contract of an experiment tracker, as tests that a plugin's author runs with pytest::

    from rlnb.testing import TrackerConformance

    class TestMyTracker(TrackerConformance):
        plugin = my_plugin
        tracker = my_plugin.MINE
        tag = "mine"
        package = "my_package"
        settings = ("MY_PACKAGE_",)

The library echo trains, so the tests need no simulator.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import psutil
import pytest

import rlnb
from rlnb.tracking import Tracker

ITERATIONS, ITERATION_S = 12, 0.3
WAIT_S = 120.0
NO_PACKAGE = f"{getattr(sys, '_base_executable', sys.executable)} -S"
"""A Python without any package."""
LIGHT = """
import importlib, pathlib, pluggy, subprocess, sys
from rlnb import Task
from rlnb.plugin import Manifest
from rlnb.hooks import hookspecs
plugins = pluggy.PluginManager("rlnb")
plugins.add_hookspecs(hookspecs)
plugins.register(importlib.import_module(sys.argv[1]))
def refuse(*_, **__): raise AssertionError("the plugin starts a process")
subprocess.Popen = refuse
manifest = Manifest(run_id="r", created="", task=Task(id="Echo"), library="echo", tags=("another-tag",))
assert not any(plugins.hook.rlnb_check(manifest=manifest))
plugins.hook.rlnb_run_started(run_dir=pathlib.Path("."), manifest=manifest)
plugins.hook.rlnb_run_finished(run_dir=pathlib.Path("."), manifest=manifest, result=None)
print(*sorted({sys.argv[2], "tensorboard", "pandas"} & set(sys.modules)))
"""
"""Script that calls the hooks of a plugin for a run without the tracker's tags, and prints the heavy imports."""


def train_echo(*tags: str, **arguments: Any) -> rlnb.Run:
    """Start a training of the library echo with tags, slow enough for a tracker to start before its end."""
    agent = {"iteration_s": ITERATION_S, **arguments.pop("agent", {})}
    return rlnb.train("Echo", library="echo", tags=tags, agent=agent, **{"max_iterations": ITERATIONS, **arguments})


def wait_for_agent(run: rlnb.Run) -> None:
    """Wait until the agent of a run's newest job has ended, and with it all its child processes."""
    handle, deadline = run.jobs[-1].handle, time.monotonic() + WAIT_S
    assert handle is not None
    while rlnb.launchers.LocalLauncher().alive(handle, run.jobs[-1].folder.path):
        assert time.monotonic() < deadline, "the agent of the job does not end"
        time.sleep(0.05)


def _own_ports() -> set[int]:
    """Return the ports of this process, as opposed to those of the processes that a test has started."""
    return {each.laddr.port for each in psutil.net_connections("tcp") if each.pid == os.getpid()}


@contextlib.contextmanager
def isolated_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...]) -> Iterator[Path]:
    """Set an empty root folder, without the user's settings, and wait for all trackers at the end.

    Args:
        tmp_path: Folder of the test.
        monkeypatch: pytest's fixture.
        settings: Beginnings of the environment variables that set up the tracker.
    """
    for name in [name for name in os.environ if name.startswith(settings)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    monkeypatch.setattr(rlnb.options, "root", tmp_path / "rlnb-runs")
    monkeypatch.setattr(rlnb.options, "warm", False)
    yield tmp_path / "rlnb-runs"
    for run in rlnb.runs():
        wait_for_agent(run)


class TrackerConformance:
    """Tests of an experiment tracker's plugin."""

    plugin: ClassVar[ModuleType]
    """Module with the plugin's hooks."""
    tracker: ClassVar[Tracker]
    """The tracker, whose hooks the plugin implements."""
    tag: ClassVar[str]
    """Tag with which the tracker needs neither a server nor an account."""
    package: ClassVar[str]
    """Module of the service's own package, such as ``"wandb"``."""
    settings: ClassVar[tuple[str, ...]]
    """Beginnings of the environment variables that set up the tracker."""

    @pytest.fixture(autouse=True)
    def root(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """Provide an empty root folder without the user's settings."""
        with isolated_root(tmp_path, monkeypatch, self.settings) as folder:
            yield folder

    @pytest.fixture
    def requests(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
        """Provide the first lines of all requests to the network, which go to a proxy on this machine."""
        lines: list[str] = []
        for name in ("PYTEST_CURRENT_TEST", "CI", "GITHUB_ACTIONS"):
            monkeypatch.delenv(name, raising=False)  # some packages send nothing from a test
        with socket.create_server(("127.0.0.1", 0)) as server:
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{server.getsockname()[1]}")

            def answer() -> None:
                while True:
                    try:
                        connection, (_, port) = server.accept()
                        with connection:
                            if port not in _own_ports():  # a library that another test has imported may send something
                                lines.append(connection.recv(1000).decode(errors="replace").partition("\r")[0])
                    except OSError:
                        return

            threading.Thread(target=answer, daemon=True).start()
            yield lines
            server.shutdown(socket.SHUT_RDWR)

    def test_a_run_without_a_tag_is_not_followed(self) -> None:
        """The hooks of other runs start no process and import nothing heavy."""
        argv = [sys.executable, "-c", LIGHT, self.plugin.__name__, self.package]
        assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split() == []

    def test_each_missing_package_is_a_problem_before_anything_starts(
        self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A worker's interpreter that lacks one of the packages is refused with the fix."""
        site = tmp_path / "site"
        for package in self.tracker.packages:
            with pytest.raises(rlnb.CheckError) as caught:
                train_echo(self.tag, python=NO_PACKAGE)
            (problem,) = caught.value.problems
            assert problem.what.endswith(f"No package metadata was found for {package}")
            assert problem.fix == self.tracker.fix.format(python=NO_PACKAGE)
            info = site / f"{package.replace('-', '_')}-1.0.dist-info"
            info.mkdir(parents=True)
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
            monkeypatch.setenv("PYTHONPATH", str(site))
        assert not root.exists()

    def test_a_failure_of_the_package_leaves_a_warning_and_a_completed_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An error in the tracker's process does not reach the training."""
        pytest.importorskip(self.package)
        broken = tmp_path / "site" / self.package
        broken.mkdir(parents=True)
        (broken / "__init__.py").write_text("raise RuntimeError('broken today')\n")
        monkeypatch.setenv("PYTHONPATH", str(broken.parent))
        run = train_echo(self.tag).wait(WAIT_S)
        wait_for_agent(run)
        assert run.state == "completed"
        assert f"{self.tracker.name} no longer follows this run: RuntimeError: broken today" in run.logs(200)

    def test_without_a_server_nothing_leaves_the_machine(self, requests: list[str]) -> None:
        """The tracker sends no request, not even telemetry."""
        pytest.importorskip(self.package)
        run = train_echo(self.tag, max_iterations=100, agent={"iteration_s": 0.1}).wait(WAIT_S)
        wait_for_agent(run)
        assert "no longer follows" not in run.logs(200)
        assert requests == []
