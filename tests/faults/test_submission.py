"""A kernel dies, or the disk fills up, while a job is made: the run is unchanged, or it can be resumed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import rlnb
from rlnb.hooks.registry import manager
from rlnb.plugin import Command, Manifest, hookimpl
from rlnb.records import record
from rlnb.records.layout import RunDir
from rlnb.storage import entries, files

DIES = """
import os, signal, sys
import rlnb
from rlnb.records import record
rlnb.options.warm, record.SILENT_AFTER_S = False, 3.0
run = rlnb.get_run(sys.argv[2]) if len(sys.argv) > 2 else None
events, last = [0], int(sys.argv[1])
def dies(event, arguments):
    if event not in ("open", "os.mkdir", "os.rename", "os.link", "os.remove"):
        return
    path = str(arguments[0])  # the name of an entry, if it is relative to the handle of its folder
    if isinstance(arguments[0], int) or os.path.isabs(path) and "rlnb-runs" not in str(arguments):
        return
    if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
        return
    events[0] += 1
    if events[0] == last:
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(dies)
run.resume(max_iterations=run.progress[0] + 10) if run else rlnb.train("Echo", library="echo", max_iterations=10)
print("through", flush=True)
"""
"""Script of a kernel that is killed before its n-th change to a run's folder."""
WAIT_S = 30.0


def until(condition: Callable[[], object], timeout_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"the condition does not hold after {timeout_s} s"
        time.sleep(0.05)


def kernel_that_dies(at: int, *run_id: str) -> bool:
    """Run a kernel that is killed before its ``at``-th change; return True if it finished with fewer changes."""
    done = subprocess.run([sys.executable, "-c", DIES, str(at), *run_id], capture_output=True, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return "through" in done.stdout


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count processes without a sign of life as dead after 3 s instead of a minute."""
    monkeypatch.setattr(record, "SILENT_AFTER_S", 3.0)


@pytest.mark.slow
def test_a_kernel_that_dies_in_resume_leaves_a_run_that_can_be_resumed(root: Path, patient: None) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=10).wait(WAIT_S)
    for at in range(1, 100):
        jobs = len(run.jobs)
        through = kernel_that_dies(at, run.id)
        if len(run.jobs) == jobs:
            assert run.state in ("completed", "lost"), f"killed before change {at}, nothing was added"
        until(lambda: rlnb.get_run(run.id).state in ("completed", "lost"))
        if through:
            break
    assert at > 4, "some kernels were killed in the middle"
    again = rlnb.get_run(run.id)
    again.resume(max_iterations=again.progress[0] + 10).wait(WAIT_S)
    assert again.state == "completed"


def test_a_kernel_that_dies_in_train_leaves_no_run_or_one_that_ends(root: Path, patient: None) -> None:
    for at in range(1, 100):
        before = len(rlnb.runs())
        if kernel_that_dies(at):
            break
        assert len(rlnb.runs()) - before in (0, 1)
        for run in rlnb.runs():
            until(lambda run=run: rlnb.get_run(run.id).state in ("completed", "lost"))
    assert at > 6, "some kernels were killed in the middle"
    for run in rlnb.runs(state="lost"):
        assert run.jobs, "a run without a job is not listed"


def test_records_that_a_killed_kernel_of_version_0_1_0_left_can_be_read_and_resumed(root: Path, patient: None) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=10).wait(WAIT_S)
    begun = run.path / "jobs" / "1-train"
    begun.mkdir()
    assert rlnb.get_run(run.id).state == "created", "its kernel may be about to write the command"
    os.utime(begun, (time.time() - 60, time.time() - 60))
    assert rlnb.get_run(run.id).state == "completed"

    started = rlnb.train("Echo", library="echo", max_iterations=1).wait(WAIT_S)
    shutil.move(started.path / "jobs", root / "gone")  # its agent may still write there
    os.utime(started.path / "manifest.json", (time.time() - 60, time.time() - 60))
    with pytest.raises(rlnb.RunError, match=f"{started.id} is lost: its kernel ended before the training started"):
        rlnb.get_run(started.id).wait()
    rlnb.get_run(run.id).resume(max_iterations=20).wait(WAIT_S)
    assert rlnb.get_run(run.id).progress == (20, 20)


def test_resume_on_a_full_disk_is_refused_and_leaves_the_run_unchanged(
    root: Path, small_disk: Callable[[int], Path]
) -> None:
    disk = rlnb.options.root = small_disk(60 * 1024)
    run = rlnb.train("Echo", library="echo", max_iterations=10).wait(WAIT_S)
    with contextlib.suppress(OSError), open(disk / "filler", "wb") as filler:
        while True:
            filler.write(b"\0" * 65536)
    with contextlib.suppress(OSError), open(disk / "rest", "wb", buffering=0) as filler:
        while True:
            filler.write(b"\0")
    with pytest.raises(rlnb.RlnbError, match=r"could not be written in .*No space left.* the run is unchanged"):
        run.resume(max_iterations=20)
    assert run.state == "completed"
    assert [job.folder.path.name for job in run.jobs] == ["0-train"]
    (disk / "filler").unlink()
    assert run.resume(max_iterations=20).wait(WAIT_S).progress == (20, 20)


def test_a_worker_that_ends_with_status_0_and_leaves_no_result_has_failed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text("print('Kit closes the process', flush=True)\n")
    run = rlnb.train("Echo", library="echo", python=f"{sys.executable} {tmp_path / 'worker.py'}")
    with pytest.raises(rlnb.RunError, match="the worker ended with status 0 and left no result"):
        run.wait(WAIT_S)
    assert run.state == "failed"
    assert "Kit closes the process" in run.logs()


def test_drafts_of_jobs_are_not_listed_and_their_numbers_are_not_reused(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    (run.jobs_folder / ".0-train").mkdir(parents=True)
    assert run.jobs() == []
    seen: list[bool] = []

    def records(name: str) -> dict[str, object]:
        seen.append((run.jobs_folder / name).exists())
        return {"job.json": {"kind": "train"}}

    job = run.next_job("train", records)
    assert (job.path.name, seen) == ("1-train", [False])
    assert files.read_json(job.job) == {"kind": "train"}
    with pytest.raises(OSError, match="full"):
        run.next_job("train", lambda name: raise_full())
    assert os.listdir(run.jobs_folder).count("2-train") == 0
    assert run.next_job("train").number == 2


def test_a_number_that_another_kernel_has_just_taken_for_another_kind_is_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDir(tmp_path)
    run.next_job("evaluate")
    listings: list[list[Path]] = [[]]  # the listing from before that job
    real = entries.children
    monkeypatch.setattr(entries, "children", lambda folder: listings.pop() if listings else real(folder))
    assert run.next_job("train").number == 1


def test_a_plugin_that_cannot_wrap_the_command_is_not_reported_as_a_disk_error(root: Path) -> None:
    class Container:
        @hookimpl
        def rlnb_wrap_command(self, command: Command, manifest: Manifest) -> None:
            raise FileNotFoundError("there is no apptainer")

    rlnb.register(Container(), "container")
    try:
        with pytest.raises(rlnb.RlnbError, match=r"^rlnb_wrap_command\(\) of the plugin .*: there is no apptainer"):
            rlnb.train("Echo", library="echo", max_iterations=1)
    finally:
        manager().unregister(name="container")
    assert len(rlnb.runs()) == 0


def raise_full() -> dict[str, object]:
    raise OSError("the disk is full")
