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


def submit(folder: Path) -> str:
    return SlurmArrays().submit(folder / "element.sh", folder / "1.jobs", name="rlnb-1", count=2, at_once=None)


def test_a_refusal_has_the_words_of_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sbatch(tmp_path, monkeypatch, "echo 'QOSMaxSubmitJobPerUserLimit' >&2; echo 'Job violates policy' >&2; exit 1")
    with pytest.raises(rlnb.RlnbError, match=r"^QOSMaxSubmitJobPerUserLimit\nJob violates policy$") as error:
        submit(tmp_path)
    assert not isinstance(error.value, AwayError)


def test_a_refusal_in_another_encoding_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sbatch(tmp_path, monkeypatch, r"printf 'ung\374ltig\n' >&2; exit 1")
    with pytest.raises(rlnb.RlnbError, match=r"^ung.ltig$"):
        submit(tmp_path)


def test_a_command_that_cannot_be_started_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AwayError, match="sbatch cannot be started"):
        submit(tmp_path)
