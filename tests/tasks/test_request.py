"""Tests of rlnb.protocol.requests."""

from __future__ import annotations

from rlnb.configs.card import TaskCard
from rlnb.protocol.requests import ActingRequest, Card, Clip, Ping, Preview, answer_type, verb
from rlnb.spec import Task


def test_the_verb_and_the_answer_of_a_request_follow_from_its_class() -> None:
    assert [verb(request) for request in (Ping, Card, Preview)] == ["ping", "card", "preview"]
    assert [answer_type(request) for request in (Card, Preview)] == [TaskCard, Clip]
    assert answer_type(Ping) is None


def test_random_actions_with_one_seed_are_the_default() -> None:
    request: ActingRequest[Clip] = Preview(task=Task(id="Demo"), num_envs=2, steps=1, size=(8, 8), out="/out")
    assert (request.actions, request.policy, request.seed, request.device) == ("random", None, 42, "auto")
