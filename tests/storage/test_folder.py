"""A folder that other users can write is entered through no link of theirs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from users import ANN, EVE, as_root, as_user, given, link, shared_root

import rlnb
from rlnb.storage import files
from rlnb.storage.access import Folder, ForeignLinkError

TEAM = 54_100

pytestmark = as_root


@pytest.fixture
def shared(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with shared_root() as folder:
        monkeypatch.setattr(rlnb.options, "root", folder)
        yield folder


@pytest.fixture
def home(shared: Path) -> Path:
    return shared.parent / "ann"


def test_a_record_is_not_read_through_anothers_link(shared: Path, home: Path) -> None:
    secret = home / "secret.json"
    secret.write_text('{"text": "secret"}')
    given(secret, ANN)
    link(shared / "manifest.json", secret)
    read = "from rlnb.storage import files\nprint(files.read_json(rlnb.options.folders.path / 'manifest.json'))"
    printed = as_user(ANN, read, shared)
    assert "which is not followed" in printed
    assert "secret'" not in printed
    os.chown(shared / "manifest.json", ANN, ANN, follow_symlinks=False)
    assert "{'text': 'secret'}" in as_user(ANN, read, shared), "an own link is"


def test_a_group_may_write_only_in_a_teams_folder(shared: Path) -> None:
    shared.chmod(0o2775)
    os.chown(shared, ANN, TEAM)
    make = "from rlnb.storage import files\nfiles.make_folder(rlnb.options.folders.path / {name!r} / 'x')"
    as_user(ANN, make.format(name="a"), shared, groups=(TEAM,), umask=0o002)
    shared.chmod(0o2755)
    as_user(ANN, make.format(name="b"), shared, groups=(TEAM,), umask=0o002)
    modes = [(shared / name).stat().st_mode & 0o777 for name in ("a", "a/x", "b", "b/x")]
    assert modes == [0o775, 0o775, 0o755, 0o755]


def test_root_follows_the_links_of_a_folder_that_was_mounted_from_its_owner(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    link(tmp_path / "link", tmp_path / "target")
    with pytest.raises(ForeignLinkError, match=f"is a link of the user {EVE}, which is not followed"):
        Folder(tmp_path / "link")
    os.chown(tmp_path, EVE, EVE)
    Folder(tmp_path / "link").close()


def test_a_path_that_leads_nowhere_leaves_no_descriptor_open(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    before = os.listdir("/proc/self/fd")
    for name in ("missing", "file", "loop", "missing/below", "file/below"):
        with pytest.raises(OSError, match=r"No such file|Not a directory|symbolic links"):
            Folder(tmp_path / name)
    assert os.listdir("/proc/self/fd") == before


def test_a_file_that_is_overwritten_keeps_its_mode_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"1")
    (tmp_path / "film.mp4").chmod(0o600)
    (tmp_path / "link.mp4").symlink_to("film.mp4")
    files.make_file(tmp_path / "link.mp4")
    assert (tmp_path / "link.mp4").is_symlink()
    assert (tmp_path / "film.mp4").read_bytes() == b"1"
    assert (tmp_path / "film.mp4").stat().st_mode & 0o777 == 0o600
