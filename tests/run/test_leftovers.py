"""Folders of killed processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rlnb
from rlnb.run import pruning
from rlnb.run.pruning import remove_leftovers

OLD_S = pruning.LEFT_S + 60.0


def folder(parent: Path, name: str, age_s: float = OLD_S) -> Path:
    """Make a folder with a file, in which nothing has changed for some seconds."""
    path = parent / name
    path.mkdir(parents=True)
    (path / "worker.log").touch()
    for changed in (path / "worker.log", path):
        os.utime(changed, (time.time() - age_s,) * 2)
    return path


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


def test_old_drafts_of_runs_are_removed_and_nothing_else_is(tmp_path: Path, temporary: Path) -> None:
    runs = tmp_path / "runs"
    old = folder(runs, ".20260101-000000-echo-echo-0000")
    kept = {
        folder(runs, ".20260101-000000-echo-echo-1111", age_s=60.0),
        folder(runs, "20260101-000000-echo-echo-2222"),
        folder(runs, ".ipynb_checkpoints"),
        folder(temporary, "rlnb-bench-01234567"),
    }
    link = runs / ".20260101-000000-link"
    link.symlink_to(tmp_path)
    remove_leftovers(runs)
    assert not old.exists()
    assert {path for path in (*runs.iterdir(), *temporary.iterdir())} == kept | {link}


def test_the_folder_of_a_living_process_is_kept(tmp_path: Path, temporary: Path) -> None:
    dead, living = folder(temporary, "rlnb-warm-01234567"), folder(temporary, "rlnb-warm-abcdefgh")
    argv = [sys.executable, "-c", "input()", str(living / "worker.log")]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE)
    try:
        remove_leftovers(tmp_path / "runs")
        assert (dead.exists(), living.exists()) == (False, True)
    finally:
        process.communicate()
    remove_leftovers(tmp_path / "runs")
    assert not living.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_kept(tmp_path: Path, temporary: Path) -> None:
    theirs = folder(temporary, "rlnb-warm-01234567")
    os.chown(theirs, 65_534, 65_534)
    remove_leftovers(tmp_path / "runs")
    assert theirs.exists()


def test_pruning_removes_leftovers(root: Path, temporary: Path) -> None:
    draft, warm = folder(root / "runs", ".20260101-000000-a-b-0000"), folder(temporary, "rlnb-warm-01234567")
    plan = rlnb.runs().prune()
    assert draft.exists()
    plan.apply()
    assert not draft.exists()
    assert not warm.exists()
