"""MLflow follows a run only if its tags request it and the worker's interpreter has the packages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rlnb_mlflow import plugin

import rlnb

NO_PACKAGE = f"{getattr(sys, '_base_executable', sys.executable)} -S"
"""A Python without any package."""


def test_a_run_without_the_tag_is_not_followed() -> None:
    code = (
        "import pathlib, subprocess, sys; from rlnb import Manifest, Task; import rlnb_mlflow.plugin as plugin\n"
        "def refuse(*_, **__): raise AssertionError('the plugin starts a process')\n"
        "subprocess.Popen = refuse\n"
        "manifest = Manifest(run_id='r', created='', task=Task(id='Echo'), library='echo', tags=('mlflowish',))\n"
        "assert plugin.rlnb_check(manifest) == []\n"
        "plugin.rlnb_run_started(pathlib.Path('.'), manifest)\n"
        "plugin.rlnb_run_finished()\n"
        "print(*sorted({'mlflow', 'sqlalchemy', 'tensorboard', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_each_missing_package_is_a_problem_before_anything_starts(
    root: Path, train: Callable[..., rlnb.Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    for package in plugin.MLFLOW.packages:
        with pytest.raises(rlnb.CheckError) as caught:
            train("mlflow", python=NO_PACKAGE)
        (problem,) = caught.value.problems
        assert problem.what.endswith(f"No package metadata was found for {package}")
        assert f"Install rlnb-mlflow for {NO_PACKAGE}" in problem.fix
        assert f"`{NO_PACKAGE} -m pip install mlflow-skinny alembic sqlalchemy`" in problem.fix
        info = site / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        monkeypatch.setenv("PYTHONPATH", str(site))
    assert not root.exists()
