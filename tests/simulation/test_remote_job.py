"""The job of a warm simulator: its command, its key, and what is refused before it starts."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from far_node import Node

import rlnb
from rlnb.errors import RlnbError
from rlnb.launchers import RunIndex
from rlnb.protocol.messages import Connected
from rlnb.records.layout import JobDir
from rlnb.simulation import remote_job as jobs
from rlnb.simulation.remote_job import Note, SharedJob, key_of, simulator_records
from rlnb.spec import Command, Result
from rlnb.storage import files
from rlnb.storage.serial import from_json


class Idle(Node):
    """Starts nothing."""

    def submit(self, command: object, job_dir: Path) -> dict[str, object]:  # type: ignore[override]
        return {"host": "nowhere", "pid": 1, "created_s": 0.0}


def test_the_command_serves_the_workers_interpreter_until_it_is_idle(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rlnb.options, "warm_idle_s", 60.0)
    job = SharedJob(Idle(walltime_s=100.0), f"{sys.executable} -B", "/assets")
    command = from_json(Command, files.read_json(job.folder.command) or {})
    serve = ("-P", "-m", "rlnb.node", "--serve", str(job.folder.path), "--idle=60.0", "--loopback", "--")
    assert command.argv == (sys.executable, "-B", *serve, sys.executable, "-B")
    assert command.env["RLNB_ASSET_ROOT"] == "/assets"
    assert command.walltime_s == 100.0
    assert not rlnb.runs(), "it is no run"
    assert job.folder.path.stat().st_mode & 0o777 == 0o700, "no one else may replace the key or the address"
    assert job.relay_argv("--hold")[-2:] == [str(job.folder.path), "--hold"]
    job.end()


def test_a_job_of_a_cluster_listens_for_other_machines_and_may_be_idle_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rlnb_dask")
    monkeypatch.setattr(rlnb.options, "warm_idle_s", None)
    launcher = rlnb.slurm(walltime="01:00:00")
    command = jobs._command(jobs.manifest_of(launcher, None, None), launcher, JobDir(tmp_path))
    assert "--loopback" not in command.argv
    assert "--idle=inf" in command.argv


def test_a_job_leaves_its_queue_unless_it_has_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedJob, "relay_argv", lambda self, *_: ["cat"])
    cancelled: list[Path] = []
    monkeypatch.setattr(Idle, "cancel", lambda self, handle, job_dir: cancelled.append(job_dir))
    for ended in (False, True):
        job = SharedJob(Idle(), None, None)
        if ended:
            files.write_once(job.folder.result, Result(outcome="completed"))
        job.end()
        assert (job.folder.path in cancelled) is not ended
        assert job.folder.cancel.exists() is not ended


def test_a_job_that_cannot_start_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = Idle()
    many.nodes = 2  # type: ignore[misc]
    with pytest.raises(rlnb.CheckError, match="asks for 2 nodes, and a simulator uses one"):
        SharedJob(many, None, None)

    def fail(self: Idle, command: object, job_dir: Path) -> None:
        raise RlnbError("the queue is closed")

    monkeypatch.setattr(Idle, "submit", fail)
    with pytest.raises(RlnbError, match="the queue is closed"):
        SharedJob(Idle(), None, None)
    assert not [*(root / jobs.FOLDER).iterdir()]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the records for which the disk has no room."""
    names: list[str] = []
    write_once = files.write_once

    def write(path: Path, *data: object, **options: object) -> bool:
        if path.name in names:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_once(path, *data, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "write_once", write)
    return names


@pytest.mark.parametrize("name", ["command.json", "manifest.json"])
def test_a_job_whose_records_cannot_be_written_leaves_nothing(root: Path, full_disk: list[str], name: str) -> None:
    full_disk.append(name)
    with pytest.raises(OSError, match="No space left"):
        SharedJob(Idle(), None, None)
    assert not [*(root / jobs.FOLDER).iterdir()], "neither a key"


def test_a_job_without_room_for_its_handle_is_held_and_leaves_its_queue(
    root: Path, full_disk: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedJob, "relay_argv", lambda self, *_: ["cat"])
    cancelled: list[Path] = []
    monkeypatch.setattr(Idle, "cancel", lambda self, handle, job_dir: cancelled.append(job_dir))
    full_disk.append("handle.json")
    job = SharedJob(Idle(), None, None)
    assert not job.ended
    job.end()
    assert cancelled == [job.folder.path]


def test_the_end_of_the_walltime_is_announced_once_in_time(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(SharedJob, "relay_argv", lambda self, *_: ["cat"])
    job = SharedJob(Idle(), None, None)
    ends_s = time.time() + jobs.ANNOUNCED_S + 1.0
    for _ in range(2):
        job.note(Connected(host="node3", ends_s=ends_s))
    assert "with the walltime" not in caplog.text
    assert str(job).startswith("local on node3 until ")
    time.sleep(2.0)
    assert caplog.text.count("The warm simulator on node3 ends at ") == 1
    job.end()
    assert not job.folder.key.exists()
    assert job.folder.cancel.exists()
    caplog.clear()
    over = SharedJob(Idle(), None, None)
    files.write_once(over.folder.result, Result(outcome="completed"))
    over.note(Connected(host="node3", ends_s=time.time() + jobs.ANNOUNCED_S))
    time.sleep(0.5)
    assert not caplog.messages, "it has ended already"
    over.end()


def test_the_end_of_the_walltime_is_told_by_this_machines_clock(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedJob, "relay_argv", lambda self, *_: ["cat"])
    job = SharedJob(Idle(), None, None)
    behind_s = time.time() - 7200.0
    job.note(Connected(host="node3", ends_s=behind_s + 3600.0, now_s=behind_s))
    assert job.ends_s == pytest.approx(time.time() + 3600.0, abs=2.0)
    job.end()


def test_a_connection_that_keeps_the_job_is_started_again_and_a_stuck_one_ends_with_the_job(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "LEAVE_S", 0.5)
    monkeypatch.setattr(SharedJob, "relay_argv", lambda self, *_: ["sleep", "60.5"])
    job = SharedJob(Idle(), None, None)
    first = job._hold
    assert first is not None
    first.kill()
    first.wait()
    job.note(Connected(host="node3"))
    second = job._hold
    assert second is not None
    assert second is not first
    begin_s = time.monotonic()
    job.end()
    assert second.wait(20) == -signal.SIGKILL
    assert time.monotonic() - begin_s < 20.0


KERNEL = """
import sys
sys.path[:0] = sys.argv[1:]
from test_remote_job import Idle, SharedJob
job = SharedJob(Idle(), None, None)
print(job.folder.path, flush=True)
sys.stdin.read()
"""


def test_a_job_that_waits_in_a_queue_is_cancelled_when_its_kernel_is_killed(root: Path) -> None:
    here = Path(__file__).parent
    argv = [sys.executable, "-c", KERNEL, str(here), str(here.parent / "rig")]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "RLNB_ROOT": str(root)}
    ) as kernel:
        assert kernel.stdout is not None
        job = JobDir(Path(kernel.stdout.readline().decode().strip()))
        assert job.command.exists()
        kernel.kill()
    deadline = time.monotonic() + 30.0
    while not job.cancel.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_equal_launchers_share_a_job_and_others_do_not() -> None:
    assert key_of(Node(), None, None) == key_of(Node(), None, None)
    assert key_of(Node(), None, None) != key_of(Node(walltime_s=5.0), None, None)
    assert key_of(Node(), None, None) != key_of(Node(), "python", None)
    assert key_of(Node(), None, None) != key_of(Node(), None, "/assets")


def test_old_jobs_are_removed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = SharedJob(Idle(), None, None)
    files.write_once(old.folder.result, {"outcome": "completed"})
    old.end()
    monkeypatch.setattr(jobs, "KEPT_S", -1.0)
    new = SharedJob(Idle(), None, None)
    assert not old.folder.path.exists()
    assert new.folder.path.exists()
    new.end()


# -- whereabouts -----------------------------------------------------------------------------------------------------


def test_a_job_says_where_it_is_until_it_ends(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedJob, "relay_argv", lambda self, *_: ["cat"])
    assert not simulator_records(root)
    job = SharedJob(Idle(), None, None)
    (one,) = RunIndex([root]).simulators()
    assert (one.place, one.state, one.left_s, one.kernel.pid) == ("local", "waits", None, os.getpid())
    job.note(Connected(host="node3", ends_s=time.time() + 3600.0))
    (one,) = simulator_records(root)
    assert (one.place, one.state) == ("local on node3", "lives")
    assert one.left_s == pytest.approx(3600.0, abs=60.0)
    assert "(in 60 min)" in str(job)
    job.end()
    job.tell()
    assert not simulator_records(root), "a job that has ended is not recorded again"


def test_a_job_that_has_ended_is_not_shown_any_more(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedJob, "relay_argv", lambda self, *_: ["cat"])
    job = SharedJob(Idle(), None, None)
    files.write_once(job.folder.result, Result(outcome="timeout", error="stopped after its walltime"))
    assert simulator_records(root)
    assert "stopped after its walltime" in job.reason()
    assert not simulator_records(root)
    job.end()


def test_the_records_of_a_dead_kernel_are_removed_and_others_are_left_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as kernel:
        created_s = psutil.Process(kernel.pid).create_time()
        Note(root).write("slurm job 7", "", None)
        (path,) = (root / jobs.KERNELS_FOLDER).iterdir()
        record = files.read_json(path)
        assert record is not None
        files.replace_json(path, {**record, "kernel": {**record["kernel"], "pid": kernel.pid, "created_s": created_s}})  # type: ignore[dict-item]
        assert [one.place for one in simulator_records(root)] == ["slurm job 7"]
        kernel.communicate(b"\n")
    elsewhere, broken = path.with_name("elsewhere.json"), path.with_name("broken.json")
    files.replace_json(elsewhere, {**record, "kernel": {**record["kernel"], "host": "another"}})  # type: ignore[dict-item]
    broken.write_text("{")
    assert not simulator_records(root)
    assert not path.exists()
    assert elsewhere.exists(), "a kernel on another machine may live"
    Note(root).write("slurm job 8", "", None)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert not simulator_records(root), "another user's"
