"""Fixtures for arrays: commands of a Slurm that answer from files, and the jobs of an array."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rlnb_dask.arrays import rounds
from rlnb_dask.arrays.folder import ArrayFolder

from rlnb.launchers import DetachedJob

SCRIPTS = {
    "sbatch": "echo 17",
    "squeue": 'case "$*" in *" -n "*) ;; *) cat $FAKE/states ;; esac',
    "scancel": "true",
    "scontrol": 'echo "JobId=18 JobState=$(cat $FAKE/final) "',
}
"""A Slurm that takes every array as 17, and knows the states in a file."""


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Return a function that replaces a command of Slurm by a script, which appends its arguments to a log."""
    fake = tmp_path / "fake"
    fake.mkdir()
    monkeypatch.setenv("FAKE", str(fake))
    monkeypatch.setenv("PATH", f"{fake}{os.pathsep}{os.environ['PATH']}")

    def write(name: str, script: str) -> None:
        (fake / name).write_text(f'#!/bin/sh\necho "$*" >> $FAKE/{name}.log\n{script}\n')
        (fake / name).chmod(0o755)

    (fake / "states").write_text("")
    (fake / "final").write_text("FAILED")
    for name, script in SCRIPTS.items():
        write(name, script)
    return write


@pytest.fixture
def fake(commands: Callable[[str, str], None], tmp_path: Path) -> Path:
    """The folder of the commands, of their logs ``<command>.log``, and of the answers ``states`` and ``final``."""
    return tmp_path / "fake"


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten all waits of a round."""
    for name, value in {"POLL_S": 0.01, "LOOK_S": 0.05, "SETTLE_S": 0.1, "END_S": 0.2, "AGAIN_S": 0.05}.items():
        monkeypatch.setattr(rounds, name, value)


@pytest.fixture
def folder(tmp_path: Path) -> ArrayFolder:
    """The folder of an array."""
    array = ArrayFolder.create(tmp_path)
    array.script.write_text("")
    return array


@pytest.fixture
def jobs(tmp_path: Path) -> list[DetachedJob]:
    """Three jobs without records."""
    paths = [tmp_path / "runs" / name / "jobs" / "0-train" for name in ("first", "second", "third")]
    for path in paths:
        path.mkdir(parents=True)
    return [DetachedJob(path) for path in paths]
