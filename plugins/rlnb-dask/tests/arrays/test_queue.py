"""What the queues share: ranges of elements, and the refusal of an array."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlnb_dask.arrays.queue import AwayError, ranges
from rlnb_dask.arrays.slurm import SlurmArrays

import rlnb


@pytest.mark.parametrize(("numbers", "text"), [([5], "5"), ([0, 1, 2], "0-2"), ([9, 3, 4, 7], "3-4,7,9"), ([], "")])
def test_numbers_are_written_as_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


def sbatch(folder: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Put a program in place of sbatch."""
    program = folder / "sbatch"
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_refusal_has_the_words_of_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sbatch(tmp_path, monkeypatch, "echo 'Invalid qos specification' >&2; echo Exiting. >&2; exit 1")
    with pytest.raises(rlnb.RlnbError, match=r"^Invalid qos specification$") as error:
        SlurmArrays().submit(tmp_path / "element.sh", tmp_path / "1.jobs", name="rlnb-1", count=2, at_once=None)
    assert not isinstance(error.value, AwayError)


def test_a_controller_that_is_away_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sbatch(tmp_path, monkeypatch, "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1")
    with pytest.raises(AwayError, match="Unable to contact"):
        SlurmArrays().submit(tmp_path / "element.sh", tmp_path / "1.jobs", name="rlnb-1", count=2, at_once=None)
