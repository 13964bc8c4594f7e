"""A training in this process, from its manifest to its result."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import rlnb
from rlnb import plugins
from rlnb.hooks.registry import manager
from rlnb.records.layout import JobDir
from rlnb.records.options import TrainOptions
from rlnb.records.record import JobRecord
from rlnb.spec import Job
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.worker.jobs.train import train


def job_of(run: Path, number: int, options: TrainOptions) -> JobDir:
    job = JobDir(run / "jobs" / f"{number}-train")
    job.path.mkdir(parents=True)
    files.write_once(job.job, to_json(Job(kind="train", options=to_json(options))))
    return job


@pytest.fixture
def run(tmp_path: Path) -> Path:
    manifest = rlnb.Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo", max_iterations=6)
    files.write_once(tmp_path / "manifest.json", to_json(manifest))
    return tmp_path


def test_the_result_names_the_newest_checkpoint_and_the_record_of_the_start(run: Path) -> None:
    job = job_of(run, 0, TrainOptions())
    train(job.path)
    record = JobRecord(job, "local")
    assert record.result is not None
    assert (record.result.outcome, record.result.checkpoint) == ("completed", "logs/model_5.json")
    assert record.result.values == {}, "without a simulator there are no digests of ranks"
    assert record.started is not None
    assert (record.started.first_iteration, record.started.max_iterations) == (0, 6)


def test_options_of_the_job_take_precedence_over_the_manifest(run: Path) -> None:
    train(job_of(run, 0, TrainOptions()).path)
    job = job_of(run, 1, TrainOptions(checkpoint="logs/model_4.json", max_iterations=8))
    train(job.path)
    started = JobRecord(job, "local").started
    assert started is not None
    assert (started.first_iteration, started.max_iterations) == (5, 8)


def test_a_rank_that_is_not_the_first_writes_no_record(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    job = job_of(run, 0, TrainOptions())
    train(job.path)
    assert {path.name for path in job.path.iterdir()} == {"job.json"}


def test_plugins_get_the_result_at_the_end(run: Path) -> None:
    heard: list[tuple[Path, str]] = []

    class Listener:
        @rlnb.hookimpl
        def rlnb_run_finished(self, run_dir: Path, manifest: rlnb.Manifest, result: rlnb.Result) -> None:
            heard.append((run_dir, json.dumps(to_json(result))))

    listener = Listener()
    manager().register(listener)
    try:
        job = job_of(run, 0, TrainOptions())
        train(job.path)
    finally:
        manager().unregister(listener)
    ((folder, result),) = heard
    assert folder == run
    assert json.loads(result) == files.read_json(job.result)


def test_a_companion_with_python_objects_is_refused_before_the_library_reads_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(job_of(run, 0, TrainOptions()).path)
    buffered = dataclasses.replace(plugins.library("echo"), checkpoint_companions=("{stem}.buffer.npz",))
    monkeypatch.setattr(plugins, "library", lambda name: buffered)
    np.savez(run / "logs" / "model_4.buffer.npz", actions=np.array([{}], dtype=object))
    job = job_of(run, 1, TrainOptions(checkpoint="logs/model_4.json", max_iterations=8, trust=True))
    with pytest.raises(rlnb.RlnbError, match=r"actions\.npy holds Python objects"):
        train(job.path)
    assert not job.started.exists()
