"""A Jupyter server with the extension, and runs in its root."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.plugin import Manifest, Result

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # as conftest.py at the top of the repository does for all other tests
sys.path.insert(0, str(Path(__file__).parent))  # pytest's importlib mode would not find asking.py

from asking import write_whole

pytest_plugins = ["pytest_jupyter.jupyter_server"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh root of the server and of this process."""
    folder = tmp_path / "rlnb-runs"
    folder.mkdir()
    monkeypatch.setenv("RLNB_ROOT", str(folder))
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    monkeypatch.setattr(rlnb.options, "root", folder)
    monkeypatch.setattr(rlnb.options, "warm", False)
    yield folder
    for run in rlnb.runs():
        run.cancel()


@pytest.fixture
def jp_server_config(root: Path) -> dict[str, Any]:
    """The server's config, which loads the extension with that root."""
    return {"ServerApp": {"jpserver_extensions": {"rlnb_jupyterlab": True}}, "RlnbExtension": {"roots": [str(root)]}}


@pytest.fixture
def made(root: Path) -> Any:
    """Makes runs that consist of records only, thousands of them in a moment."""

    def make(count: int, task: str = "Echo", **changed: Any) -> None:
        for number in range(count):
            name = f"20260101-{number:06d}-echo"
            folder = root / "runs" / name
            (folder / "jobs" / "0-train").mkdir(parents=True)
            (folder / "logs").mkdir()
            manifest = Manifest(
                run_id=name,
                created=f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}+00:00",
                task=rlnb.Task(id=task),
                library="echo",
                **changed,
            )
            write(folder / "manifest.json", manifest)
            write(folder / "jobs" / "0-train" / "result.json", Result(outcome="completed"))

    return make


def write(path: Path, value: Any) -> None:
    """Write a record in one step, as rlnb does, since the server may read it at any moment."""
    write_whole(path, json.dumps(dataclasses.asdict(value)))
