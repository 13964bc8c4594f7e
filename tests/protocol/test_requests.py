"""Tests of rlnb.protocol.requests."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest

from rlnb.configs.card import TaskCard
from rlnb.errors import RlnbError
from rlnb.protocol import requests
from rlnb.protocol.requests import (
    ActingRequest,
    Card,
    Clip,
    Debug,
    Listen,
    Ping,
    Policy,
    Preview,
    Read,
    Request,
    Reset,
    Step,
    TaskRequest,
    answer_type,
    verb,
)
from rlnb.spec import Task
from rlnb.storage.serial import from_json, to_json


def test_only_a_request_that_can_stop_at_a_breakpoint_has_no_time_limit() -> None:
    assert {request.limit_s for request in (Debug, Reset, Step, Read)} == {math.inf}
    assert Listen.limit_s < math.inf


def test_actions_are_rows_of_numbers() -> None:
    assert from_json(Step, {"actions": [[1, 2.5]]}).actions == ((1, 2.5),)
    with pytest.raises(RlnbError, match="Step: actions="):
        from_json(Step, {"actions": ["up"]})


# -- request ---------------------------------------------------------------------------------------------------------


def test_the_verb_and_the_answer_of_a_request_follow_from_its_class() -> None:
    assert [verb(request) for request in (Ping, Card, Preview)] == ["ping", "card", "preview"]
    assert [answer_type(request) for request in (Card, Preview)] == [TaskCard, Clip]
    assert answer_type(Ping) is None


def test_random_actions_with_one_seed_are_the_default() -> None:
    request: ActingRequest[Clip] = Preview(task=Task(id="Demo"), num_envs=2, steps=1, size=(8, 8), out="/out")
    assert (request.actions, request.policy, request.seed, request.device) == ("random", None, 42, "auto")


# -- requests --------------------------------------------------------------------------------------------------------


TASK = Task(id="Demo", presets=("fast",), overrides={"sim.dt": 0.01})
EXAMPLES: list[Request[Any]] = [
    requests.Ping(),
    requests.Card(task=TASK),
    requests.Mirror(tasks=(TASK, Task(id="Other")), folder="/assets"),
    requests.Preview(
        task=TASK,
        num_envs=4,
        policy=Policy(run="/runs/a", checkpoint="logs/model_3.pt", trust=False),
        cameras=("wrist",),
        envs=(0, 2),
        steps=30,
        size=(160, 120),
        out="/tmp/out",
    ),
    requests.View(task=TASK, num_envs=1, speed=2),
    requests.Push(velocity=(1.0, 0.0)),
    requests.Hold(name="base_velocity", value=(0.5, 0.0, -1.0)),
    requests.Hold(name="base_velocity", value=None),
    requests.Budget(task=TASK, sizes=((64, 48), (128, 96)), envs=(1, 4), frames=5),
    requests.Open(task=TASK, actions="zero"),
    requests.Debug(task=TASK, num_envs=2, out="/tmp/out"),
    requests.Step(steps=2, actions=((0.5, -1.0), (0.0, 1.0))),
    requests.Step(),
    requests.Reset(seed=3),
]


@pytest.mark.parametrize("request_", EXAMPLES, ids=lambda request: verb(type(request)))
def test_a_request_survives_json(request_: Request[Any]) -> None:
    assert from_json(type(request_), to_json(request_)) == request_


def test_each_request_has_its_own_verb_and_answer_type() -> None:
    assert len(requests.BY_VERB) == len(requests.ALL)
    classes = {cls for cls in vars(requests).values() if isinstance(cls, type) and issubclass(cls, Request)}
    assert classes - {*requests.ALL} == {Request, TaskRequest, ActingRequest}
    assert answer_type(requests.Card) is TaskCard
    assert answer_type(requests.Preview) is requests.Clip
    assert answer_type(requests.Ping) is None
    answers = {request: answer_type(request) for request in requests.ALL}
    assert {request for request, answer in answers.items() if answer is None} == {
        requests.Ping,
        requests.Push,
        requests.Hold,
        requests.Close,
        requests.RunJob,
    }
    assert all(dataclasses.is_dataclass(answer) for answer in answers.values() if answer is not None)


def test_a_malformed_request_is_refused() -> None:
    values = to_json(EXAMPLES[3])
    with pytest.raises(RlnbError, match="Preview: size="):
        from_json(requests.Preview, {**values, "size": [1, 2, 3]})
    with pytest.raises(RlnbError, match="Preview: actions='wild'"):
        from_json(requests.Preview, {**values, "actions": "wild"})
    with pytest.raises(RlnbError, match="Did you mean 'num_envs'"):
        from_json(requests.Preview, {**values, "num_env": 3})
    with pytest.raises(RlnbError, match="Push: velocity="):
        from_json(requests.Push, {"velocity": ["fast"]})


def test_the_address_of_a_view_survives_json() -> None:
    address = requests.ViewAddress(port=1, commands={"base_velocity": {"lin_vel_x": (-1.0, 1.0)}})
    assert from_json(requests.ViewAddress, json.loads(json.dumps(to_json(address)))) == address


def test_the_time_of_a_frame_is_the_median() -> None:
    assert requests.Cost(size=(64, 64), num_envs=1, times_ms=(9.0, 1.0, 2.0), mib=1.0).ms == 2.0
