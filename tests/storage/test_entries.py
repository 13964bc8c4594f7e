"""What lies in a folder is listed, read, copied, renamed and removed through no link of another user."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from users import EVE, as_root, given, link

from rlnb.errors import RlnbError
from rlnb.storage import entries, files
from rlnb.storage.access import ForeignLinkError, made_anew
from rlnb.storage.entries import MOST_ALIKE, MOST_FOLDERS, files_below, is_small, walk

THROUGH: dict[str, Callable[[Path], object]] = {
    "children": entries.children,
    "copy": lambda folder: entries.copy(folder / "mine", folder.parent / "copy"),
    "copy to": lambda folder: entries.copy(folder.parent / "other", folder / "copy"),
    "link": lambda folder: entries.link(folder.parent / "other", folder / "copy"),
    "make": lambda folder: entries.make(folder / "new"),
    "made anew": made_anew,
    "move": lambda folder: entries.move(folder / "mine", folder.parent / "moved"),
    "move to": lambda folder: entries.move(folder.parent / "other", folder / "moved"),
    "open to add": lambda folder: entries.open_to_add(folder / "mine").close(),
    "open to change": lambda folder: entries.open_to_change(folder / "mine").close(),
    "read": lambda folder: entries.read_bytes(folder / "mine"),
    "remove": lambda folder: entries.remove(folder / "mine"),
    "remove tree": lambda folder: entries.remove_tree(folder / "tree"),
    "rename": lambda folder: entries.rename(folder / "mine", "renamed"),
    "touch": lambda folder: entries.touch(folder / "mine"),
    "touch folder": lambda folder: entries.touch_folder(folder / "tree"),
}


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Return a folder of this user, beside which there is a folder that others share, with a file."""
    folder = tmp_path / "private"
    (folder / "tree").mkdir(parents=True)
    (folder / "mine").write_text("mine")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "other").write_text("other")
    return folder


def state(folder: Path) -> list[tuple[str, int, float, str]]:
    return [
        (path.name, path.stat().st_mode, path.stat().st_mtime, path.read_text() if path.is_file() else "")
        for path in sorted([folder, *folder.rglob("*")])
    ]


@as_root
@pytest.mark.parametrize("name", THROUGH)
def test_nothing_is_done_through_anothers_link(name: str, private: Path) -> None:
    folder, before = private.with_name("shared") / "linked", state(private)
    link(folder, private)
    with pytest.raises(ForeignLinkError, match="is a link of the user"):
        THROUGH[name](folder)
    assert state(private) == before
    assert {path.name for path in folder.parent.iterdir()} == {"linked", "other"}


@pytest.mark.parametrize("name", THROUGH)
def test_this_users_own_links_are_followed(name: str, private: Path) -> None:
    folder = private.with_name("shared") / "linked"
    folder.symlink_to(private)
    THROUGH[name](folder)


@as_root
def test_what_anothers_link_leads_to_is_not_listed(private: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = private.with_name("shared") / "linked"
    link(folder, private)
    assert not entries.matching(folder, "*")
    assert "is a link of the user" in caplog.text
    assert not list(walk(folder))
    assert not list(files_below(folder))


def test_a_folder_that_does_not_exist_has_no_entries(tmp_path: Path) -> None:
    assert entries.children(tmp_path / "none") == entries.matching(tmp_path / "none", "*") == []


def test_entries_are_chosen_by_a_pattern(tmp_path: Path) -> None:
    for name in ("a.json", "b.json", "c.txt"):
        (tmp_path / name).touch()
    assert sorted(entries.matching(tmp_path, "*.json")) == [tmp_path / "a.json", tmp_path / "b.json"]


def test_a_folder_is_walked_like_that_of_the_os(tmp_path: Path) -> None:
    for name in ("a/b", "a/c", "d"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    found = {folder: (sorted(below), sorted(names)) for folder, below, names in walk(tmp_path)}
    expected = {Path(top): (sorted(below), sorted(names)) for top, below, names in os.walk(tmp_path)}
    assert found.keys() == expected.keys()
    assert found[tmp_path] == (["a", "d"], ["link"]), "a link is no folder, and is not followed"


def test_a_copy_has_the_content_the_times_and_the_mode(tmp_path: Path) -> None:
    original = tmp_path / "original"
    original.write_bytes(b"x" * 100_000)
    original.chmod(0o640)
    os.utime(original, (1.0, 2.0))
    entries.copy(original, tmp_path / "copy")
    status = (tmp_path / "copy").stat()
    assert ((tmp_path / "copy").read_bytes(), status.st_mtime) == (original.read_bytes(), 2.0)
    assert stat.S_IMODE(status.st_mode) == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"original", "copy"}


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RlnbError, match="is not a regular file"):
        entries.read_bytes(tmp_path / "pipe")
    with pytest.raises(OSError, match="is not a regular file"):
        entries.copy(tmp_path / "pipe", tmp_path / "copy")


@pytest.mark.parametrize("write", [entries.open_to_add, entries.open_to_change, entries.touch])
def test_no_file_is_written_that_has_a_further_name(write: Callable[[Path], object], private: Path) -> None:
    os.link(private / "mine", private.with_name("shared") / "linked")
    with pytest.raises(ForeignLinkError, match=r"has further names \(it is a hard link\)"):
        write(private.with_name("shared") / "linked")
    assert (private / "mine").read_text() == "mine"


@as_root
def test_no_file_is_read_to_which_another_user_can_have_linked(private: Path) -> None:
    shared = private.with_name("shared")
    os.link(private / "mine", shared / "linked")
    assert entries.read_text(shared / "linked") == "mine", "no other user can write this folder"
    given(shared, EVE)
    os.chown(private / "mine", 0, 0)
    with pytest.raises(ForeignLinkError, match="has a further name elsewhere"):
        entries.read_text(shared / "linked")
    os.chown(shared, 0, 0)
    shared.chmod(0o1777)
    with pytest.raises(ForeignLinkError, match="has a further name elsewhere"):
        files.read_json(shared / "linked")


def test_a_file_that_is_opened_to_add_grows_and_is_made_with_a_mode(tmp_path: Path) -> None:
    for _ in range(2):
        with entries.open_to_add(tmp_path / "log") as file:
            file.write(b"line\n")
    assert (tmp_path / "log").read_bytes() == b"line\nline\n"
    with entries.open_to_add(tmp_path / "key", anew=True, mode=0o600):
        assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        entries.open_to_add(tmp_path / "key", anew=True)


def test_a_tree_that_cannot_be_removed_stays_without_a_word_if_asked(tmp_path: Path) -> None:
    entries.remove_tree(tmp_path / "none", ignore_errors=True)
    entries.remove(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        entries.remove_tree(tmp_path / "none")


WRITERS: dict[str, Callable[[Path], object]] = {
    "bytes": lambda path: files.write_bytes(path, b"new"),
    "anew": lambda path: files.replace_json(path, {"new": 1}),
    "once": lambda path: files.write_once(path, {"new": 1}),
    "copy": lambda path: entries.copy(path.with_name("other"), path),
}


@as_root
@pytest.mark.parametrize("kind", ["link", "hard link", "file"])
@pytest.mark.parametrize("name", WRITERS)
def test_what_another_user_has_put_at_a_temporary_name_is_not_used(
    name: str, kind: str, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)
    target, before = private.with_name("shared") / "new.json", state(private)
    planted = target.with_name(files.temporary_name(target.name))
    if kind == "link":
        link(planted, private / "mine")
    elif kind == "hard link":
        planted.hardlink_to(private / "mine")
    else:
        planted.touch()
        given(planted, EVE)
    with contextlib.suppress(OSError, RlnbError):
        WRITERS[name](target)
    assert state(private) == before
    assert not target.exists() or target.stat().st_uid != EVE


def test_nobody_can_foresee_a_temporary_name() -> None:
    assert len({files.temporary_name("new.json") for _ in range(100)}) == 100


# -- walk ------------------------------------------------------------------------------------------------------------


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


def test_thousands_of_checkpoints_do_not_hide_the_folder_with_the_event_files(tmp_path: Path) -> None:
    for number in range(MOST_FOLDERS + 100):
        (tmp_path / f"step_{number}").mkdir()
    (tmp_path / "summaries").mkdir()
    (tmp_path / "summaries" / "events.out.tfevents.1").touch()
    found = [path.name for path in files_below(tmp_path, lambda name: "tfevents" in name, alike=MOST_ALIKE)]
    assert found == ["events.out.tfevents.1"]
    assert len([*files_below(tmp_path, alike=1)]) == 1
