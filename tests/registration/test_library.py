"""The description of a library: JSON in both directions, and immutability."""

from __future__ import annotations

import dataclasses
import json

import pytest

import rlnb
from rlnb.storage.serial import from_json, to_json

ECHO = rlnb.Library(name="echo", backend="rlnb_echo.backend:Echo", metrics={"reward": "Train/mean_reward"})


def test_a_library_survives_json() -> None:
    assert from_json(rlnb.Library, json.loads(json.dumps(to_json(ECHO)))) == ECHO


def test_a_library_is_immutable() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ECHO.name = "other"  # type: ignore[misc]
