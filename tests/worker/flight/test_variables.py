"""Tests of rlnb.worker.flight.snapshot, on objects as those of Isaac Lab's envs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlnb.worker.flight.snapshot import LONGEST, SMALL, WIDEST, variables

torch = pytest.importorskip("torch")
pytest.importorskip("isaaclab")
NUM_ENVS = 3


class Box:
    """An object with attributes."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


def env_of(**attributes: Any) -> Any:
    return Box(num_envs=NUM_ENVS, **attributes)


def found(**attributes: Any) -> dict[str, Any]:
    """Return the value of each variable by its path, but for the number of envs."""
    values = {variable.path: variable.value for variable in variables(env_of(**attributes))}
    assert values.pop(".num_envs") == NUM_ENVS
    return values


def test_numbers_flags_and_tensors_are_found_in_objects_dicts_and_lists() -> None:
    potentials = torch.zeros(NUM_ENVS)
    values = found(
        clock=3, scale=0.5, active=True, terms={"alive": Box(sums=potentials)}, queue=[1, (2, Box(age=4))], name="ant"
    )
    assert values.pop(".terms['alive'].sums") is potentials
    assert values == {
        ".clock": 3,
        ".scale": 0.5,
        ".active": True,
        ".queue[0]": 1,
        ".queue[1][0]": 2,
        ".queue[1][1].age": 4,
    }


def test_a_value_can_be_replaced() -> None:
    env = env_of(clock=3, terms={"alive": 1.0}, queue=[1], pair=(1,))
    for variable in [*variables(env)]:
        variable.put(7)
    assert (env.clock, env.terms, env.queue, env.pair) == (7, {"alive": 7}, [7], (1,))


def test_arrays_of_numpy_and_queues_are_found() -> None:
    array, history = np.zeros(NUM_ENVS), deque([1.0, torch.ones(NUM_ENVS)])
    values = found(array=array, history=history, names=np.array(["a"]), objects=np.array([None]))
    assert [*values] == [".array", ".history[0]", ".history[1]"]
    values[".array"][1] = 5.0
    assert array[1] == 5.0


def test_each_object_and_tensor_is_found_once_by_its_shortest_path() -> None:
    tensor = torch.ones(NUM_ENVS)
    shared = Box(count=1, tensor=tensor)
    env = env_of(far=Box(further=Box(shared=shared)), near=shared, alias=tensor.view(NUM_ENVS))
    shared.env = env
    assert [variable.path for variable in variables(env)] == [".num_envs", ".alias", ".near.count"]


def test_nearer_objects_come_first() -> None:
    shared = Box(count=1)
    values = found(near=Box(shared=shared), far=Box(further=Box(further=Box(shared=shared))))
    assert [*values] == [".near.shared.count"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"cfg": Box(scale=1)},
        {"_ALL_INDICES": torch.arange(NUM_ENVS)},
        {"stage_handle": 5, "action_space": Box(n=2), "robot_cfg": Box(n=1)},
        {"pictures": torch.zeros(NUM_ENVS, WIDEST + 1)},
        {"terrain": torch.zeros(SMALL + 1)},
        {"rows": [0] * (LONGEST + 1)},
        {"net": torch.nn.Linear(2, 2)},
        {"space": SimpleNamespace},
        {"nothing": None, "name": "ant", "function": len, "empty": torch.zeros(0)},
    ],
    ids=lambda attributes: next(iter(attributes)),
)
def test_settings_constants_pictures_and_foreign_objects_are_left_out(attributes: dict[str, Any]) -> None:
    assert found(**attributes) == {}


def test_an_object_that_cannot_change_is_left_out() -> None:
    @dataclass(frozen=True)
    class Plan:
        count: int = 2

    assert found(plan=Plan()) == {}


def test_only_the_weight_and_the_function_of_a_terms_config_are_looked_at() -> None:
    class TermCfg(Box):
        pass

    term = TermCfg(weight=2.0, scale=3.0, func=Box(previous=1.0))
    assert found(terms=[term], plain=TermCfg(scale=2.0, func=len)) == {
        ".terms[0].weight": 2.0,
        ".terms[0].func.previous": 1.0,
    }


def test_forces_that_there_are_not_have_flags_only() -> None:
    values = found(composer=Box(_active=False, force=torch.zeros(NUM_ENVS)), other=Box(_active=True, force=1.0))
    assert values == {".composer._active": False, ".other._active": True, ".other.force": 1.0}


def test_arrays_of_warp_are_found_as_tensors_of_the_same_memory() -> None:
    warp = pytest.importorskip("warp")
    array = warp.zeros(NUM_ENVS, dtype=warp.vec3f, device="cpu")
    tensor = found(array=array)[".array"]
    assert tensor.shape == (NUM_ENVS, 3)
    tensor[1, 2] = 5.0
    assert array.numpy()[1, 2] == 5.0
