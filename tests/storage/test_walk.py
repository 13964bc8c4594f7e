"""The files below a folder that anyone may have filled."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.storage import entries
from rlnb.storage.entries import files_below, is_small


def test_files_come_from_near_to_far_and_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "logs" / "a" / "b").mkdir(parents=True)
    for name in ("near", "a/middle", "a/b/far"):
        (tmp_path / "logs" / name).touch()
    (tmp_path / "logs" / "link").symlink_to("/")
    linked = tmp_path / "linked"
    linked.symlink_to("logs")
    for folder in (tmp_path / "logs", linked):
        paths = [str(path.relative_to(folder)) for path in files_below(folder)]
        assert set(paths[:2]) == {"near", "link"}
        assert paths[2:] == ["a/middle", "a/b/far"]
    assert list(files_below(tmp_path / "missing")) == []


@pytest.mark.parametrize("limit", ["MOST_FOLDERS", "MOST_FILES"])
def test_too_many_folders_or_files_are_left_unread_with_a_warning(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(6):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "file").touch()
    assert len(list(files_below(tmp_path))) == 6
    assert is_small(tmp_path)
    monkeypatch.setattr(entries, limit, 3)
    assert not is_small(tmp_path)
    assert len(list(files_below(tmp_path))) < 6
    assert f"{tmp_path} has more than" in caplog.text
