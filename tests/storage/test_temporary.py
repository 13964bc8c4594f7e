"""The folder for temporary files of a user's workers: the user's own, the same for all of them, and never overgrown."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from users import ANN, EVE, as_root, as_user, given, link, shared_root

from rlnb.storage import temporary
from rlnb.storage.temporary import KEPT_S, shared_folder, tidy, variables

NAME = f"rlnb-{os.getuid()}-tmp"
OLD_S = KEPT_S + 60.0
ASK = "from rlnb.storage import temporary\nprint(temporary.variables())"


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files that all users share."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    yield tmp_path / "tmp"
    temporary._made.clear()


def made(path: Path, age_s: float) -> Path:
    """Make a file, or a folder with a file for a name that ends in a dash, that was last used some seconds ago."""
    file = path / "file" if path.name.endswith("-") else path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    for changed in {file, path}:
        os.utime(changed, (time.time() - age_s,) * 2)
    return path


def test_in_a_folder_of_all_users_there_is_one_of_ones_own(usual: Path) -> None:
    assert variables() == {"TMPDIR": str(usual / NAME)} == variables()
    assert (usual / NAME).stat().st_mode & 0o777 == 0o700


def test_a_folder_of_the_users_own_stays_as_it_is(usual: Path) -> None:
    usual.chmod(0o755)
    assert variables() == {}
    assert not list(usual.iterdir())


def test_inside_of_a_worker_the_folder_is_the_same_and_the_queue_is_found(
    usual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", variables()["TMPDIR"])
    assert variables() == {}
    assert shared_folder() == usual


@pytest.mark.parametrize("mode", [0o755, 0o750])
def test_a_folder_that_others_could_read_is_closed(usual: Path, mode: int) -> None:
    (usual / NAME).mkdir(mode)
    assert variables() == {"TMPDIR": str(usual / NAME)}
    assert (usual / NAME).stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_could_write_is_not_used(usual: Path) -> None:
    (usual / NAME).mkdir()
    (usual / NAME).chmod(0o777)
    other = Path(variables()["TMPDIR"])
    assert other.name.startswith(f"{NAME}-")
    assert variables() == {"TMPDIR": str(other)}


def test_without_a_folder_for_temporary_files_nothing_fails(usual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(usual / "missing"))
    assert variables() == {}
    tidy()


@as_root
@pytest.mark.parametrize("taken", ["folder", "file", "link"])
def test_what_another_user_has_made_under_the_name_is_not_used(taken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with shared_root() as root:
        place = root / f"rlnb-{ANN}-tmp"
        if taken == "link":
            link(place, root.parent / "ann")
        else:
            place.mkdir(0o777) if taken == "folder" else place.write_text("")
            given(place, EVE)
        monkeypatch.setenv("TMPDIR", str(root))
        printed = as_user(ANN, f"{ASK}\nimport os\nprint(oct(os.stat(temporary.variables()['TMPDIR']).st_mode))", root)
        assert f"{{'TMPDIR': '{place}-" in printed
        assert "0o40700" in printed
        assert not list(root.glob(f"{place.name}-*")), "it is removed with the process that has made it"


@as_root
def test_isaac_labs_lock_of_another_user_keeps_no_one_from_training(monkeypatch: pytest.MonkeyPatch) -> None:
    with shared_root() as root:
        (root / "isaaclab_usd_spawn.lock").write_text("")
        given(root / "isaaclab_usd_spawn.lock", EVE)
        monkeypatch.setenv("TMPDIR", str(root))
        lock = "import tempfile\nopen(tempfile.gettempdir() + '/isaaclab_usd_spawn.lock', 'a')\nprint('locked')"
        assert "PermissionError" in as_user(ANN, lock, root)
        assert as_user(ANN, f"from rlnb.storage import temporary\ntemporary.use()\n{lock}", root) == "locked\n"


@as_root
def test_nothing_is_removed_through_the_link_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    with shared_root() as root:
        mine = made(root.parent / "ann" / "mine", OLD_S)
        given(mine, ANN)
        link(root / f"rlnb-{ANN}-tmp", root.parent / "ann")
        monkeypatch.setenv("TMPDIR", str(root))
        assert as_user(ANN, "from rlnb.storage import temporary\ntemporary.tidy()", root) == ""
        assert mine.exists()


def test_what_was_not_used_for_long_is_removed_and_nothing_else_is(usual: Path) -> None:
    own = usual / NAME
    old = {made(own / "isaaclab_usd_spawn.lock", OLD_S), made(own / "download-", OLD_S)}
    old |= {made(usual / f"{NAME}-abcdefgh" / "file", OLD_S).parent}
    os.utime(usual / f"{NAME}-abcdefgh", (time.time() - OLD_S,) * 2)
    kept = {made(own / "new", 60.0), made(usual / "theirs", OLD_S), made(usual / f"{NAME}-12345678" / "file", 60.0)}
    used = made(own / "used-", OLD_S)
    os.utime(used / "file", (time.time(), time.time() - OLD_S))
    tidy()
    assert not [path for path in old if path.exists()]
    assert all(path.exists() for path in (*kept, used / "file"))


def test_what_a_living_process_may_have_open_is_kept(usual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary, "KEPT_S", 1.0)
    env = {**os.environ, **variables()}
    before = made(usual / NAME / "before", 60.0)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=env)
    try:
        since = made(usual / NAME / "since", 0.0)
        time.sleep(1.5)
        tidy()
        assert (before.exists(), since.exists()) == (False, True)
    finally:
        process.communicate(b"\n")
    tidy()
    assert not since.exists()
