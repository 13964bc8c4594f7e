"""Fixtures for queue launchers: their settings, and the problems they report."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rlnb_dask.queues import launcher

import rlnb
from rlnb.hooks import plugins
from rlnb.launchers import Resources
from rlnb.plugin import Manifest


@pytest.fixture(autouse=True)
def unanswered() -> None:
    """Forget the answers of the queue that an earlier test has got."""
    launcher._answers.clear()


@pytest.fixture
def settings() -> dict[str, object]:
    """All settings that become text of the job script."""
    return {
        "nodes": 2,
        "cpus_per_node": 8,
        "gpus_per_node": 4,
        "memory_gib_per_node": 64,
        "walltime": "1-08:30:00",
        "partition": "gpu",
        "account": "robots",
        "interface": "ib0",
        "prologue": ["module load cuda"],
        "python": "/shared/my env/bin/python",
    }


@pytest.fixture
def gpu_script() -> Callable[[str], str]:
    """Return a function that gives a queue's job for four GPUs, with PYTHON for the interpreter."""

    def script(name: str) -> str:
        launcher: Any = plugins.make_launcher(name, {"walltime": "01:00:00", "gpus_per_node": 4})
        return str(launcher.job_script()).replace(shlex.quote(sys.executable), "PYTHON")

    return script


@pytest.fixture
def problems() -> Callable[..., str]:
    """Return a function that gives a launcher's problems with a training, one per line."""

    def lines(name: str = "slurm", resources: Resources | None = None, **settings: object) -> str:
        launcher = plugins.make_launcher(name, {"walltime": "01:00:00", **settings})
        resources, task = resources or Resources(), rlnb.Task(id="Echo")
        manifest = Manifest(run_id="r", created="", task=task, library="echo", resources=resources)
        return "\n".join(problem.what for problem in launcher.check(manifest))

    return lines


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Return a function that puts a script under the name of a Slurm command first on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def write(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return write
