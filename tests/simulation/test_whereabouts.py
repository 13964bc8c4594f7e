"""The records of where living simulators are."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from far_node import Node

import rlnb
from rlnb.protocol.messages import Hosted
from rlnb.simulation import remote_job as module
from rlnb.simulation.remote_job import Note, SharedJob, whereabouts
from rlnb.spec import Result
from rlnb.storage import files


class Idle(Node):
    """Starts nothing."""

    def submit(self, command: object, job_dir: Path) -> dict[str, object]:  # type: ignore[override]
        return {"host": "nowhere", "pid": 1, "created_s": 0.0}


def test_a_job_says_where_it_is_until_it_ends(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedJob, "relay_argv", lambda self, *_: ["cat"])
    assert not whereabouts(root)
    job = SharedJob(Idle(), None, None)
    (one,) = rlnb.Catalog([root]).simulators()
    assert (one.place, one.state, one.left_s, one.kernel.pid) == ("local", "waits", None, os.getpid())
    job.note(Hosted(host="node3", ends_s=time.time() + 3600.0))
    (one,) = whereabouts(root)
    assert (one.place, one.state) == ("local on node3", "lives")
    assert one.left_s == pytest.approx(3600.0, abs=60.0)
    assert "(in 60 min)" in str(job)
    job.end()
    job.tell()
    assert not whereabouts(root), "a job that has ended is not recorded again"


def test_a_job_that_has_ended_is_not_shown_any_more(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedJob, "relay_argv", lambda self, *_: ["cat"])
    job = SharedJob(Idle(), None, None)
    files.write_once(job.folder.result, Result(outcome="timeout", error="stopped after its walltime"))
    assert whereabouts(root)
    assert "stopped after its walltime" in job.reason()
    assert not whereabouts(root)
    job.end()


def test_the_records_of_a_dead_kernel_are_removed_and_others_are_left_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as kernel:
        created_s = psutil.Process(kernel.pid).create_time()
        Note(root).write("slurm job 7", "", None)
        (path,) = (root / module.FOLDER).iterdir()
        record = files.read_json(path)
        assert record is not None
        files.write_anew(path, {**record, "kernel": {**record["kernel"], "pid": kernel.pid, "created_s": created_s}})  # type: ignore[dict-item]
        assert [one.place for one in whereabouts(root)] == ["slurm job 7"]
        kernel.communicate(b"\n")
    elsewhere, broken = path.with_name("elsewhere.json"), path.with_name("broken.json")
    files.write_anew(elsewhere, {**record, "kernel": {**record["kernel"], "host": "another"}})  # type: ignore[dict-item]
    broken.write_text("{")
    assert not whereabouts(root)
    assert not path.exists()
    assert elsewhere.exists(), "a kernel on another machine may live"
    Note(root).write("slurm job 8", "", None)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert not whereabouts(root), "another user's"
