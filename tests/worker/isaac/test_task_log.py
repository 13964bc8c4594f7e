"""Every kind of number that a task logs is one tensor, and what is no number is named once."""

from __future__ import annotations

import logging
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlnb.worker.isaac.task_log import MOST, TaskLog, attach

torch = pytest.importorskip("torch")

HALF = {
    "float": 0.5,
    "numpy": np.float64(0.5),
    "array": np.array(0.5),
    "array of one": np.array([0.5], dtype=np.float16),
    "tensor": torch.tensor(0.5, dtype=torch.float64),
    "tensor of one": torch.tensor([0.5]),
    "vector": torch.tensor([0.0, 1.0]),
    "matrix": torch.tensor([[0.0, 1.0], [1.0, 0.0]]),
    "integers": torch.tensor([0, 1]),
    "bools": torch.tensor([True, False]),
    "numpy bools": np.array([True, False]),
    "list": [0, 1],
    "tensors": [torch.tensor(0), torch.tensor(1.0)],
    "fraction": Fraction(1, 2),
    "with a gradient": torch.tensor(0.5, requires_grad=True),
}
ONE = {
    "int": 1,
    "bool": True,
    "numpy int": np.int32(1),
    "numpy bool": np.bool_(True),
    "tensor bool": torch.tensor(True),
}
NONE = {
    "text": "falling",
    "none": None,
    "dict": {"a": 1.0},
    "ragged": [[1.0], [1.0, 2.0]],
    "complex": 1j,
    "thing": print,
}


@pytest.mark.parametrize("key", ["log", "episode"])
def test_every_kind_of_number_becomes_a_tensor_of_one_number(key: str) -> None:
    logged = {**HALF, **ONE, 7: 1.0}
    own = dict(logged)
    extras = TaskLog().extras({key: logged, "time_outs": torch.ones(2)})
    assert {name: float(value) for name, value in extras["log"].items()} == {
        **dict.fromkeys(HALF, 0.5),
        **dict.fromkeys([*ONE, "7"], 1.0),
    }
    assert all((v.shape, v.dtype, v.requires_grad) == ((), torch.float32, False) for v in extras["log"].values())
    assert list(extras["log"]) == [str(name) for name in logged]
    assert extras[key] is extras["log"], "also where the library looks for it"
    assert all(logged[name] is value for name, value in own.items()), "the task's own dict is left as it is"


def test_a_later_step_does_not_change_what_an_earlier_one_has_logged() -> None:
    log, count = TaskLog(), torch.tensor(1.0)
    first = log.extras({"log": {"count": count}})
    count += 1
    assert (float(first["log"]["count"]), float(log.extras({"log": {"count": count}})["log"]["count"])) == (1.0, 2.0)


def test_what_is_no_number_is_left_out_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    log = TaskLog()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            extras = log.extras({"log": {**NONE, "good": 1.0, "empty": torch.zeros(0)}})
    assert [*extras["log"]] == ["good"]
    assert len(caplog.records) == len(log.faults) == len(NONE)
    assert log.faults['extras["log"]["text"]'] == (
        'extras["log"]["text"] is of the type str, not a number, so no curve shows it.'
    )


def test_a_task_with_a_new_name_in_each_step_gets_a_limited_number_of_warnings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = TaskLog()
    with caplog.at_level(logging.WARNING):
        for step in range(5 * MOST):
            log.extras({"log": {f"state_{step}": None}})
    assert len(log.faults) == len(caplog.records) == MOST + 1
    assert [*log.faults.values()][-1] == "The task logs more values that are not numbers, so no curve shows them."


@pytest.mark.parametrize("extras", [{}, {"final_obs": 1}, None, []])
def test_extras_without_a_log_stay_as_they_are(extras: Any) -> None:
    assert TaskLog().extras(extras) is extras


def test_a_log_that_is_no_dict_is_named() -> None:
    log = TaskLog()
    assert log.extras({"log": [1.0], "episode": {"a": 2}})["log"].keys() == {"a"}
    assert [*log.faults] == ['extras["log"]']


def test_the_steps_of_an_env_return_the_log_as_tensors() -> None:
    pytest.importorskip("isaaclab")
    outcome = ({"policy": torch.zeros(2, 3)}, torch.zeros(2), torch.zeros(2), torch.zeros(2))
    env: Any = SimpleNamespace(step=lambda actions: (*outcome, {"log": {"count": 3, "word": "falling"}}))
    env.unwrapped = env
    attach(env)
    *returned, extras = env.step(None)
    assert all(one is other for one, other in zip(returned, outcome, strict=True))
    assert {name: float(value) for name, value in extras["log"].items()} == {"count": 3.0}
