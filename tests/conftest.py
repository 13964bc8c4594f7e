"""What every test gets: a root of its own, and a queue of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import rlnb

LEAVE_S = 30.0
"""Seconds that the processes of a run have to leave after the test: the result is there a moment before they end."""

VIEWER = """
import json, os, sys
replies = int(sys.argv[-1])
card = {"task": "Demo", "cameras": {}, "presets": {}, "fields": {}, "assets": {}, "versions": {}}
def send(message):
    os.write(replies, json.dumps(message).encode() + b"\\n")
for line in sys.stdin:
    request = json.loads(line)
    with open(__file__ + ".asked", "a") as asked:
        asked.write(line)
    answer = {"id": request["id"], "ok": True, "value": card, "settled": True}
    if request["verb"] == "view":
        if request["seed"] == 13:
            answer |= {"ok": False, "kind": "rlnb", "error": "RlnbError: viser is not installed"}
        else:
            send({"id": request["id"], "meanwhile": {"port": 4711}})
            sys.stdin.readline()
    send(answer)
"""


@pytest.fixture
def viewer(tmp_path: Path) -> str:
    """Command of an interpreter whose worker says that it shows a 3D view, on port 4711, and has no simulator."""
    (tmp_path / "process.py").write_text(VIEWER)
    return f"{sys.executable} {tmp_path / 'process.py'}"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh root for runs; nothing of it reaches the user's own, no warm worker is kept, no process is left."""
    folder = tmp_path / "rlnb-runs"
    monkeypatch.setenv("RLNB_ROOT", str(folder))
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    monkeypatch.setattr(rlnb.options, "root", folder)
    monkeypatch.setattr(rlnb.options, "warm", False)
    yield folder
    _, left = psutil.wait_procs(_agents_and_workers(folder), timeout=LEAVE_S)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert not left, f"the test left processes behind, they were killed: {left}"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts a disk (tmpfs) of so many KiB; needs the right to mount."""
    disk = tmp_path / "disk"

    def mount(size_kib: int) -> Path:
        disk.mkdir()
        argv = ["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(disk)]
        if subprocess.run(argv, capture_output=True, check=False).returncode:
            pytest.skip("a small disk cannot be mounted without root")
        return disk

    yield mount
    if disk.is_mount():
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _agents_and_workers(root: Path) -> list[psutil.Process]:
    """Return the processes of this root's runs: every agent and worker names its job's folder."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(part.startswith(f"{root}/") for part in process.info["cmdline"] or ())
    ]
