"""The data types of rlnb: JSON in both directions, and immutability."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

import rlnb
from rlnb.launchers import Resources
from rlnb.plugin import Command, Manifest, Result
from rlnb.spec import METRICS, OFF_POLICY_METRICS, Job, Started
from rlnb.storage.serial import from_json, to_json

MANIFEST = Manifest(
    run_id="20260101-000000-echo-echo-abcd",
    created="2026-01-01T00:00:00.000+00:00",
    task=rlnb.Task(
        id="Lift-Cube-RGB",
        source="tasks/lift_cube_rgb.py",
        source_sha256="0" * 64,
        files={"cube.usda": "1" * 64},
        num_envs=512,
        presets=("a", "b"),
        physics="newton_mjwarp",
        overrides={"sim.dt": 0.005, "scene.size": [1, 2], "flag": None},
    ),
    library="echo",
    max_iterations=50,
    agent={"algorithm.learning_rate": 3e-4},
    resources=Resources(device="cuda:1", nproc_per_node=2),
    git={"commit": "abc"},
    tags=("<b>", "ü"),
)
NOUNS = [
    MANIFEST,
    rlnb.Task(id="Echo"),
    Command(argv=("python", "-c", "pass"), env={"A": "b c"}, queued=True, walltime_s=1.5),
    Result(outcome="failed", error="no", exit_code=-9, values={"onnx": "exports/policy.onnx"}),
    Job(kind="evaluate", options={"episodes": 100}),
    Started(hosts=("a",), devices=("cpu", "cpu"), world_size=2, num_envs=4, horizon=16, frames_per_step=64.0),
]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
def test_a_value_survives_json(noun: Any) -> None:
    assert from_json(type(noun), json.loads(json.dumps(to_json(noun)))) == noun


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
def test_a_value_is_immutable(noun: Any) -> None:
    name = dataclasses.fields(noun)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(noun, name, None)


def test_world_size_counts_all_nodes() -> None:
    assert Resources(nodes=2, nproc_per_node=4).world_size == 8


def test_every_metric_has_a_description() -> None:
    assert all(METRICS.values())
    with pytest.raises(TypeError):
        METRICS["reward"] = "other"  # type: ignore[index]


def test_the_metrics_of_off_policy_algorithms_are_metrics_of_rlnb() -> None:
    assert METRICS.keys() > {*OFF_POLICY_METRICS}
