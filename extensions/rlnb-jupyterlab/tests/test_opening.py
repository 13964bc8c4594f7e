"""What was checked is what is read, also if another user swaps the file for a link meanwhile."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import echo
from rlnb_jupyterlab import detail, logs
from rlnb_jupyterlab.opening import opened

before_opening: list[Callable[[], object]] = []
"""What happens before this process opens something: one function each time."""


def _happen(event: str, _: object) -> None:
    if event == "open" and before_opening:
        before_opening.pop(0)()


sys.addaudithook(_happen)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A folder with a file, and beside it a secret."""
    folder = tmp_path / "run"
    (folder / "media").mkdir(parents=True)
    (folder / "media" / "a.png").write_text("picture")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.png").write_text("secret")
    return folder


@pytest.mark.parametrize("part", ["media/a.png", "media"])
def test_a_swap_for_a_link_reads_no_other_file(run_dir: Path, part: str) -> None:
    """The swap happens just before the first, the second, ... time that the server opens anything."""
    path, aside, seen = run_dir / part, run_dir.parent / "aside", []

    def swap() -> None:
        path.rename(aside)
        path.symlink_to(run_dir.parent / "secret" / path.relative_to(run_dir / "media"))

    for number in range(5):
        before_opening[:] = [*[lambda: None] * number, swap]
        file = opened(run_dir / "media" / "a.png", run_dir)
        before_opening.clear()
        seen.append(file and file.read())
        if file is not None:
            file.close()
        if aside.exists():
            path.unlink()
            aside.rename(path)
    assert set(seen) == {None, b"picture"}


def test_a_file_that_was_opened_stays_the_same(root: Path, tmp_path: Path) -> None:
    run = echo().wait(60)
    (tmp_path / "secret.txt").write_text("secret")
    log, picture = run.jobs[0].folder.log(), run.path / "a.png"
    for path in (log, picture):
        path.write_text("mine\n")
    files = logs.open_log(run, 0, log.name), detail.open_offered(run, picture)
    for path in (log, picture):
        path.unlink()
        path.symlink_to(tmp_path / "secret.txt")
    for file in files:
        assert file is not None
        with file:
            assert logs.piece(file, 0) == ("mine\n", 0, 5)
    assert logs.open_log(run, 0, log.name) is None


def test_the_folder_of_a_run_is_a_link_of_this_user_at_most(run_dir: Path) -> None:
    link = run_dir.parent / "link"
    link.symlink_to(run_dir)
    file = opened(link / "media" / "a.png", link)
    assert file is not None
    file.close()
    if os.geteuid() == 0:
        os.chown(link, 54_002, 54_002, follow_symlinks=False)
        assert opened(link / "media" / "a.png", link) is None
        os.chown(run_dir, 54_002, 54_002)
        file = opened(run_dir / "media" / "a.png", run_dir)
        assert file is not None, "the folder of another user, which is no link, can be read"
        file.close()
