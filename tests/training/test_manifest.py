"""The git state and the versions in a manifest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.plugin import Manifest
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.training.manifest import origin_of


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


def test_weights_in_the_logs_of_a_script_are_those_of_its_stock_run_or_of_any_library(tmp_path: Path) -> None:
    manifest = Manifest(
        run_id="r", created="", task=rlnb.Task(id="train.py"), library=plugins.SCRIPT.name, script=("train.py",)
    )
    files.write_once(tmp_path / "manifest.json", to_json(manifest))
    stock, own = tmp_path / "logs" / "rsl_rl" / "cartpole" / "2026-01-01_00-00-00", tmp_path / "logs" / "own"
    for folder in (stock / "params", own):
        folder.mkdir(parents=True)
    for name in ("agent.yaml", "env.yaml"):
        (stock / "params" / name).touch()
    for path in (stock / "model_4.pt", own / "policy.pt"):
        path.write_bytes(b"weights")
    assert origin_of(stock / "model_4.pt", "rsl_rl").checkpoint == str(stock / "model_4.pt")
    with pytest.raises(rlnb.RlnbError, match=r"trained with rsl_rl: its weights do not fit skrl. Use library='rsl_rl'"):
        origin_of(stock / "model_4.pt", "skrl")
    assert origin_of(own / "policy.pt", "skrl").checkpoint == str(own / "policy.pt")
