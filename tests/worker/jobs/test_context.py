"""What a rank tells of the run that it is part of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rlnb
from rlnb import plugins
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.options import TrainOptions
from rlnb.storage import files
from rlnb.worker.jobs.context import Context


def context_of(tmp_path: Path, world_size: int) -> Context:
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    resources = rlnb.Resources(nodes=2 if world_size > 1 else 1, nproc_per_node=max(1, world_size // 2))
    manifest = rlnb.Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo", resources=resources)
    return Context(RunDir(tmp_path), job, manifest, TrainOptions())


def started(tmp_path: Path, device: str, world_size: int) -> dict[str, object]:
    context = context_of(tmp_path, world_size)
    context.device = device
    context.started(horizon=1, frames_per_step=1.0, max_iterations=1)
    return files.read_json(tmp_path / "jobs" / "0-train" / "started.json") or {}


@pytest.mark.parametrize(("horizon", "frames"), [(0, 16.0), (16, 0.0)])
def test_an_iteration_of_nothing_is_refused(tmp_path: Path, horizon: int, frames: float) -> None:
    with pytest.raises(rlnb.RlnbError, match="is none: look at the rollout's length"):
        context_of(tmp_path, 1).started(horizon=horizon, frames_per_step=frames, max_iterations=1)


def test_a_kill_leaves_no_half_checkpoint_of_echo(tmp_path: Path) -> None:
    opened: list[str] = []

    def hook(event: str, arguments: tuple[object, ...]) -> None:  # it cannot be taken away again
        if event == "open" and str(arguments[0]).startswith(str(tmp_path / "logs")):
            opened.append(Path(str(arguments[0])).name)

    sys.addaudithook(hook)
    plugins.load(plugins.library("echo").backend)().train(None, {}, context_of(tmp_path, 1))
    written = [path.name for path in sorted((tmp_path / "logs").glob("model_*.json"))]
    assert len(written) == 4
    assert not set(opened) & set(written), "each is written under another name, and moved once it is whole"
    assert {f".part-{name}" for name in written} <= set(opened)


def test_ranks_of_a_node_have_its_gpus_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert started(tmp_path, "cuda:0", 8)["devices"] == [f"cuda:{number}" for number in (0, 1, 2, 3) * 2]


def test_what_ranks_talk_over_is_recorded_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name, value in {"NCCL_SOCKET_IFNAME": "ib0", "GLOO_SOCKET_IFNAME": "ib0", "SECRET_TOKEN": "x"}.items():
        monkeypatch.setenv(name, value)
    found = started(tmp_path, "cpu", 2)
    assert found["communication"] == {"GLOO_SOCKET_IFNAME": "ib0", "NCCL_SOCKET_IFNAME": "ib0"}
    assert found["devices"] == ["cpu", "cpu"]


def test_a_single_rank_talks_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    found = started(tmp_path, "cuda:1", 1)
    assert (found["communication"], found["devices"]) == ({}, ["cuda:1"])
