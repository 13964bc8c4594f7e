"""The far end of a simulator's job: it starts the job, reports on it, and ends it when the kernel is gone."""

from __future__ import annotations

import dataclasses
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from far_node import interpreter, until_gone

import rlnb
from rlnb.launchers import LocalLauncher
from rlnb.mirror import server
from rlnb.mirror.frames import Channel, Frame
from rlnb.records.layout import JobDir
from rlnb.settings import Root
from rlnb.simulation.remote_job import manifest_of
from rlnb.storage import files

WAIT_S = 60.0


def serve(root: Path, python: str | None, **settings: Any) -> tuple[Channel, threading.Thread]:
    """Hold a job in a thread; return the kernel's end of the connection."""
    (from_kernel, to_far), (from_far, to_kernel) = os.pipe(), os.pipe()
    ours = Channel(os.fdopen(from_far, "rb"), os.fdopen(to_far, "wb"))
    theirs = Channel(os.fdopen(from_kernel, "rb"), os.fdopen(to_kernel, "wb"))
    manifest = dataclasses.replace(manifest_of(rlnb.local(), python, None), launcher_settings=settings)
    thread = threading.Thread(target=server.hold, args=(theirs, Root(root), manifest, 600.0))
    thread.start()
    return ours, thread


def test_a_silent_kernel_is_gone_and_its_job_ends(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("root", "warm_idle_s"):
        monkeypatch.setattr(rlnb.options, name, getattr(rlnb.options, name))  # the holder sets them
    monkeypatch.setattr(server, "HOLDER_SILENT_S", 4.0)
    channel, thread = serve(tmp_path / "far", interpreter(tmp_path))
    started = channel.receive(WAIT_S)
    assert started is not None
    folder = JobDir(Path(str(started.data["folder"])))
    assert folder.path.is_relative_to(tmp_path / "far" / "simulators")
    argv = (files.read_json(folder.command) or {})["argv"]
    assert "--idle=600.0" in argv  # type: ignore[operator]
    assert channel.receive(WAIT_S) == Frame(kind="state", data={"name": "local", "ended": False})
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert folder.cancel.exists()
    until_gone(folder.path, WAIT_S)


def test_a_job_that_the_machine_refuses_is_answered_with_all_problems(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Two(LocalLauncher):
        nodes = 2

    for name in ("root", "warm_idle_s"):
        monkeypatch.setattr(rlnb.options, name, getattr(rlnb.options, name))
    monkeypatch.setattr(server.plugins, "make_launcher", lambda name, settings: Two(**settings))
    channel, thread = serve(tmp_path / "far", None)
    refused = channel.receive(WAIT_S)
    thread.join(WAIT_S)
    assert refused is not None
    assert refused.kind == "refused"
    (problem,) = refused.data["problems"]  # type: ignore[misc, union-attr]
    assert "asks for 2 nodes" in problem["what"]  # type: ignore[index, call-overload]
