"""Values of files are kept while the files are the same, and the collector of cycles is paused for a while."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from pathlib import Path

import pytest

from rlnb.storage import cache
from rlnb.storage.cache import SETTLED_S, Kept, is_settled, stamp_of, stamps_of


def test_it_is_paused_and_goes_on_even_after_an_error() -> None:
    assert gc.isenabled()
    seen = []
    with contextlib.suppress(KeyError), cache.collector_paused():
        seen.append(gc.isenabled())
        raise KeyError
    assert (seen, gc.isenabled()) == ([False], True)


def test_it_stays_off_if_it_was() -> None:
    gc.disable()
    try:
        with cache.collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


# -- kept ------------------------------------------------------------------------------------------------------------


def test_a_stamp_changes_with_the_content_the_file_and_the_names_in_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1")
    stamps = [stamp_of(path)]
    path.write_text("22")
    stamps.append(stamp_of(path))
    os.utime(path, ns=(1, 1))
    stamps.append(stamp_of(path))
    other = tmp_path / "b"
    other.write_text("22")
    os.utime(other, ns=(1, 1))
    other.replace(path)
    stamps.append(stamp_of(path))
    assert len({*stamps}) == 4
    os.utime(tmp_path, ns=(1, 1))
    before = stamp_of(tmp_path)
    (tmp_path / "c").touch()
    assert stamp_of(tmp_path) != before


def test_a_path_without_a_file_has_a_stamp_too(tmp_path: Path) -> None:
    assert stamps_of([str(tmp_path / "none")]) == ((0, 0, 0),)


def test_files_are_settled_some_seconds_after_their_last_write(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    assert not is_settled([stamp_of(path)])
    ago = time.time() - SETTLED_S - 1
    os.utime(path, (ago, ago))
    assert is_settled([stamp_of(path)])
    os.utime(path, (time.time() + 3600, time.time() + 3600))
    assert not is_settled([stamp_of(path)]), "by a clock that is ahead"


def test_a_value_is_kept_for_one_state() -> None:
    values: Kept[str] = Kept()
    values.put("key", (1, 2), "value")
    assert values.get("key", (1, 2)) == "value"
    assert values.get("key", (1, 3)) is None
    assert values.get("other", (1, 2)) is None


def test_the_oldest_of_too_many_values_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST", 2)
    values: Kept[int] = Kept()
    for number in range(3):
        values.put(number, None, number)
    assert [values.get(number, None) for number in range(3)] == [None, 1, 2]
