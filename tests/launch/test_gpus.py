"""Which GPUs a run gets, and what is said where they do not suffice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rlnb
from rlnb.launch import local
from rlnb.launch.command import worker_command
from rlnb.records.layout import JobDir
from rlnb.spec import Command, Manifest, Resources, Task
from rlnb.storage import files
from rlnb.storage.serial import to_json

LISTING = "/proc/driver/nvidia/gpus"


def machine(monkeypatch: pytest.MonkeyPatch, gpus: int, chosen: str | None = None) -> None:
    """Make this machine look as if it had so many GPUs."""
    monkeypatch.setattr(local.os, "listdir", lambda path: ["gpu"] * gpus if path == LISTING else [])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)


def wanted(device: str = "auto", ranks: int = 1) -> Manifest:
    return Manifest(
        run_id="r",
        created="2026-01-01T00:00:00+00:00",
        task=Task(id="T"),
        library="rsl_rl",
        resources=Resources(device=device, nproc_per_node=ranks),
    )


@pytest.mark.parametrize(
    ("gpus", "chosen", "seen"),
    [
        (2, None, ["0", "1"]),
        (4, "2,3", ["2", "3"]),
        (4, "", []),
        (1, "-1", []),
        (2, "GPU-ab, GPU-cd", ["GPU-ab", "GPU-cd"]),
    ],
)
def test_the_gpus_are_those_that_this_process_may_use(
    monkeypatch: pytest.MonkeyPatch, gpus: int, chosen: str | None, seen: list[str]
) -> None:
    machine(monkeypatch, gpus, chosen)
    assert local.visible_gpus() == seen
    assert local.gpu_count() == len(seen)


@pytest.mark.parametrize(
    ("gpus", "device", "ranks", "problem"),
    [
        (0, "cuda", 1, "has no NVIDIA GPU"),
        (0, "auto", 2, None),
        (1, "auto", 2, "2 ranks take a GPU each, and this machine has 1 NVIDIA GPU"),
        (1, "cpu", 2, None),
        (2, "cuda", 2, None),
        (2, "cuda:2", 1, "this machine has 2 NVIDIA GPUs"),
        (2, "cuda:1", 1, None),
        (2, "cuda:0", 2, "2 ranks cannot share cuda:0"),
    ],
)
def test_what_the_gpus_cannot_do_is_said_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, gpus: int, device: str, ranks: int, problem: str | None
) -> None:
    machine(monkeypatch, gpus)
    found = [str(one.what) for one in rlnb.LocalLauncher().check(wanted(device, ranks))]
    assert len(found) == (problem is not None)
    assert problem is None or problem in found[0]


def test_each_rank_on_a_gpu_takes_a_slot() -> None:
    several = worker_command(wanted("cuda", 3), "train", Path("/r"), Path("/j"), max_running=4, gpu_per_slot=True)
    assert (several.slots, several.max_running) == (3, 4)
    assert worker_command(wanted("cpu", 3), "train", Path("/r"), Path("/j"), max_running=4).slots == 1


def test_a_run_sees_the_gpus_of_its_slots_as_its_user_named_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    printing = (sys.executable, "-c", "import os; print('sees', os.environ['CUDA_VISIBLE_DEVICES'])")
    command = Command(argv=printing, queued=True, max_running=3, slots=2, gpu_per_slot=True)
    files.write_once(job.command, to_json(command))
    # A machine with GPUs is not at hand: the agent is told of three.
    agent = "import sys, rlnb.node.agent as agent; agent.visible_gpus = lambda: ['4', '5', '7']"
    agent += "; import rlnb.node.__main__ as node; sys.exit(node.main(sys.argv[1:]))"
    subprocess.run([sys.executable, "-c", agent, str(job.path)], check=True, timeout=60)
    assert "sees 4,5" in job.log().read_text()
