"""Nothing starts, and no cell is saved, where another user can replace it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from users import ANN, EVE, as_root, as_user, given, link, shared_root

import rlnb

THREE = """
from rlnb.tasks.source import write_module
print("checked", *rlnb.check("Echo", library="echo"))
rlnb.options.team = True
print("trusted", *rlnb.check("Echo", library="echo"))
rlnb.options.team = False
write_module(rlnb.options.folders, "Push", "TASK = 1", "a.ipynb", print)
"""
TEAM = 54_100

pytestmark = as_root


@pytest.fixture
def shared(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with shared_root() as folder:
        monkeypatch.setattr(rlnb.options, "root", folder)
        yield folder


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
