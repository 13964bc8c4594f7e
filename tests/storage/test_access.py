"""A folder that other users can write is entered through no link of theirs; folders that several users share."""

from __future__ import annotations

import os
import re
import subprocess
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


# -- sharing ---------------------------------------------------------------------------------------------------------


THREE = """
from rlnb.tasks.source import write_module
print("checked", *rlnb.check("Echo", library="echo"))
rlnb.options.team = True
print("trusted", *rlnb.check("Echo", library="echo"))
rlnb.options.team = False
write_module(rlnb.options.folders, "Push", "TASK = 1", "a.ipynb", print)
"""


@pytest.mark.parametrize(
    ("name", "mode", "owner"),
    [("", 0o777, 0), ("", 0o755, EVE), ("", 0o2775, 0), ("runs", 0o1777, EVE), ("runs", 0o2775, 0)],
)
def test_nothing_starts_where_another_user_can_replace_it(shared: Path, name: str, mode: int, owner: int) -> None:
    folder = shared / name
    os.chown(folder, owner, TEAM)
    folder.chmod(mode)
    checked, trusted, *_, error = as_user(ANN, THREE, shared, groups=(TEAM,)).strip().splitlines()
    if (mode, name) == (0o755, ""):
        assert "cannot be written" in checked
    else:
        assert f"can replace what you make in {folder}" in checked
        assert "can replace" not in trusted
    assert "rlnb.errors.RlnbError" in error
    assert f"can replace what you make in {folder}" in error
    assert not list((shared / "tasks").iterdir())


def test_what_others_have_in_a_sticky_folder_of_an_administrator_keeps_no_one_from_anything(shared: Path) -> None:
    for name in ("cards", "reports", "x"):
        given(shared / name, EVE)
    link(shared / "y", shared / "x")
    assert "can replace" not in as_user(ANN, THREE, shared)
    assert (shared / "tasks" / "push.py").exists()


@pytest.mark.parametrize("exists", [True, False])
def test_a_root_in_a_folder_that_a_group_can_write_is_refused_before_it_is_made(shared: Path, exists: bool) -> None:
    """A member of the group could rename the root."""
    above = shared / "runs"
    root = above / "own"
    if exists:
        given(root, ANN)
    os.chown(above, 0, TEAM)
    above.chmod(0o2775)
    code = f"rlnb.options.root = {str(root)!r}\n{THREE}"
    checked, trusted, *_ = as_user(ANN, code, shared, groups=(TEAM,)).strip().splitlines()
    assert f"The group {TEAM} can replace what you make in {above}" in checked
    assert "can replace" not in trusted


def test_the_advice_leads_to_a_start(shared: Path) -> None:
    root = given(shared / "own", ANN)
    for folder in (root, given(root / "runs", ANN)):
        folder.chmod(0o777)
    checked, *_ = as_user(ANN, THREE, root).strip().splitlines()
    commands = re.findall(r"In a shell: (chmod [^ ]+ [^ ]+ [^ ]+)\. To", checked)
    assert len(commands) == 2
    for command in commands:
        subprocess.run(command, shell=True, check=True, user=ANN)
    checked, *_ = as_user(ANN, THREE, root).strip().splitlines()
    assert "can replace" not in checked
