"""Between two jobs of a training that its cluster interrupted, the run waits for the second."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.records import files
from rlnb.spec import to_json


@pytest.fixture
def interrupted(root: Path) -> rlnb.Run:
    """A training that its cluster ended; this process stands for its host, which is still there."""
    run = rlnb.train("Echo", library="echo", max_iterations=4).wait(60)
    job = run.jobs[0].folder
    job.result.unlink()
    job.handle.unlink()
    files.write_once(job.result, to_json(rlnb.Result(outcome="timeout", values={"interrupted": True})))
    created_s = psutil.Process().create_time()
    files.write_once(job.handle, {"host": socket.gethostname(), "pid": os.getpid(), "created_s": created_s})
    return rlnb.Run(run.path)


def test_it_is_queued_while_its_host_lives(interrupted: rlnb.Run) -> None:
    assert interrupted.state == "queued"
    with pytest.raises(rlnb.RunError, match="still queued"):
        interrupted.resume()
    handle = interrupted.jobs[0].folder.handle
    handle.write_text(json.dumps({**json.loads(handle.read_text()), "created_s": 1.0}))
    assert rlnb.Run(interrupted.path).state == "timeout", "nobody goes on with it"


def test_it_can_be_cancelled_there(interrupted: rlnb.Run) -> None:
    interrupted.cancel()
    assert rlnb.Run(interrupted.path).state == "timeout"
    assert not rlnb.HostedJob(interrupted.jobs[0].folder.path).go_on(3)


def test_what_was_interrupted_at_its_very_end_is_not_trained_again(interrupted: rlnb.Run) -> None:
    last = interrupted.checkpoints[-1]
    last.rename(last.with_name("model_4.json"))  # of a library that counts from 1
    assert not rlnb.HostedJob(interrupted.jobs[0].folder.path).go_on(3)
    assert len(rlnb.Run(interrupted.path).jobs) == 1


def test_a_run_of_a_launcher_that_is_not_installed_is_listed(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1000, agent={"iteration_s": 0.1})
    manifest = run.path / "manifest.json"
    elsewhere = dataclasses.replace(run.manifest, launcher="elsewhere")
    manifest.write_text(json.dumps(to_json(elsewhere)))
    (listed,) = rlnb.runs()
    assert listed.state in ("queued", "starting", "running"), "its heartbeat says so"
    (run.jobs[0].folder.path / "cancel.json").write_text("{}")
