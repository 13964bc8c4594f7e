"""A worker finds a project in its working folder after everything else, if no other user can put modules there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from users import ANN, EVE, as_root, as_user, given, shared_root

from rlnb.launch.command import BY_RLNB, SAFE_PATH

SEARCH = """
from rlnb.worker.isaac import modules
modules.search_working_folder()
import json, os, sys
found = __import__("importlib").util.find_spec("my_project")
print(found is not None, sys.path[-1] == os.getcwd(), json.__file__ == os.path.join(os.getcwd(), "json.py"), end=" ")
print(os.environ.get("PYTHONSAFEPATH"), end="")
print(modules.why_not("my_project.tasks"))
"""
FOUND, NOT_FOUND = "True True False", "False False False"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "my_project").mkdir()
    (tmp_path / "my_project" / "__init__.py").write_text("")
    (tmp_path / "json.py").write_text("raise SystemExit('executed')")
    return tmp_path


def search(folder: Path, **variables: str) -> str:
    """Return what a worker finds in its working folder."""
    env = {**os.environ, **variables}
    argv = [sys.executable, "-P", "-c", SEARCH]
    return subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def test_ones_own_project_is_found_behind_all_else_and_no_process_inherits_the_flag(project: Path) -> None:
    assert search(project, **{SAFE_PATH: BY_RLNB}) == f"{FOUND} None"


def test_a_safe_path_of_the_users_own_is_respected(project: Path) -> None:
    assert search(project, **{SAFE_PATH: "1"}) == f"{NOT_FOUND} 1"


def test_where_others_can_write_nothing_is_searched_and_the_reason_is_told(project: Path) -> None:
    project.chmod(0o1777)
    told = search(project)
    assert told.startswith(f"{NOT_FOUND} None The working folder {project} has it, but is not searched, because of all")
    assert search(project, RLNB_TEAM="1") == f"{FOUND} None"


@as_root
def test_the_folder_of_another_user_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SAFE_PATH, BY_RLNB)
    with shared_root() as root:
        root.chmod(0o755)
        (root / "my_project").mkdir()
        before = "import rlnb.worker.isaac.modules"
        for owner, expected in ((ANN, FOUND), (EVE, NOT_FOUND)):
            given(root, owner)
            assert as_user(ANN, SEARCH, root, before=before).startswith(expected), owner
        assert f"because of its owner, the user {EVE}" in as_user(ANN, SEARCH, root, before=before)
