"""Frames cross a pair of streams, and what is no frame ends the connection."""

from __future__ import annotations

import os
from typing import BinaryIO

import pytest

from rlnb.mirror import frames
from rlnb.mirror.frames import BEGIN, CHUNK, Channel, Closed, Frame


def pipe() -> tuple[BinaryIO, BinaryIO]:
    reader, writer = os.pipe()
    return os.fdopen(reader, "rb"), os.fdopen(writer, "wb")


def reading(content: bytes, after: bytes = b"") -> Channel:
    """Return a channel that reads some bytes, after which the stream ends."""
    reader, writer = pipe()
    channel = Channel(reader, pipe()[1], after=after)
    writer.write(content)
    writer.close()
    return channel


def test_frames_arrive_as_they_were_sent() -> None:
    (there, to_there), (here, to_here) = pipe(), pipe()
    ours, theirs = Channel(here, to_there), Channel(there, to_here)
    frame = Frame(kind="grow", path="logs/a b\n", offset=3, total=8, mtime_ns=5, data={"a": [1, None]}, body=b"\0{}\n")
    for one in (frame, Frame(kind="ping"), Frame(kind="whole", body=bytes(CHUNK))):
        ours.send(one)
        assert theirs.receive(5.0) == one
    assert theirs.receive(0.01) is None
    theirs.send(frame)
    assert ours.receive(5.0) == frame


def test_what_a_login_shell_prints_is_skipped() -> None:
    noisy = reading(b"Welcome!\nYou have mail.\n" + BEGIN + b'{"kind": "ping", "size": 0}\n', BEGIN)
    assert noisy.receive(5.0) == Frame(kind="ping")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "the stream has ended"),
        (b'{"kind": "ping", "size": 5}\nab', "within a frame"),
        (b"Segmentation fault\n", "Expecting value"),
        (b"[]\n", "not a JSON object"),
        (b'{"kind": "ping", "size": 999999999}\n', "size of a frame is 999999999"),
        (b'{"kind": 3, "size": 0}\n', "kind=3"),
        (b'{"kind": "whole", "offset": -1}\n', "not a number of 63 bits"),
        (b'{"kind": "whole", "mtime_ns": 1' + b"0" * 40 + b"}\n", "not a number of 63 bits"),
    ],
)
def test_what_is_no_frame_ends_the_connection(content: bytes, error: str) -> None:
    channel = reading(content)
    for _ in range(2):
        with pytest.raises(Closed, match=error):
            channel.receive(5.0)


def test_neither_noise_nor_the_head_of_a_frame_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MOST_NOISE", 100)
    ping = b'{"kind": "ping", "size": 0}\n'
    assert reading(b"x" * 50 + BEGIN + ping, BEGIN).receive(5.0) == Frame(kind="ping")
    with pytest.raises(Closed, match=r"^x{101}$"):
        reading(b"x" * 150 + BEGIN + ping, BEGIN).receive(5.0)
    monkeypatch.setattr(frames, "MOST_HEAD", 20)
    with pytest.raises(Closed, match="the stream has ended"):
        reading(ping).receive(5.0)


def test_output_without_frames_is_the_reason_of_the_end() -> None:
    with pytest.raises(Closed, match="This account is currently not available"):
        reading(b"This account is currently not available.\n", BEGIN).receive(5.0)


def test_a_frame_to_an_end_that_is_gone_is_refused() -> None:
    reader, writer = pipe()
    channel = Channel(pipe()[0], writer)
    reader.close()
    with pytest.raises(Closed):
        channel.send(Frame(kind="ping", body=bytes(CHUNK)))
