"""Tests of rlnb.protocol.requests."""

from __future__ import annotations

import math

import pytest

from rlnb.errors import RlnbError
from rlnb.protocol.requests import Debug, Listen, Read, Reset, Step
from rlnb.storage.serial import from_json


def test_only_a_request_that_can_stop_at_a_breakpoint_has_no_time_limit() -> None:
    assert {request.limit_s for request in (Debug, Reset, Step, Read)} == {math.inf}
    assert Listen.limit_s < math.inf


def test_actions_are_rows_of_numbers() -> None:
    assert from_json(Step, {"actions": [[1, 2.5]]}).actions == ((1, 2.5),)
    with pytest.raises(RlnbError, match="Step: actions="):
        from_json(Step, {"actions": ["up"]})
