"""The nouns as JSON, there and back; and the words of the errors."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.errors import did_you_mean, unknown
from rlnb.spec import METRICS, SCHEMA, Job, Started
from rlnb.storage.serial import from_json, to_json

MANIFEST = rlnb.Manifest(
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
    resources=rlnb.Resources(device="cuda:1", nproc_per_node=2),
    git={"commit": "abc"},
    tags=("<b>", "ü"),
)
NOUNS = [
    MANIFEST,
    rlnb.Task(id="Echo"),
    rlnb.Command(argv=("python", "-c", "pass"), env={"A": "b c"}, queued=True, walltime_s=1.5),
    rlnb.Result(outcome="failed", error="no", exit_code=-9, values={"onnx": "exports/policy.onnx"}),
    Job(kind="evaluate", options={"episodes": 100}),
    Started(hosts=("a",), devices=("cpu", "cpu"), world_size=2, num_envs=4, horizon=16, frames_per_step=64.0),
    rlnb.Library(name="echo", backend="rlnb_echo.backend:Echo", metrics={"reward": "Train/mean_reward"}),
]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
def test_a_noun_survives_json(noun: Any) -> None:
    assert from_json(type(noun), json.loads(json.dumps(to_json(noun)))) == noun


def test_an_unknown_key_is_refused_with_the_closest_one() -> None:
    with pytest.raises(rlnb.RlnbError, match=r"Task has no field 'num_env'.*Did you mean 'num_envs'\?"):
        from_json(rlnb.Task, {"id": "Echo", "num_env": 4})


def test_an_unknown_key_is_refused_deep_inside_too() -> None:
    data = to_json(MANIFEST)
    data["task"]["sources"] = "x"
    with pytest.raises(rlnb.RlnbError, match=r"Task has no field 'sources'.*Did you mean 'source'\?"):
        from_json(rlnb.Manifest, data)


def test_a_missing_key_is_refused_with_its_name() -> None:
    with pytest.raises(rlnb.RlnbError, match=r"Task: .*'id'"):
        from_json(rlnb.Task, {})


def test_a_newer_schema_is_refused_with_the_fix() -> None:
    data = {**to_json(MANIFEST), "schema": SCHEMA + 1, "something_new": 1}
    with pytest.raises(rlnb.RlnbError, match=rf"Manifest has schema {SCHEMA + 1}, .* up to {SCHEMA}. Update rlnb"):
        from_json(rlnb.Manifest, data)


def test_paths_and_tuples_become_plain_json() -> None:
    assert to_json({1: (Path("a"), None, True)}) == {"1": ["a", None, True]}


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", lambda: None])
def test_what_json_has_no_word_for_is_refused_by_name(value: object) -> None:
    with pytest.raises(rlnb.RlnbError, match="cannot be written as JSON"):
        to_json({"deep": [value]})


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
def test_a_noun_cannot_be_changed(noun: Any) -> None:
    name = dataclasses.fields(noun)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(noun, name, None)


def test_world_size_counts_all_nodes() -> None:
    assert rlnb.Resources(nodes=2, nproc_per_node=4).world_size == 8


def test_every_metric_says_what_it_means() -> None:
    assert all(METRICS.values())
    with pytest.raises(TypeError):
        METRICS["reward"] = "other"  # type: ignore[index]


def test_the_closest_name_is_offered_and_nothing_when_none_is_close() -> None:
    assert did_you_mean("rsl-rl", ["rsl_rl", "skrl"]) == " Did you mean 'rsl_rl'?"
    assert did_you_mean("keras", ["rsl_rl", "skrl"]) == ""


def test_an_unknown_name_is_a_lookup_error_and_an_rlnb_error() -> None:
    error = unknown("camera", "wrst", ["wrist", "front"], has="The task has")
    assert str(error) == "No camera named 'wrst'. The task has: front, wrist. Did you mean 'wrist'?"
    assert isinstance(error, rlnb.RlnbError)
    assert isinstance(error, LookupError)
    assert str(unknown("run", "x", [])) == "No run named 'x'. Installed: none."


def test_a_check_error_shows_all_problems_with_their_fixes() -> None:
    problems = [rlnb.Problem(what="no disk.", fix="make room"), rlnb.Problem(what="no GPU.")]
    error = rlnb.CheckError("Echo with echo", problems)
    assert error.problems == tuple(problems)
    assert str(error) == (
        "Echo with echo: 2 problems, nothing was started.\n  - no disk.\n    fix: make room\n  - no GPU."
    )
