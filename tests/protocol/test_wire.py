"""Lines from a pipe."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import IO

import pytest

from rlnb.protocol.wire import BEGIN, Lines, skip


@pytest.fixture
def pipe() -> Iterator[tuple[Lines, IO[bytes]]]:
    """Lines, and the end of the pipe that writes them."""
    reader, writer = os.pipe()
    with open(reader, "rb") as file, open(writer, "wb", buffering=0) as end:
        yield Lines(file.fileno()), end


def test_lines_come_in_their_order_even_if_they_arrive_together(pipe: tuple[Lines, IO[bytes]]) -> None:
    lines, end = pipe
    assert not lines.waiting(0.0)
    end.write(b"fir")
    assert not lines.waiting(0.1), "a part of a line"
    end.write(b"st\nsecond\n")
    assert lines.waiting(10.0)
    assert lines.next() == b"first"
    assert lines.waiting(0.0)
    assert lines.next() == b"second"


def test_a_line_that_was_looked_at_is_still_the_next_one(pipe: tuple[Lines, IO[bytes]]) -> None:
    lines, end = pipe
    end.write(b"first\nsecond\n")
    assert [lines.peek(), lines.peek(), lines.next(), lines.peek()] == [b"first", b"first", b"first", b"second"]
    end.close()
    assert [lines.next(), lines.peek(), lines.next()] == [b"second", None, None]


def test_lines_that_arrive_later_are_seen_too(pipe: tuple[Lines, IO[bytes]]) -> None:
    lines, end = pipe
    end.write(b"first\n")
    assert lines.waiting(10.0)
    end.write(b"second\n")
    assert [lines.next(), lines.next()] == [b"first", b"second"]


def test_the_end_of_the_input_ends_every_wait(pipe: tuple[Lines, IO[bytes]]) -> None:
    lines, end = pipe
    end.write(b"last\nhalf a line")
    end.close()
    begin_s = time.monotonic()
    assert lines.next() == b"last"
    assert lines.waiting(60.0)
    assert lines.next() is None
    assert lines.next() is None
    assert time.monotonic() - begin_s < 10


def test_bytes_between_lines_are_taken_as_they_are(pipe: tuple[Lines, IO[bytes]]) -> None:
    lines, end = pipe
    content = bytes(range(256)) * 40
    end.write(b"a header\n" + content + b"a line\nhalf")
    assert lines.next() == b"a header"
    assert lines.take(len(content)) == content
    assert lines.next() == b"a line"
    end.close()
    assert lines.take(100) == b"half", "the input has ended"


def test_an_interrupt_leaves_out_the_bytes_that_were_taken_and_no_line(pipe: tuple[Lines, IO[bytes]]) -> None:
    """A user interrupts the transfer of a large file, and uses the simulator again."""
    lines, end = pipe
    end.write(b"a header\n" + b"{" * 10)
    assert lines.next() == b"a header"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.3, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            lines.take(1000)
    finally:
        signal.signal(signal.SIGINT, before)
    end.write(b"\n" * 500)
    assert not lines.waiting(0.1)
    end.write(b"\n" * 490 + b"a line\nanother one\n")
    assert lines.waiting(10.0)
    assert [lines.next(), lines.next()] == [b"a line", b"another one"]


def test_what_a_login_shell_prints_before_the_first_line_is_left_out() -> None:
    reader, writer = os.pipe()
    with open(reader, "rb") as file, open(writer, "wb", buffering=0) as end:
        lines = Lines(file.fileno(), after=BEGIN)
        end.write(b"Welcome\nto node3." + BEGIN[:5])
        assert not lines.waiting(0.1)
        end.write(BEGIN[5:] + b"first\n")
        assert lines.waiting(10.0)
        assert lines.next() == b"first"
        end.write(b"Welcome." + BEGIN + b"bytes")
        skip(file.fileno(), BEGIN)
        assert os.read(file.fileno(), 100) == b"bytes"
        silent = Lines(file.fileno(), after=BEGIN)
        end.write(b"Welcome\n")
        end.close()
        assert silent.next() is None, "no relay has begun"
