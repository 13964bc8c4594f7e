"""Jobs whose host is a detached process on this machine."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rlnb.launch.detached import DetachedLauncher, HostProcess, handle_of
from rlnb.launchers import LocalLauncher
from rlnb.storage.serial import from_json

WAIT_S = 20.0


class Sleeper(DetachedLauncher):
    """A launcher whose host prints a line and waits until it is killed."""

    log = "sleeper.log"

    def argv(self, job_dir: Path) -> Sequence[str]:
        return [sys.executable, "-c", f"import time; print('host of', {job_dir.name!r}, flush=True); time.sleep(60)"]


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends once its standard input is closed."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def until_gone(process: HostProcess) -> None:
    deadline = time.monotonic() + WAIT_S
    while process.alive():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_lives_until_it_ends(child: subprocess.Popen[bytes]) -> None:
    process = HostProcess.of(child.pid)
    assert process.alive()
    child.kill()
    until_gone(process)  # not waited for, so a zombie, which does not count as living
    assert child.returncode is None
    child.wait()
    assert process.alive() is False


def test_another_process_with_the_same_pid_does_not_count(child: subprocess.Popen[bytes]) -> None:
    process = HostProcess.of(child.pid)
    earlier = dataclasses.replace(process, created_s=process.created_s - 3600)
    assert (process.alive(), earlier.alive()) == (True, False)


def test_whether_a_process_on_another_machine_lives_is_unknown() -> None:
    assert HostProcess(host="elsewhere", pid=1, created_s=0.0).alive() is None


def test_a_handle_is_json_that_finds_the_process_again(child: subprocess.Popen[bytes]) -> None:
    handle = json.loads(json.dumps(handle_of(child.pid)))
    assert handle == {"host": socket.gethostname(), "pid": child.pid, "created_s": handle["created_s"]}
    assert DetachedLauncher().alive(handle, Path("job")) is True
    assert DetachedLauncher().alive({**handle, "of_a_newer_version": 1}, Path("job")) is True


def test_the_host_is_detached_and_logs_to_the_folder_of_its_job(tmp_path: Path) -> None:
    launcher = Sleeper()
    handle = launcher.submit(None, tmp_path)
    process = from_json(HostProcess, handle)
    try:
        assert launcher.alive(handle, tmp_path) is True
        assert os.getsid(process.pid) == process.pid != os.getsid(0)
        deadline = time.monotonic() + WAIT_S
        while not (tmp_path / "sleeper.log").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert (tmp_path / "sleeper.log").read_text() == f"host of {tmp_path.name}\n"
        launcher.cancel(handle, tmp_path)
        assert launcher.alive(handle, tmp_path) is True, "the host itself reads the cancel file"
    finally:
        os.kill(process.pid, 9)
    until_gone(process)
    assert launcher.alive(handle, tmp_path) is False


class Queued(DetachedLauncher):
    """A launcher that remembers which entries of its queue it has removed."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def withdraw(self, job_dir: Path, ids: Sequence[str]) -> None:
        self.ids += ids


def test_a_job_whose_host_is_gone_is_withdrawn(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (tmp_path / "submitted.json").write_text('{"queue": "slurm", "jobs": ["54"]}')
    launcher, handle = Queued(), handle_of(child.pid)
    launcher.cancel(handle, tmp_path)
    assert launcher.ids == [], "the living host reads the cancel file"
    child.kill()
    child.wait()
    launcher.cancel(handle, tmp_path)
    assert launcher.ids == ["54"]


def test_a_host_on_another_machine_is_gone_once_it_is_silent(tmp_path: Path) -> None:
    launcher, handle = Queued(), {"host": "elsewhere", "pid": 1, "created_s": 0.0}
    (tmp_path / "submitted.json").write_text('{"queue": "slurm", "jobs": ["54"]}')
    beat = tmp_path / "host.alive"
    beat.touch()
    launcher.cancel(handle, tmp_path)
    assert launcher.ids == []
    long_ago_s = time.time() - 100.0
    os.utime(beat, (long_ago_s, long_ago_s))
    launcher.cancel(handle, tmp_path)
    assert launcher.ids == ["54"]


def test_a_job_with_a_damaged_handle_can_be_cancelled(tmp_path: Path) -> None:
    LocalLauncher().cancel({"pid": -5}, tmp_path)


def test_a_host_does_not_write_where_a_link_leads(tmp_path: Path) -> None:
    job, home = tmp_path / "job", tmp_path / "home"
    for folder in (job, home):
        folder.mkdir()
    (home / ".profile").write_text("mine")
    for target in (".profile", "new"):
        (job / Sleeper.log).unlink(missing_ok=True)
        (job / Sleeper.log).symlink_to(home / target)
        with pytest.raises(OSError, match="symbolic links"):
            Sleeper().submit(None, job)
    assert [path.name for path in home.iterdir()] == [".profile"]
    assert (home / ".profile").read_text() == "mine"
