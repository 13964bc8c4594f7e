"""The options of a job, read back from its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb import RlnbError
from rlnb.plugin import Result
from rlnb.records.evaluation import EvaluateOptions
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.options import ExportFile, TrainOptions, export_files_of, export_values_of, logged_before, options_of
from rlnb.spec import Job
from rlnb.storage import files
from rlnb.storage.serial import to_json


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    folder = JobDir(tmp_path / "0-train")
    folder.path.mkdir()
    return folder


def test_options_come_back_as_they_were_written(job: JobDir) -> None:
    options = EvaluateOptions(episodes=8, num_envs=4, seed=1, checkpoint="logs/model_4.pt", camera="wrist")
    files.write_once(job.job, to_json(Job(kind="evaluate", options=to_json(options))))
    assert options_of(EvaluateOptions, job) == options


def test_missing_options_of_a_training_have_the_defaults(job: JobDir) -> None:
    assert options_of(TrainOptions, job) == TrainOptions(), "even for a job without a record"
    files.write_once(job.job, {"kind": "train", "options": {"max_iterations": 7}})
    assert options_of(TrainOptions, job) == TrainOptions(max_iterations=7)


def test_an_option_of_a_newer_rlnb_is_ignored(job: JobDir) -> None:
    files.write_once(job.job, {"kind": "train", "options": {"trust": True, "fabric": "ib"}, "priority": 1})
    assert options_of(TrainOptions, job) == TrainOptions(trust=True)


def test_a_missing_option_is_named(job: JobDir) -> None:
    files.write_once(job.job, {"kind": "evaluate", "options": {"checkpoint": "logs/model_4.pt"}})
    with pytest.raises(RlnbError, match=r"EvaluateOptions: .*'episodes'"):
        options_of(EvaluateOptions, job)


@pytest.mark.parametrize("options", [{"logged": {"a": "5", "b": -1, "c": True, "d": 1.5, "e": 7}}, {"logged": [7]}, 7])
def test_odd_ends_of_event_files_are_ignored(job: JobDir, options: object) -> None:
    later = JobDir(job.path.with_name("1-train"))  # before the first job of a run, nothing is logged
    later.path.mkdir()
    files.write_once(later.job, {"kind": "train", "options": options})
    assert logged_before(later) == ({"e": 7} if isinstance(options, dict) and "e" in options["logged"] else {})


# -- export ----------------------------------------------------------------------------------------------------------


def test_files_are_recorded_relative_to_their_run_and_found_after_it_moves(tmp_path: Path) -> None:
    run, elsewhere = RunDir(tmp_path / "runs" / "r"), RunDir(tmp_path / "archive" / "r")
    exports = [
        ExportFile(format="onnx", path=run.exports / "policy.onnx"),
        ExportFile(format="left/torchscript", path=run.exports / "left" / "policy.pt"),
    ]
    values = export_values_of(exports, run)
    assert values == {"onnx": "exports/policy.onnx", "left/torchscript": "exports/left/policy.pt"}
    result = Result(outcome="completed", values=values)
    assert export_files_of(result, run) == exports
    assert export_files_of(result, elsewhere)[0].path == elsewhere.exports / "policy.onnx"
