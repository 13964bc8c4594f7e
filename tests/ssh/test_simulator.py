"""A warm simulator in another account, over a real SSH server: who can reach it, and how it ends."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from far_node import interpreter

import rlnb
from rlnb.launchers import make_launcher
from rlnb.protocol import requests
from rlnb.simulation.pool import pool
from rlnb.simulation.process import SimulatorProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
WAIT_S = 60.0


def until(fact: Callable[[], object], within_s: float = WAIT_S) -> float:
    begin_s = time.monotonic()
    while not fact():
        assert time.monotonic() < begin_s + within_s
        time.sleep(0.1)
    return time.monotonic() - begin_s


def gpu_of(far: Any) -> Any:
    return rlnb.ssh(far.place, python=far.python, root=str(far.runs), options=far.options)


@pytest.fixture(scope="session")
def python(far: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Provide the command of an interpreter of the account whose worker is a stand-in."""
    here, folder = tmp_path_factory.mktemp("worker"), far.folder / "worker"
    folder.mkdir()
    interpreter(here)
    for name in ("worker.py", "python.py"):
        text = (here / name).read_text().replace(str(here), str(folder))
        (folder / name).write_text(text)
    return f"{far.home}/venv/bin/python {folder}/python.py"


@pytest.fixture
def living(far: Any, root: Path, python: str) -> Iterator[SimulatorProcess]:
    process = pool.running(python, None, gpu_of(far))
    process.request(requests.Ping())
    yield process
    pool.shut_down()
    until(lambda: not far.processes())


def test_it_is_in_the_account_and_nothing_listens_beyond_loopback(
    living: SimulatorProcess, far: Any, root: Path, tmp_path: Path
) -> None:
    assert str(living.job) == f"ssh far on {socket.gethostname()}"
    assert psutil.Process(living.pid).uids().real == far.uid
    assert living.job is not None
    key = living.job.folder.key
    assert (key.stat().st_uid, key.stat().st_mode & 0o077) == (far.uid, 0), "only its user can read the key"
    assert not [*root.rglob("*.pem")], "the key is not on this machine"
    listens = [
        connection.laddr.ip
        for process in far.processes()
        for connection in process.connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listens == ["127.0.0.1"]
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "lift.py").write_text("a cell")
    task = rlnb.Task(id="Lift", source=str(tmp_path / "lift.py"))
    assert living.request(requests.Card(task=task)).task == "a cell"
    clip = living.request(requests.Preview(task=task, num_envs=1, steps=1, size=(8, 8), out=str(out)))
    assert Path(clip.file).stat().st_size == 1 << 20
    begin_s = time.monotonic()
    for _ in range(10):
        living.request(requests.Ping())
    print(f"a request takes {100 * (time.monotonic() - begin_s):.1f} ms")


def test_without_a_connection_the_next_request_says_so_and_a_later_one_starts_another(
    living: SimulatorProcess, far: Any, python: str
) -> None:
    far.stop()
    try:
        assert until(lambda: not living.alive, 40.0) < 40.0
        until(lambda: not far.processes(), 60.0)
        with pytest.raises(rlnb.CheckError, match="there is no connection to far"):
            pool.running(python, None, gpu_of(far))
    finally:
        far.start()
    again = pool.running(python, None, gpu_of(far))
    again.request(requests.Ping())
    assert again.job is not living.job


KERNEL = """
import sys
import rlnb
from rlnb.protocol import requests
from rlnb.simulation.pool import pool
process = pool.running({python!r}, None, rlnb.launchers.make_launcher("ssh", {settings!r}))
process.request(requests.Ping())
print("ready", flush=True)
sys.stdin.read()
"""


def test_nothing_is_left_a_minute_after_the_kernel_was_killed(far: Any, root: Path, python: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KERNEL.format(settings=dict(gpu_of(far).settings), python=python)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "RLNB_ROOT": str(root)},
    ) as kernel:
        assert kernel.stdout is not None
        assert kernel.stdout.readline() == b"ready\n"
        assert far.processes("rlnb.node")
        kernel.kill()
    print(f"nothing is left after {until(lambda: not far.processes(), 60.0):.1f} s")


def test_the_queue_of_a_login_node_holds_it(far: Any, slurm: Any, root: Path, python: str) -> None:
    settings = {**gpu_of(far).settings, "env": {"SLURM_CONF": os.environ["SLURM_CONF"]}}
    queue = {"name": "slurm", "settings": {"nodes": 1, "walltime": "00:10:00"}}
    login = make_launcher("ssh", {**settings, "queue": queue})
    process = pool.running(python, None, login)
    process.request(requests.Ping())
    (number,) = slurm.jobs()
    until(lambda: f"ssh far, slurm job {number} on " in str(process.job))
    assert " until " in str(process.job), "the walltime is known"
    pool.shut_down()
    until(lambda: not slurm.jobs())
    two = {"name": "slurm", "settings": {"nodes": 2, "walltime": "00:10:00"}}
    with pytest.raises(rlnb.CheckError, match=r"asks for 2 nodes, and a simulator uses one(.|\n)*rlnb.slurm\("):
        pool.running(python, None, make_launcher("ssh", {**settings, "queue": two}))
    until(lambda: not far.processes())


@pytest.mark.isaaclab
@pytest.mark.timeout(900)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_a_preview_and_the_card_of_a_training_come_from_the_account(
    far: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rlnb.options, "warm", True)
    monkeypatch.setattr(rlnb.options, "simulator", gpu_of(far))
    preview = rlnb.preview("Isaac-Cartpole-Direct", num_envs=2, steps=5, device="cpu")
    assert preview.clip
    assert "ssh far on " in repr(rlnb.simulator())
    begin_s = time.monotonic()
    run = rlnb.train("Isaac-Cartpole-Direct", num_envs=8, max_iterations=2, device="cpu", launcher=gpu_of(far))
    print(f"a training is submitted in {time.monotonic() - begin_s:.1f} s")
    run.wait()
    assert run.state == "completed"
    assert run.evaluate(episodes=2).returns
    rlnb.simulator().close()
    shutil.rmtree(far.runs / "simulators", ignore_errors=True)
