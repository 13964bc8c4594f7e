"""A warm simulator behind a door: it answers, says where it is, and ends with its kernel or its connection."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from far_node import interpreter, killed_kernels_job, processes, until_gone

import rlnb
from rlnb.hooks import plugins
from rlnb.interactive.simulator import Simulator
from rlnb.jobs import jobs
from rlnb.launchers import make_launcher
from rlnb.mirror import simulator as module
from rlnb.mirror.simulator import FarJob
from rlnb.plugin import Problem
from rlnb.protocol import requests
from rlnb.records.evaluation import EvaluateOptions
from rlnb.simulation.pool import pool
from rlnb.simulation.process import SimulatorProcess
from rlnb.simulation.remote_job import RELAY

WAIT_S = 60.0


@pytest.fixture
def living(door: Any, tmp_path: Path) -> Iterator[SimulatorProcess]:
    process = pool.running(interpreter(tmp_path), None, door)
    process.request(requests.Ping())
    yield process
    pool.shut_down()
    assert process.job is not None
    until_gone(process.job.folder.path, WAIT_S)


def connections(module: str = "rlnb.mirror") -> list[psutil.Process]:
    """Return the processes of this kernel that run a module behind a door."""
    children = psutil.process_iter(["ppid", "status", "cmdline"])  # of a zombie, cmdline is None
    own = [child for child in children if child.info["ppid"] == os.getpid()]
    return [child for child in own if module in (child.info["cmdline"] or ())]


def test_the_simulator_is_there_and_its_files_too(living: SimulatorProcess, door: Any, root: Path) -> None:
    job = living.job
    assert isinstance(job, FarJob)
    assert str(job) == f"door {door.place} on {socket.gethostname()}"
    assert job.folder.path.is_relative_to(Path(door.root) / "simulators")
    assert job.folder.key.stat().st_mode & 0o077 == 0
    assert not [*(root / "simulators").glob("*/jobs")]
    handle = Simulator(living.python, None, door)
    assert (handle.state, handle.log) == ("idle", None)
    assert f"Simulator(idle, door {door.place} on " in repr(handle)
    assert living.usage().memory_bytes > 10 << 20


def test_cells_travel_and_pictures_come_back(living: SimulatorProcess, tmp_path: Path) -> None:
    cell, out = tmp_path / "cell", tmp_path / "out"
    cell.mkdir()
    out.mkdir()
    (cell / "lift.py").write_text("a task")
    task = rlnb.Task(id="Lift", source=str(cell / "lift.py"))
    assert living.request(requests.Card(task=task)).task == "a task"
    clip = living.request(requests.Preview(task=task, num_envs=1, steps=1, size=(8, 8), out=str(out)))
    assert Path(clip.file).stat().st_size == 1 << 20


def test_the_port_of_a_view_leads_there(living: SimulatorProcess) -> None:
    ports: list[int] = []
    request = requests.View(task=rlnb.Task(id="Lift"), num_envs=1)
    view = pool.start(living.python, None, living.job.launcher)  # type: ignore[union-attr]

    def show() -> None:
        with pytest.raises(rlnb.WorkerError):
            view.request(request, meanwhile=lambda address: ports.append(address.port))

    thread = threading.Thread(target=show)
    thread.start()
    deadline = time.monotonic() + WAIT_S
    while not ports:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with socket.create_connection(("127.0.0.1", ports[0]), timeout=20) as browser:
        browser.sendall(b"one")
        assert browser.recv(100) == b"the view got one"
    view.close()
    thread.join(WAIT_S)
    assert not thread.is_alive()


def test_closing_ends_the_job_there_and_the_connection(living: SimulatorProcess, door: Any) -> None:
    assert living.job is not None
    assert len(connections()) == 1
    Simulator(living.python, None, door).close()
    assert until_gone(living.job.folder.path, WAIT_S) < 15.0
    assert not connections()
    assert not living.job.folder.key.exists()


@pytest.mark.slow
def test_without_the_connection_the_job_ends_and_the_next_request_starts_another(
    living: SimulatorProcess, door: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert living.job is not None
    folder = living.job.folder.path
    for process in [*connections(), *connections(RELAY)]:
        process.kill()
    until_gone(folder, WAIT_S)
    deadline = time.monotonic() + 20.0
    while f"There is no connection to {door.place}, so the warm simulator there ends: status -9" not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    (Path(door.place) / "shut").touch()
    with pytest.raises(rlnb.CheckError, match="the door is shut"):
        pool.running(living.python, None, door)
    (Path(door.place) / "shut").unlink()
    again = pool.running(living.python, None, door)
    again.request(requests.Ping())
    assert again.job is not living.job


def test_the_end_of_a_connection_is_explained_at_once(
    door: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = door.simulator_job(interpreter(tmp_path), None)
    problem = type(door).problem

    def slow_problem(self: Any, code: int | None, error: str) -> Problem:
        time.sleep(1.0)  # a busy machine, on which the kernel has seen the end before
        return problem(self, code, error)  # type: ignore[no-any-return]

    monkeypatch.setattr(type(door), "problem", slow_problem)
    (connection,) = connections()
    connection.kill()
    with contextlib.suppress(psutil.NoSuchProcess):  # the kernel may have read its status already
        while connection.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
    assert "so the warm simulator there ends: status -9" in job.reason()
    until_gone(job.folder.path, WAIT_S)


def test_a_start_that_fails_leaves_no_connection(door: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_S", 0.0)
    with pytest.raises(rlnb.RlnbError, match="did not start the simulator's job"):
        door.simulator_job(interpreter(tmp_path), None)
    assert not connections()
    until_gone(Path(door.root) / "simulators", WAIT_S)


FAR = """
import sys
from rlnb.mirror import __main__, server
server.HOLDER_SILENT_S = 4.0
sys.exit(__main__.main())
"""


def test_a_kernel_that_requests_nothing_is_heard(door: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PING_S", 0.5)
    (tmp_path / "far.py").write_text(FAR)
    other: Any = make_launcher("door", {**door.settings, "python": f"{sys.executable} {tmp_path / 'far.py'}"})
    job = other.simulator_job(interpreter(tmp_path), None)
    time.sleep(6.0)
    assert not job.ended
    job.end()
    until_gone(job.folder.path, WAIT_S)


@pytest.mark.slow
def test_a_connection_that_hangs_is_given_up(
    living: SimulatorProcess, door: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SILENT_S", 3.0)
    (connection,) = connections()
    connection.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + WAIT_S
    assert living.job is not None
    while not living.job.ended:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "it does not answer" in living.job.reason()


def test_a_job_that_fails_there_is_explained_with_its_log(living: SimulatorProcess) -> None:
    assert living.job is not None
    threading.Timer(1.0, lambda: [process.kill() for process in processes(living.job.folder.path)]).start()  # type: ignore[union-attr]
    with pytest.raises(rlnb.WorkerError, match=r"The warm simulator does not answer any more\. Its node"):
        living.request(requests.Card(task=rlnb.Task(id="endless")))
    assert living.job.ended


def test_every_obstacle_is_named_before_anything_is_started(door: Any, tmp_path: Path) -> None:
    Path(door.root).touch()
    with pytest.raises(rlnb.CheckError, match=f"simulator on {door.place}(.|\n)*cannot be written"):
        rlnb.simulator(door)
    queue = {"name": "local", "settings": {"max_running": 1, "walltime_s": None}}
    other: Any = make_launcher("door", {**door.settings, "root": str(tmp_path / "other"), "queue": queue})
    other_job = other.simulator_job(interpreter(tmp_path), None)
    deadline = time.monotonic() + WAIT_S
    while other_job.name != f"door {door.place}, local":
        assert time.monotonic() < deadline, other_job.name
        time.sleep(0.1)
    other_job.end()


@pytest.mark.skipif(importlib.util.find_spec("rlnb_rsl_rl") is None, reason="rlnb-rsl-rl is not installed here")
def test_the_card_of_a_training_comes_from_there_and_this_machine_needs_no_isaac_lab(
    door: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("isaaclab", "isaaclab_tasks", "isaaclab_rl", "torch", "gymnasium", "warp"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(rlnb.options, "simulator", door)
    monkeypatch.setattr(rlnb.options, "warm", True)
    monkeypatch.setattr(rlnb.options, "python", interpreter(tmp_path))
    assert rlnb.check("train", library="rsl_rl", launcher=door) == []
    (problem,) = rlnb.check("error", library="rsl_rl", launcher=door)
    assert "has no env config" in problem.what
    rlnb.simulator().close()


@pytest.fixture
def evaluates(door: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Let runs of the echo library be evaluated in warm simulators, from the first call on."""

    def begin() -> None:
        monkeypatch.setattr(rlnb.options, "python", interpreter(tmp_path))
        library = dataclasses.replace(plugins.library("echo"), simulator=True)
        monkeypatch.setattr(plugins, "library", lambda name: library)

    yield begin
    pool.shut_down()
    until_gone(Path(door.root) / "simulators", WAIT_S)


def test_a_run_of_that_machine_is_evaluated_in_its_simulator(door: Any, evaluates: Callable[[], None]) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5, launcher=door).wait(WAIT_S)
    evaluates()
    evaluation = run.evaluate(episodes=4, launcher=door)
    assert evaluation.episodes == 4
    there = Path(door.root) / "runs" / run.id / "jobs"
    assert sorted(path.name for path in there.iterdir()) == ["0-train", "1-evaluate"]
    assert (there / "1-evaluate" / "evaluation.json").exists()
    job = run.jobs[-1].folder
    assert sorted(path.name for path in job.path.iterdir()) == ["evaluation.json", "job.json", "result.json"]
    assert not run.checkpoints[0].exists(), "the checkpoint stays there"
    with pytest.raises(rlnb.RunError, match=r"model_4\.json of .* is on .*fetch"):
        run.evaluate(episodes=4, launcher=rlnb.local())


def test_a_run_of_this_machine_is_evaluated_there_with_equal_numbers(
    door: Any, evaluates: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5, python=sys.executable).wait(WAIT_S)
    here = run.evaluate(episodes=4)
    evaluates()
    monkeypatch.setattr(rlnb.options, "warm", True)
    monkeypatch.setattr(rlnb.options, "simulator", door)
    assert run.evaluate(episodes=4).returns == here.returns
    assert not (Path(door.root) / "runs").exists()
    (process,) = pool.all_running()
    assert process.python == rlnb.options.python, "the interpreter of the run is one of this machine"
    assert run.jobs[-1].state() == "completed"
    with pytest.raises(rlnb.RunError, match=r"FileNotFoundError: .*/logs/gone\.json"):
        in_simulator_of(run, "logs/gone.json")
    shutil.copyfile(run.checkpoints[0], tmp_path / "theirs.json")
    with pytest.raises(rlnb.RunError, match=r"theirs\.json is not in the folder of .*Copy it"):
        run.evaluate(episodes=4, checkpoint=tmp_path / "theirs.json")


def in_simulator_of(run: rlnb.Run, checkpoint: str) -> None:
    """Evaluate a checkpoint without a look whether it exists."""
    jobs.do(run.record, "evaluate", EvaluateOptions(episodes=1, num_envs=1, seed=1, checkpoint=checkpoint))


def test_nothing_is_left_a_minute_after_the_kernel_was_killed(door: Any, root: Path, tmp_path: Path) -> None:
    launcher = f"rlnb.door({door.place!r}, root={door.root!r})"
    plugin = Path(__file__).parents[1] / "rig" / "door"
    folder = killed_kernels_job(launcher, interpreter(tmp_path), root, plugin)
    assert until_gone(folder, 60.0) < 60.0
