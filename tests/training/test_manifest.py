"""The git state and the versions in a manifest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rlnb


def test_the_commit_is_recorded_and_the_repository_is_unchanged(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    monkeypatch.chdir(repository)
    (repository / "task.py").write_text("1")
    identity = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    for arguments in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "--message", "first"]):
        subprocess.run(["git", *arguments], check=True)
    os.utime(repository / "task.py", (0, 0))  # git status would refresh the index for this file
    index = (repository / ".git" / "index").read_bytes()
    git = rlnb.train("Echo", library="echo", max_iterations=1).manifest.git
    assert (len(git["commit"]), git["state"]) == (40, "clean")
    assert (repository / ".git" / "index").read_bytes() == index, "git took no lock, so a killed git leaves none"


def test_the_versions_are_those_of_python_rlnb_and_the_packages_of_all_plugins(root: Path) -> None:
    versions = rlnb.train("Echo", library="echo", max_iterations=1).manifest.versions
    assert {"rlnb-echo", "rlnb-tasks", "rlnb-dask"} < versions.keys()
    assert (versions["rlnb"], versions["python"]) == (rlnb.__version__, sys.version.split()[0])
