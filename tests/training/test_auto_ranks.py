"""The choice of ranks by ``nproc_per_node="auto"``, and the measurement that it rests on."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import time
from pathlib import Path

import pytest

import rlnb
from rlnb import options
from rlnb.hooks import plugins
from rlnb.machine.cores import Cores
from rlnb.plugin import Role
from rlnb.spec import Manifest, Resources, Task
from rlnb.storage import files
from rlnb.training import auto_ranks


def manifest(**changes: object) -> Manifest:
    request = Manifest(
        run_id="r1",
        created="2026-01-01T00:00:00+00:00",
        task=Task(id="Isaac-Cartpole-Direct", num_envs=64),
        library="rsl_rl",
        resources=Resources(device="cpu"),
    )
    return dataclasses.replace(request, **changes)  # type: ignore[arg-type]


NUM_ENVS = 64


@pytest.mark.parametrize(
    ("cores", "num_envs", "expected"),
    [
        (1, 64, [(1, 1)]),
        (2, 64, [(1, 2), (2, 1), (1, 1)]),
        (2, 33, [(1, 2), (1, 1)]),
        (6, 64, [(1, 6), (2, 3), (4, 1), (1, 1)]),
        (16, 24, [(1, 16), (2, 8), (4, 4), (8, 2), (1, 1)]),
    ],
)
def test_cores_and_envs_are_shared_evenly(cores: int, num_envs: int, expected: list[tuple[int, int]]) -> None:
    assert auto_ranks.candidates(cores, lambda ranks: num_envs % ranks == 0) == expected


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"1x2": 247.0, "2x1": 344.0, "1x1": 240.0}, (2, 1)),
        ({"1x2": 1000.0, "2x1": 1040.0, "1x1": 990.0}, (1, 2)),
        ({"1x2": 1000.0, "2x1": 1040.0, "1x1": 1010.0}, (1, 1)),
        ({"1x16": 100.0, "8x2": 300.0, "16x1": 310.0}, (8, 2)),
    ],
)
def test_more_ranks_must_be_clearly_faster(rates: dict[str, float], expected: tuple[int, int]) -> None:
    assert auto_ranks.choose(rates) == expected


def test_the_measurement_is_kept_by_task_and_number_of_envs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: object) -> dict[str, float]:
        measurements.append(True)
        return {"1x2": 1.0, "2x1": 2.0}

    measurements: list[bool] = []
    monkeypatch.setattr(auto_ranks, "_measure", measured)
    monkeypatch.setattr(auto_ranks, "gpu_count", lambda: 0)
    for _ in range(2):
        assert auto_ranks.resources(manifest(), NUM_ENVS) == Resources(device="cpu", nproc_per_node=2, threads=1)
    assert len(measurements) == 1
    auto_ranks.resources(manifest(run_id="r2", seed=7, max_iterations=3), NUM_ENVS)
    assert len(measurements) == 1, "seed and iterations do not change the rate"
    auto_ranks.resources(manifest(task=Task(id="Isaac-Cartpole-Direct", num_envs=32)), NUM_ENVS)
    assert len(measurements) == 2
    auto_ranks.resources(manifest(agent_name="generic"), NUM_ENVS)
    assert len(measurements) == 3
    (first, *_) = sorted(options.folders.cards.glob("ranks-*.json"), key=lambda path: path.stat().st_mtime)
    assert files.read_json(first) == {"1x2": 1.0, "2x1": 2.0}


@pytest.mark.parametrize(("gpus", "num_envs", "expected"), [(8, 64, 8), (8, 12, 6), (4, 7, 1)])
def test_with_gpus_auto_is_one_rank_on_each(
    monkeypatch: pytest.MonkeyPatch, gpus: int, num_envs: int, expected: int
) -> None:
    monkeypatch.setattr(auto_ranks, "gpu_count", lambda: gpus)
    request = manifest(resources=Resources(), task=Task(id="T", num_envs=num_envs))
    assert auto_ranks.resources(request, num_envs) == Resources(nproc_per_node=expected)
    one = manifest(resources=Resources(device="cuda:1"))
    assert auto_ranks.resources(one, NUM_ENVS) == Resources(device="cuda:1")


def both_or_actors(world_size: int, agent: object) -> list[Role]:
    learner = Role(name="learner", env=world_size == 1)
    return [learner, *[Role(name="actor")] * (world_size - 1)]


@pytest.mark.parametrize(("num_envs", "expected"), [(8, 3), (9, 4), (7, 2)])
def test_the_ranks_that_step_envs_share_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, num_envs: int, expected: int
) -> None:
    with_roles = dataclasses.replace(plugins.library("rsl_rl"), roles=f"{__name__}:both_or_actors")
    monkeypatch.setattr(plugins, "library", lambda name: with_roles)
    monkeypatch.setattr(plugins, "load", lambda reference: both_or_actors)
    monkeypatch.setattr(auto_ranks, "gpu_count", lambda: 4)
    request = manifest(resources=Resources(), task=Task(id="T"))
    assert auto_ranks.resources(request, num_envs).nproc_per_node == expected


def test_measured_ranks_share_the_envs_and_the_trust_of_the_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_roles = dataclasses.replace(plugins.library("rsl_rl"), roles=f"{__name__}:both_or_actors")
    monkeypatch.setattr(plugins, "library", lambda name: with_roles)
    monkeypatch.setattr(plugins, "load", lambda reference: both_or_actors)
    monkeypatch.setattr(auto_ranks, "available", lambda: Cores(4, ""))
    trials: list[tuple[int, object]] = []

    def stop(folder: object, trial: Manifest, launcher: object, options: object, **_: object) -> None:
        trials.append((trial.resources.nproc_per_node, options))
        raise rlnb.RunError("stopped")

    monkeypatch.setattr(auto_ranks, "create_run", stop)
    with pytest.raises(rlnb.RunError, match="stopped"):
        auto_ranks.resources(manifest(), NUM_ENVS, trust=True)
    assert trials == [(count, {"trust": True}) for count in (1, 2, 1)], "three actors cannot share 64 envs"


def test_a_library_that_trains_in_one_process_gets_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = dataclasses.replace(plugins.library("rsl_rl"), distributed=False)
    monkeypatch.setattr(plugins, "library", lambda name: alone)
    assert auto_ranks.resources(manifest(), NUM_ENVS) == Resources(device="cpu")


def test_a_library_without_envs_to_divide_gets_one_rank(root: Path) -> None:
    assert plugins.library("echo").distributed
    run = rlnb.train("Echo", library="echo", max_iterations=2, nproc_per_node="auto").wait(60)
    assert run.manifest.resources.world_size == 1


@pytest.mark.parametrize("ranks", ["all", 0, 2.5])
def test_any_other_value_is_refused(root: Path, ranks: object) -> None:
    with pytest.raises(rlnb.CheckError, match="nproc_per_node="):
        rlnb.train("Echo", library="echo", nproc_per_node=ranks)  # type: ignore[arg-type]


@pytest.mark.isaaclab
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_fastest_number_of_ranks_is_measured_once(root: Path) -> None:
    arguments = {"num_envs": 64, "max_iterations": 2, "device": "cpu", "nproc_per_node": "auto"}
    first = rlnb.train("Isaac-Cartpole-Direct", **arguments).wait(timeout_s=300)
    (remembered,) = root.glob("cards/ranks-*.json")
    rates = json.loads(remembered.read_text())
    tried = auto_ranks.candidates(len(os.sched_getaffinity(0)), lambda ranks: 64 % ranks == 0)
    assert set(rates) == {f"{ranks}x{threads}" for ranks, threads in tried}
    assert all(rate > 0 for rate in rates.values())
    chosen = first.manifest.resources
    assert (chosen.nproc_per_node, chosen.threads) == auto_ranks.choose(rates)
    assert first.started is not None
    assert (first.started.num_envs, first.started.world_size) == (64, chosen.nproc_per_node)
    start_s = time.monotonic()
    again = rlnb.train("Isaac-Cartpole-Direct", **arguments)
    assert time.monotonic() - start_s < 5.0, "the ranks are not measured again"
    assert again.wait(timeout_s=300).manifest.resources == chosen
    assert len(rlnb.runs()) == 2, "the runs of the measurement are removed"
