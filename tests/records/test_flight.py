"""Tests of rlnb.records.flight."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import rlnb
from rlnb.records.flight import FLIGHT, REPLAY, VALUES, Flight, read, write
from rlnb.reports.sections import summary

RECORD = Flight(
    what="The reward term 'effort' is nan in env 3 in env step 12, in iteration 0.",
    kind="term",
    name="effort",
    label="",
    index=0,
    env=3,
    step=12,
    iteration=0,
    first_step=0,
    labels={"observation/policy": ("joints", "clock")},
)
ARRAYS = {"term/effort": np.array([[[1.0]], [[np.nan]]], dtype="float32"), "action": np.zeros((2, 1, 4), "float32")}
REPLAY_ARRAYS = {"variable/.clock": np.asarray(3), "random": np.zeros((2, 5), "uint8")}


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert write(tmp_path / "flight0", RECORD, ARRAYS, REPLAY_ARRAYS) == tmp_path / "flight0" / VALUES
    record = read(tmp_path / "flight0")
    assert record == dataclasses.replace(RECORD, folder=str(tmp_path / "flight0"))
    assert {*record.arrays} == {*ARRAYS}
    assert {*record.replay} == {*REPLAY_ARRAYS}
    assert record.replay["variable/.clock"].item() == 3
    np.testing.assert_array_equal(record.arrays["term/effort"], ARRAYS["term/effort"])


def test_the_newer_record_replaces_the_older_one(tmp_path: Path) -> None:
    write(tmp_path, RECORD, ARRAYS, REPLAY_ARRAYS)
    write(tmp_path, dataclasses.replace(RECORD, env=5), {"action": ARRAYS["action"]}, {})
    record = read(tmp_path)
    assert record is not None
    assert record.env == 5
    assert [*record.arrays] == ["action"]
    assert {path.name for path in tmp_path.iterdir()} == {FLIGHT, VALUES, REPLAY}


@pytest.mark.parametrize("text", ["", "{", '{"what": 3}', "[]"])
def test_a_damaged_record_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / FLIGHT).write_text(text)
    assert read(tmp_path) is None
    assert read(tmp_path / "nothing") is None


def test_a_run_has_the_record_of_its_newest_training(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    assert run.flight is None
    job = run.jobs[0].folder
    write(job.flight(1), dataclasses.replace(RECORD, env=1), ARRAYS, REPLAY_ARRAYS)
    assert run.flight is not None
    assert run.flight.env == 1, "the record of another rank"
    write(job.flight(0), RECORD, ARRAYS, REPLAY_ARRAYS)
    assert run.flight.env == 3, "of the same step, the first rank"
    write(job.flight(0), dataclasses.replace(RECORD, step=1, fatal=False), ARRAYS, REPLAY_ARRAYS)
    assert run.flight.env == 1, "the rank that ended the training, not one that noted a harmless value before"
    other = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    page = summary([other, run])
    assert RECORD.what.replace("'", "&#x27;") in page
    assert page.count("not finite") == 1


def test_a_value_that_is_not_finite_comes_before_an_alert(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    folder = run.jobs[0].folder.flight(0)
    alert = dataclasses.replace(RECORD, kind="alert", what="reward < 5", step=3, fatal=False)
    write(folder.with_name(f"alert-{folder.name}"), alert, ARRAYS, REPLAY_ARRAYS)
    assert run.flight is not None
    assert run.flight.kind == "alert"
    write(folder, dataclasses.replace(RECORD, fatal=False), ARRAYS, REPLAY_ARRAYS)
    assert run.flight.kind == "term"
