"""Nothing starts, and no cell is saved, where another user can replace it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from users import ANN, EVE, as_root, as_user, shared_root

import rlnb

THREE = """
from rlnb.tasks.cell import write_module
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


def test_a_sticky_folder_of_an_administrator_is_safe(shared: Path) -> None:
    assert "can replace" not in as_user(ANN, THREE, shared)
    assert (shared / "tasks" / "push.py").exists()
