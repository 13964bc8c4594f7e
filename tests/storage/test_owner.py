"""The owner of a file."""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path

import pytest

from rlnb.storage import access
from rlnb.storage.access import another_owner, others, printable, renamers

OTHER_UID = 65_534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_the_owner_of_a_link_counts_and_not_that_of_its_target(tmp_path: Path) -> None:
    own, link = tmp_path / "own", tmp_path / "link"
    own.touch()
    link.symlink_to("own")
    assert another_owner(own, tmp_path) is None
    os.chown(link, OTHER_UID, OTHER_UID, follow_symlinks=False)
    assert another_owner(link, tmp_path) == OTHER_UID
    assert another_owner(own, tmp_path) is None
    assert another_owner(link, tmp_path / "missing") == OTHER_UID


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_where_a_share_gives_all_files_to_one_user_none_is_foreign() -> None:
    with tempfile.TemporaryDirectory() as made:  # pytest's folders are closed to other users
        folder, path = Path(made), Path(made) / "manifest.json"
        folder.chmod(0o777)
        path.touch()
        os.chown(path, OTHER_UID, OTHER_UID)
        assert another_owner(path, folder) == OTHER_UID
        setfsuid = ctypes.CDLL(None).setfsuid  # new files of this thread belong to that user, as on such a share
        setfsuid(OTHER_UID)
        try:
            assert another_owner(path, folder) is None
        finally:
            setfsuid(0)


def test_where_all_files_have_the_same_mode_it_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0o666)
    assert (renamers(tmp_path), others(tmp_path / "file")) == ("all users", "can be written by all users")

    def mounted(folder: Path) -> os.stat_result:
        """Make a file as a mount of object storage makes it, which has one mode for all files."""
        with tempfile.TemporaryFile(dir=folder) as file:
            os.fchmod(file.fileno(), 0o777)
            return os.fstat(file.fileno())

    monkeypatch.setattr(access, "made_anew", mounted)
    assert (renamers(tmp_path), others(tmp_path / "file")) == ("", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to a group")
@pytest.mark.parametrize(("group", "who"), [(0, ""), (54_100, "the group 54100")])
def test_only_the_group_of_root_is_trusted(tmp_path: Path, group: int, who: str) -> None:
    os.chown(tmp_path, 0, group)
    tmp_path.chmod(0o775)
    assert renamers(tmp_path) == who


def test_a_text_of_another_user_stays_one_plain_line() -> None:
    assert printable("a\x1b[2J\nü\u202eb") == "a\\x1b[2J\\nü\\u202eb"
    assert printable("x" * 10, most=4) == "xxxx..."
