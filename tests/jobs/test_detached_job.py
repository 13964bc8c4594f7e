"""A training goes on after an interruption, in one further job."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.jobs import jobs
from rlnb.jobs.detached_job import next_job, rest_of
from rlnb.plugin import Result
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.record import RunRecord
from rlnb.storage import files


@pytest.fixture
def interrupted(root: Path) -> rlnb.Run:
    """A training in pods that its cluster interrupted."""
    launcher = rlnb.injected(nodes=1)  # type: ignore[attr-defined]
    run = rlnb.train("Echo", library="echo", max_iterations=4, launcher=launcher)
    files.write_once(run.jobs[0].folder.result, Result(outcome="failed", values={"interrupted": True}))
    return rlnb.Run(run.path)


def test_without_a_checkpoint_the_options_are_the_same(interrupted: rlnb.Run) -> None:
    job = interrupted.jobs[0].folder
    assert rest_of(interrupted.record, job) == options_of(TrainOptions, job)


def test_a_checkpoint_of_an_ended_training_leaves_nothing(interrupted: rlnb.Run) -> None:
    interrupted.record.folder.logs.mkdir(exist_ok=True)
    (interrupted.record.folder.logs / "model_3.json").write_text('{"iteration": 3, "level": 1.0}')
    assert rest_of(interrupted.record, interrupted.jobs[0].folder) is None
    assert next_job(interrupted.jobs[0].folder, interrupted.record, restart=1, max_restarts=3) is None
    assert len(rlnb.Run(interrupted.path).jobs) == 1


def test_the_job_that_goes_on_is_made_once(interrupted: rlnb.Run) -> None:
    job = interrupted.jobs[0].folder
    made = [next_job(job, interrupted.record, restart=1, max_restarts=3) for _ in range(2)]
    assert [folder.path.name if folder else "" for folder in made] == ["1-train"] * 2
    assert [record.folder.path.name for record in rlnb.Run(interrupted.path).jobs] == ["0-train", "1-train"]
    assert job.successor_name() == "1-train"


def test_the_pod_of_another_user_goes_on_without_a_question(interrupted: rlnb.Run) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(interrupted.path, 12345, 12345)
    with pytest.raises(rlnb.RunError, match="belongs to the user 12345"):
        jobs.start_job(interrupted.record, "train", TrainOptions(), after=interrupted.jobs[0])
    assert next_job(interrupted.jobs[0].folder, interrupted.record, restart=1, max_restarts=3) is not None


def test_a_library_that_cannot_resume_goes_on_only_if_it_had_not_begun(
    interrupted: rlnb.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunRecord, "library_spec", dataclasses.replace(plugins.library("echo"), resumes=False))
    job = interrupted.jobs[0].folder
    assert rest_of(interrupted.record, job) == options_of(TrainOptions, job)
    job.started.write_text("{}")
    with pytest.raises(rlnb.RunError, match="'echo' cannot resume a training"):
        next_job(job, interrupted.record, restart=1, max_restarts=3)
    assert len(rlnb.Run(interrupted.path).jobs) == 1
