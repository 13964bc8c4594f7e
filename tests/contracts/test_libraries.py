"""rlnb's own context implements its protocol; libraries, roles and spaces."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.contracts.libraries import TrainContext
from rlnb.plugin import Library, Manifest, Role, Space
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.options import TrainOptions
from rlnb.storage.serial import from_json, to_json
from rlnb.worker.jobs.context import Context


def members(protocol: type) -> set[str]:
    """Return the names of a protocol's attributes and methods."""
    methods = {name for name in vars(protocol) if not name.startswith("_")}
    return methods | set(inspect.get_annotations(protocol))


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Return the name, kind and default of each parameter."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    manifest = Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo", agent={"peak": 3})
    return Context(RunDir(tmp_path), JobDir(tmp_path / "jobs" / "0-train"), manifest, TrainOptions(trust=True))


def test_the_context_has_every_member_of_its_protocol(context: Context) -> None:
    missing = {name for name in members(TrainContext) if not hasattr(context, name)}
    assert not missing
    assert (context.trust, context.agent, context.checkpoint, context.init_from) == (True, {"peak": 3}, None, None)


@pytest.mark.parametrize("name", ["policy", "resumed", "started", "pool"])
def test_the_methods_of_the_context_have_the_signatures_of_the_protocol(name: str) -> None:
    assert parameters(getattr(Context, name)) == parameters(getattr(TrainContext, name))


# -- library ---------------------------------------------------------------------------------------------------------


ECHO = Library(name="echo", backend="rlnb_echo.backend:Echo", metrics={"reward": "Train/mean_reward"})


def test_a_library_is_immutable() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ECHO.name = "other"  # type: ignore[misc]


# -- roles -----------------------------------------------------------------------------------------------------------


def test_a_role_survives_json() -> None:
    learner = Role(name="learner", env=False, cpu=True)
    assert from_json(Role, json.loads(json.dumps(to_json(learner)))) == learner


def test_a_role_steps_envs_on_the_device_of_the_training_by_default() -> None:
    actor = Role(name="actor")
    assert (actor.env, actor.cpu) == (True, False)


# -- space -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "picture", "last"),
    [
        ((4,), False, False),
        ((5, 4), False, False),
        ((64, 48, 3), True, True),
        ((3, 64, 48), True, False),
        ((6, 36, 36), True, False),
        (None, False, False),
    ],
)
def test_a_picture_has_three_dimensions_of_which_the_smallest_are_the_channels(
    shape: tuple[int, ...] | None, picture: bool, last: bool
) -> None:
    space = Space(kind="box", shape=shape)
    assert (space.is_picture, space.channels_last) == (picture, last)


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (Space(kind="box", shape=(64, 48, 3)), "a picture of the shape (64, 48, 3)"),
        (Space(kind="box", shape=(5, 4)), "a Box of the shape (5, 4)"),
        (Space(kind="box"), "a Box"),
        (Space(kind="multi_discrete"), "a MultiDiscrete"),
    ],
)
def test_a_space_describes_itself(space: Space, text: str) -> None:
    assert str(space) == text


def test_a_space_with_parts_survives_json() -> None:
    space = Space(kind="tuple", parts={"0": Space(kind="dict", parts={"a": Space(kind="box", shape=(2,))})})
    assert from_json(Space, to_json(space)) == space
