"""The description of a role: JSON in both directions, and what it needs by default."""

from __future__ import annotations

import json

import rlnb
from rlnb.storage.serial import from_json, to_json


def test_a_role_survives_json() -> None:
    learner = rlnb.Role(name="learner", env=False, cpu=True)
    assert from_json(rlnb.Role, json.loads(json.dumps(to_json(learner)))) == learner


def test_a_role_steps_envs_on_the_device_of_the_training_by_default() -> None:
    actor = rlnb.Role(name="actor")
    assert (actor.env, actor.cpu) == (True, False)
