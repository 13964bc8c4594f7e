"""The conversions between walltimes and seconds."""

from __future__ import annotations

import pytest
from rlnb_dask.queues.walltime import clock_of, seconds_of, slurm_seconds_of


@pytest.mark.parametrize(
    ("walltime", "seconds"),
    [("00:00:01", 1), ("01:00:00", 3600), ("2-01:00:00", 49 * 3600), ("100:00:00", 360_000)],
)
def test_a_walltime_is_converted_to_seconds(walltime: str, seconds: int) -> None:
    assert seconds_of(walltime) == seconds


@pytest.mark.parametrize("walltime", ["", "8 hours", "08:00", "-1:00:00", None, 8])
def test_a_malformed_walltime_gives_none(walltime: object) -> None:
    assert seconds_of(walltime) is None


def test_a_clock_may_have_more_than_24_hours() -> None:
    assert clock_of(32 * 3600 + 30 * 60 + 5) == (32, 30, 5)


@pytest.mark.parametrize(
    ("walltime", "seconds"),
    [
        ("90", 90 * 60),
        ("08:00", 8 * 60),
        ("1:30:00", 90 * 60),
        ("1-12", 36 * 3600),
        ("1-12:30", 36 * 3600 + 30 * 60),
        ("1-12:30:05", 36 * 3600 + 30 * 60 + 5),
        ("1-12:30:05:00", None),
        ("8 hours", None),
        (90, None),
    ],
)
def test_slurms_own_forms_are_converted_to_seconds(walltime: object, seconds: int | None) -> None:
    assert slurm_seconds_of(walltime) == seconds
