"""W&B follows a run only if its tags request it and the worker's interpreter allows it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rlnb

WAIT_S = 60.0
Train = Callable[..., rlnb.Run]
Wait = Callable[[rlnb.Run], None]


def test_a_run_without_the_tag_is_not_followed(train: Train, wait_for_agent: Wait) -> None:
    run = train("wandbish").wait(WAIT_S)
    wait_for_agent(run)
    assert not (run.path / "wandb").exists()
    code = (
        "import pathlib, subprocess, sys; from rlnb import Manifest, Task; import rlnb_wandb.plugin as plugin\n"
        "def refuse(*_, **__): raise AssertionError('the plugin starts a process')\n"
        "subprocess.Popen = refuse\n"
        "manifest = Manifest(run_id='r', created='', task=Task(id='Echo'), library='echo', tags=('mine',))\n"
        "assert plugin.rlnb_check(manifest) == []\n"
        "plugin.rlnb_run_started(pathlib.Path('.'), manifest)\n"
        "plugin.rlnb_run_finished()\n"
        "print(*sorted({'wandb', 'tensorboard', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def problem_of(train: Train, *tags: str, **arguments: Any) -> rlnb.Problem:
    with pytest.raises(rlnb.CheckError) as caught:
        train(*tags, **arguments)
    (problem,) = caught.value.problems
    return problem


def test_a_missing_package_is_a_problem_before_anything_starts(
    root: Path, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = f"{getattr(sys, '_base_executable', sys.executable)} -S"  # a Python without any package
    assert "rlnb-wandb" in problem_of(train, "wandb-offline", python=bare).what
    info = tmp_path / "site/rlnb_wandb-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rlnb-wandb\nVersion: 1.0\n")
    monkeypatch.setenv("PYTHONPATH", str(info.parent))
    problem = problem_of(train, "wandb", python=bare)
    assert problem.what.endswith("No package metadata was found for wandb")
    assert problem.fix == f"Install rlnb-wandb for {bare}, from where rlnb was installed; it brings wandb."
    assert not root.exists()


def test_missing_credentials_are_a_problem_before_anything_starts(
    root: Path, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    problem = problem_of(train, "wandb")
    assert "No API key configured" in problem.what
    assert "wandb login" in problem.fix
    assert not root.exists()
