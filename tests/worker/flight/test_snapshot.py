"""Tests of rlnb.worker.flight.snapshot on a stand-in; with Isaac Lab: tests/interactive/test_replay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.worker.flight.snapshot import States, restore, take

torch = pytest.importorskip("torch")
pytest.importorskip("isaaclab")
NUM_ENVS = 3


class Robot:
    """A robot with one joint."""

    is_fixed_base = True
    joint_names = ("slider",)

    def __init__(self) -> None:
        of = lambda: SimpleNamespace(torch=torch.rand(NUM_ENVS, 1))  # noqa: E731
        self.data = SimpleNamespace(joint_pos=of(), joint_vel=of())

    def write_joint_position_to_sim_index(self, *, position: Any) -> None:
        self.data.joint_pos.torch[:] = position

    def write_joint_velocity_to_sim_index(self, *, velocity: Any) -> None:
        self.data.joint_vel.torch[:] = velocity


class Env:
    """An env whose flag decides which values it has."""

    num_envs, device = NUM_ENVS, "cpu"

    def __init__(self) -> None:
        self.scene = SimpleNamespace(articulations={"cart": Robot()}, rigid_objects={})
        self.sim = SimpleNamespace(physics_manager=None, forward=lambda: None)
        self.clock, self.scale, self.started = 0, 0.5, False
        self.actions = torch.rand(NUM_ENVS, 2)
        self.forces = SimpleNamespace(_active=False, push=torch.zeros(NUM_ENVS))


def test_a_snapshot_brings_states_and_variables_back() -> None:
    env = Env()
    env.clock, env.forces._active = 7, True
    env.forces.push = torch.rand(NUM_ENVS)
    states = States(env)
    snapshot = take(env, states, step=4)
    assert snapshot.step == 4
    before = [value.clone() for value in (*states.read(), env.actions, env.forces.push)]
    for value in (*states.read(), env.actions, env.forces.push):
        value.zero_()
    assert snapshot.arrays()["variable/.actions"].any(), "a snapshot has copies"

    other = Env()
    assert restore(other, States(other), snapshot.arrays()) == []
    after = [*States(other).read(), other.actions, other.forces.push]
    assert all(torch.equal(one, two) for one, two in zip(before, after, strict=True))
    assert (other.clock, other.scale, other.started, other.forces._active) == (7, 0.5, False, True)
    assert isinstance(other.clock, int)


def test_variables_that_the_env_does_not_have_are_named() -> None:
    env = Env()
    arrays = take(env, States(env), step=0).arrays()
    other = Env()
    del other.clock
    other.actions = torch.rand(NUM_ENVS, 5)
    assert restore(other, States(other), arrays) == [".clock"]
