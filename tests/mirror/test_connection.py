"""A connection is a command whose standard streams lead to the other machine."""

from __future__ import annotations

import os
import sys
import time

import pytest

from rlnb.mirror.connection import Connection
from rlnb.mirror.frames import Closed, Frame


def test_the_status_and_the_error_of_a_command_that_fails_are_known() -> None:
    with Connection(["sh", "-c", "echo no route >&2; exit 255"]) as connection:
        with pytest.raises(Closed):
            connection.answer(Frame(kind="check"), 10.0)
        assert (connection.code, connection.error) == (255, "no route")


def test_a_banner_does_not_hide_the_reason_of_the_other_end() -> None:
    with Connection(["sh", "-c", "echo Welcome. >&2; exec sleep 600"]) as connection:
        while not connection.error:
            time.sleep(0.01)
        assert connection.reason(Closed("No library named 'x'.")) == "No library named 'x'."
    with Connection(["sh", "-c", "echo Welcome. >&2; echo Timeout. >&2"]) as connection:
        with pytest.raises(Closed) as caught:
            connection.answer(Frame(kind="check"), 10.0)
        assert connection.reason(caught.value) == "Welcome.\nTimeout."
    with Connection(["sh", "-c", "exec <&-; echo Closed. >&2; exec sleep 600"]) as connection:
        while not connection.error:
            time.sleep(0.01)
        with pytest.raises(Closed) as caught:
            connection.channel.send(Frame(kind="ping"))
        assert connection.reason(caught.value) == "Closed."


def test_the_last_words_of_a_long_error_are_known_and_its_output_does_not_grow_for_ever() -> None:
    script = "yes | head -c 2000000 >&2; read x; echo first >&2; read x; echo the end >&2; exec sleep 600"
    with Connection(["sh", "-c", script]) as connection:
        file = connection._errors.fileno()
        for size, text in ((2_000_000, "y"), (6, "first"), (14, "the end")):
            while os.fstat(file).st_size < size:
                time.sleep(0.01)
            assert connection.error.endswith(text)
            connection.forget()
            assert connection._process.stdin is not None
            connection._process.stdin.write(b"\n")
            connection._process.stdin.flush()
        assert connection.error == "first\nthe end"


def test_an_end_that_fails_ends_without_a_crash() -> None:
    with Connection([sys.executable, "-P", "-m", "rlnb.mirror"]) as connection:
        connection.answer(Frame(kind="check", data={"root": "/tmp", "manifest": {"nonsense": 1}}), 30.0)
        assert (connection.code, connection.error) == (1, "")


def test_an_interrupt_of_this_process_does_not_reach_the_command() -> None:
    with Connection(["sleep", "600"]) as connection:
        assert os.getsid(connection._process.pid) != os.getsid(0)


def test_what_a_plugin_of_the_other_machine_prints_is_no_frame() -> None:
    program = (
        "import os, sys; from rlnb.mirror.__main__ import channel; from rlnb.mirror.frames import Frame; "
        "to = channel(); print('hello', flush=True); os.system('echo hello'); to.send(Frame(kind='answer'))"
    )
    with Connection([sys.executable, "-c", program]) as connection:
        assert connection.answer(Frame(kind="check"), 30.0) == Frame(kind="answer")
        assert connection.error == "hello\nhello"


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
