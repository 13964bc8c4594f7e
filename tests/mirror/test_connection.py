"""A connection is a command whose standard streams lead to the other machine."""

from __future__ import annotations

import sys

import pytest

from rlnb.mirror.connection import Connection
from rlnb.mirror.frames import Closed, Frame


def test_the_status_and_the_error_of_a_command_that_fails_are_known() -> None:
    with Connection(["sh", "-c", "echo no route >&2; exit 255"]) as connection:
        with pytest.raises(Closed):
            connection.answer(Frame(kind="check"), 10.0)
        assert (connection.code, connection.error) == (255, "no route")


def test_a_command_that_does_not_end_is_killed() -> None:
    with Connection(["sh", "-c", "trap '' TERM; exec sleep 600"]) as connection:
        assert connection.answer(Frame(kind="check"), 0.1) is None
        assert connection.code is None
        process = connection._process
    assert process.poll() is not None


def test_a_request_that_is_malformed_is_answered_with_its_error() -> None:
    with Connection([sys.executable, "-P", "-m", "rlnb.mirror"]) as connection:
        answer = connection.answer(Frame(kind="check", data={"root": "/tmp", "manifest": {"nonsense": 1}}), 30.0)
    assert answer is not None
    assert answer.kind == "failed"
    assert "Manifest" in str(answer.data["error"])
