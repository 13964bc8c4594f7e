"""Tests of rlnb.worker.isaac.solver without a simulator; with one: tests/interactive/test_replay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.worker.isaac import solver

warp = pytest.importorskip("warp")


def env_of(manager: Any) -> Any:
    return SimpleNamespace(num_envs=3, sim=SimpleNamespace(physics_manager=manager))


def data() -> Any:
    ones = warp.full((3, 2), 1.0, dtype=float, device="cpu")
    return SimpleNamespace(qacc_warmstart=ones, act=warp.zeros((3, 0), dtype=float, device="cpu"), qacc=ones)


def test_only_arrays_that_a_step_reads_are_carried_on() -> None:
    arrays = solver.memory(env_of(SimpleNamespace(_solver=SimpleNamespace(mjw_data=data()))))
    assert {name: tuple(array.shape) for name, array in arrays.items()} == {"qacc_warmstart": (3, 2)}


def test_rows_of_envs_that_were_just_reset_are_copied_as_zeros() -> None:
    mask = warp.array([False, True, False, False], dtype=bool, device="cpu")
    manager = SimpleNamespace(_solver=SimpleNamespace(mjw_data=data()), _world_reset_mask=mask)
    copy = solver.copied(env_of(manager))["qacc_warmstart"]
    assert copy.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    assert solver.memory(env_of(manager))["qacc_warmstart"].tolist() == [[1.0, 1.0]] * 3
    del manager._world_reset_mask
    copy = solver.copied(env_of(manager))["qacc_warmstart"]
    copy.zero_()
    assert manager._solver.mjw_data.qacc_warmstart.numpy().all()


@pytest.mark.parametrize("manager", [None, SimpleNamespace(), SimpleNamespace(_solver=SimpleNamespace())])
def test_another_engine_carries_nothing_that_can_be_read(manager: Any) -> None:
    assert solver.memory(env_of(manager)) == solver.copied(env_of(manager)) == {}
