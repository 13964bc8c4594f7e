"""A job leaves the queue only on the word of its own user's records, and only by an id that is one."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import rlnb
from rlnb.launchers import Resources
from rlnb.plugin import Manifest
from rlnb.records.layout import JobDir
from rlnb.storage.serial import to_json

OTHER_UID = 65_534

Lost = Callable[..., rlnb.Run]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file to which Slurm's commands append their arguments. They are stand-ins, first on PATH."""
    programs, file = tmp_path / "programs", tmp_path / "calls"
    programs.mkdir()
    file.touch()
    for name in ("scancel", "squeue", "scontrol", "sbatch"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {file}\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return file


@pytest.fixture
def lost(root: Path) -> Lost:
    """Return a function that makes a run of Slurm whose host has died, given the ids of its jobs and its handle."""

    def make(jobs: Sequence[object], handle: Mapping[str, object] | None = None) -> rlnb.Run:
        manifest = Manifest(
            run_id="run",
            created="2026-01-01T00:00:00+00:00",
            task=rlnb.Task(id="Echo"),
            library="echo",
            resources=Resources(),
            launcher="slurm",
        )
        gone = {"host": socket.gethostname(), "pid": os.getpid(), "created_s": 1.0}
        job = JobDir(root / "runs" / "run" / "jobs" / "0-train")
        job.path.mkdir(parents=True)
        for path, record in {
            job.path.parents[1] / "manifest.json": to_json(manifest),
            job.job: {"kind": "train", "options": {}},
            job.command: {"argv": ["python"]},
            job.handle: {**gone, **(handle or {})},
            job.submitted: {"queue": "slurm", "jobs": jobs},
        }.items():
            path.write_text(json.dumps(record))
            os.utime(path, (1.0, 1.0))
        return rlnb.get_run("run")

    return make


def test_a_lost_run_of_this_user_leaves_the_queue(lost: Lost, calls: Path) -> None:
    run = lost(["17"])
    assert run.state == "lost"
    run.cancel()
    assert calls.read_text() == "scancel -- 17\n"


@pytest.mark.parametrize("number", ["--user=ann", "-u ann", "17 18", "17\n", "$(id)", {"a": 1}, None])
def test_an_id_that_is_none_is_refused_and_no_command_is_called(lost: Lost, calls: Path, number: object) -> None:
    run = lost([number])
    with pytest.raises(rlnb.RlnbError, match=r"submitted\.json.* (is not the id of a job of slurm|not a value)"):
        run.cancel()
    assert calls.read_text() == ""


def test_the_id_of_a_hosts_job_has_to_be_one_too(lost: Lost, calls: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In one question about several jobs, an option would also spoil the answer about all others."""
    run = lost(["17"], {"slurm_job": "--user=ann"})
    assert run.state == "lost"
    assert "'--user=ann' is not the id of a job of slurm" in caplog.text
    with pytest.raises(rlnb.RlnbError, match=r"handle\.json: '--user=ann' is not the id of a job of slurm"):
        run.cancel()
    assert calls.read_text() == ""


@root_only
@pytest.mark.parametrize("owned", ["", "manifest.json", "jobs", "jobs/{job}", "jobs/{job}/handle.json"])
def test_nothing_leaves_the_queue_for_the_run_of_another_user(
    lost: Lost, calls: Path, owned: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The id is that of a job of this user, which has nothing to do with the run."""
    run = lost(["17"])
    job = run.jobs[-1].folder
    os.chown(run.path / owned.format(job=job.path.name), OTHER_UID, OTHER_UID)
    run.cancel()
    assert job.cancel.exists()
    assert calls.read_text() == ""
    assert f"{run.id} belongs to the user {OTHER_UID}, so only the request to cancel was written." in caplog.text


@pytest.mark.parametrize("name", ["handle.json", "submitted.json"])
def test_nothing_leaves_the_queue_for_a_record_that_others_can_write(lost: Lost, calls: Path, name: str) -> None:
    run = lost(["17"])
    (run.jobs[-1].folder.path / name).chmod(0o666)
    run.cancel()
    assert run.jobs[-1].folder.cancel.exists()
    assert calls.read_text() == ""


def test_an_id_that_is_none_keeps_no_other_job_in_the_queue(lost: Lost, calls: Path) -> None:
    run = lost(["--user=ann"])
    first = run.jobs[0].folder
    second = JobDir(Path(shutil.copytree(first.path, first.path.with_name("1-train"))))
    second.submitted.write_text(json.dumps({"queue": "slurm", "jobs": ["18"]}))
    os.utime(second.submitted, (1.0, 1.0))
    with pytest.raises(rlnb.RlnbError, match="'--user=ann' is not the id of a job of slurm"):
        rlnb.get_run("run").cancel()
    assert first.cancel.exists()
    assert second.cancel.exists()
    assert calls.read_text() == "scancel -- 18\n"


@pytest.mark.parametrize(
    ("squeue", "advice"),
    [
        ("echo 17 PENDING", "Its job 17 is still in the queue: run.cancel() takes it out"),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", "Its job 17 has left the queue"),
        ("echo 'Unable to contact slurm controller' >&2; exit 1", "Its job 17 may still be in the queue: run.cancel()"),
    ],
)
def test_the_queue_is_asked_whether_a_lost_job_is_still_there(
    lost: Lost, calls: Path, squeue: str, advice: str
) -> None:
    run = lost(["17"])
    (calls.parent / "programs" / "squeue").write_text(f"#!/bin/sh\n{squeue}\n")
    with pytest.raises(rlnb.RunError, match=re.escape(advice)):
        run.wait()


def test_a_queue_is_not_asked_for_what_is_no_id(lost: Lost, calls: Path) -> None:
    run = lost(["--user=ann"])
    with pytest.raises(rlnb.RunError, match="Its job --user=ann may still be in the queue"):
        run.wait()
    assert calls.read_text() == ""


@root_only
def test_the_jobs_that_the_records_of_another_user_name_are_not_to_be_cancelled(lost: Lost) -> None:
    run = lost(["17"])
    with pytest.raises(rlnb.RunError, match=r"Its job 17 may still be in the queue: run\.cancel\(\) takes it out"):
        run.wait()
    os.chown(run.path, OTHER_UID, OTHER_UID)
    with pytest.raises(rlnb.RunError, match=rf"Its job 17 may still be in the queue of the user {OTHER_UID}\n"):
        run.wait()


CANCEL = """
import os, psutil, rlnb
run = rlnb.get_run({path!r})
run.state
os.setgid({uid}); os.setuid({uid})
try:
    run.cancel()
except rlnb.RunError as exc:
    print(exc)
"""


@root_only
def test_a_request_that_cannot_be_written_says_who_can_cancel(lost: Lost, tmp_path: Path) -> None:
    run = lost(["17"])
    for folder in (tmp_path, run.path.parent, *tmp_path.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    code = CANCEL.format(uid=OTHER_UID, path=str(run.path))
    env = {**os.environ, "HOME": "/nonexistent", "RLNB_ROOT": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    expected = f"{run.id} belongs to the user 0, who alone can cancel it. Ask that user to cancel it.\n"
    assert done.stdout == expected, done.stderr


@pytest.mark.parametrize("pid", [-1, 0, 2**70])
def test_a_number_that_is_no_process_does_not_keep_a_run_from_being_cancelled(
    lost: Lost, calls: Path, pid: int
) -> None:
    lost(["17"], {"pid": pid}).cancel()
    assert calls.read_text() == "scancel -- 17\n"
