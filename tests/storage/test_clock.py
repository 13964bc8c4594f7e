"""The age of files by the clock of their file system."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlnb.storage import clock
from rlnb.storage.clock import age_s

AHEAD_S = 120.0


@pytest.fixture(autouse=True)
def _unread_clock() -> Iterator[None]:
    clock._offsets.clear()
    yield
    clock._offsets.clear()


@pytest.fixture(params=[AHEAD_S, -AHEAD_S], ids=["ahead", "behind"])
def wrong_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """Set this machine's clock two minutes apart from that of the file system; return the difference in seconds."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + request.param)
    return float(request.param)


def test_the_age_of_a_file_does_not_depend_on_this_machines_clock(tmp_path: Path, wrong_clock: float) -> None:
    beat = tmp_path / "beat"
    beat.touch()
    assert age_s(beat) < 5.0
    os.utime(beat, (beat.stat().st_mtime - 30.0,) * 2)
    assert 29.0 < age_s(beat) < 40.0


def test_the_time_of_a_file_system_does_not_depend_on_this_machines_clock(tmp_path: Path, wrong_clock: float) -> None:
    (tmp_path / "beat").touch()
    assert abs(clock.now_s(tmp_path) - (tmp_path / "beat").stat().st_mtime) < 5.0
    assert clock.now_s(tmp_path / "none") == pytest.approx(time.time(), abs=1.0)


def test_a_file_that_does_not_exist_or_lies_in_the_future_is_infinitely_old(tmp_path: Path) -> None:
    assert age_s(tmp_path / "none") == float("inf")
    beat = tmp_path / "beat"
    beat.touch()
    os.utime(beat, (time.time() + 1.0,) * 2)
    assert age_s(beat) == 0.0, "clocks are not exact"
    os.utime(beat, (time.time() + 3600.0,) * 2)
    assert age_s(beat) == float("inf"), "the clock was set back"


def test_a_doubt_is_subtracted_if_the_clock_of_the_file_system_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong_clock: float
) -> None:
    def refuse(_: object) -> None:
        raise PermissionError

    beat = tmp_path / "beat"
    beat.touch()
    monkeypatch.setattr(clock, "made_anew", refuse)
    assert age_s(beat) == pytest.approx(max(0.0, wrong_clock), abs=5.0)
    assert age_s(beat, doubt_s=3600.0) == 0.0
