"""A file is copied as a whole, and a copy that was interrupted goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rlnb
from rlnb.mirror.copying import copy
from rlnb.mirror.frames import Closed, Frame
from rlnb.records.layout import RunDir

WISH = Frame(kind="fetch", path="logs/model.pt")
CONTENT = b"0123456789"


class Other:
    """The other end: sends a file in parts of four bytes, and closes after some of them."""

    def __init__(self, parts: int = 9, mtime_ns: int = 5_000_000_000, content: bytes = CONTENT) -> None:
        self.offsets: list[int] = []
        self._frames: list[Frame] = []
        self._parts, self._mtime_ns, self._content = parts, mtime_ns, content

    def send(self, wish: Frame) -> None:
        self.offsets.append(wish.offset)
        positions = range(wish.offset, len(self._content), 4) or [len(self._content)]
        for offset in positions:
            body = self._content[offset : offset + 4]
            values = {"total": len(self._content), "mtime_ns": self._mtime_ns}
            self._frames.append(Frame(kind="part", path=wish.path, offset=offset, body=body, **values))

    def receive(self, timeout_s: float) -> Frame | None:
        if not self._parts:
            raise Closed("cut")
        self._parts -= 1
        return self._frames.pop(0) if self._frames else None


def test_a_file_appears_as_a_whole(tmp_path: Path) -> None:
    copy(Other(), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    path = tmp_path / "logs" / "model.pt"
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mtime == 5.0
    assert os.listdir(path.parent) == ["model.pt"]


def test_a_copy_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "model.pt"
    with pytest.raises(Closed):
        copy(Other(parts=2), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    assert not path.exists()
    other = Other()
    copy(other, RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    assert other.offsets == [8]
    assert path.read_bytes() == CONTENT


def test_the_first_part_of_an_earlier_file_is_not_used(tmp_path: Path) -> None:
    with pytest.raises(Closed):
        copy(Other(parts=2), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    new = Other(mtime_ns=6_000_000_000, content=b"abcdefghij")
    with pytest.raises(Closed, match="has changed"):
        copy(new, RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    copy(new := Other(mtime_ns=6_000_000_000, content=b"abcdefghij"), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    assert new.offsets == [0]
    assert (tmp_path / "logs" / "model.pt").read_bytes() == b"abcdefghij"


def test_the_error_of_the_other_end_and_its_silence_end_the_copy(tmp_path: Path) -> None:
    other = Other()
    other.send = lambda wish: other._frames.append(Frame(kind="failed", data={"error": "no such file"}))  # type: ignore[method-assign]
    with pytest.raises(rlnb.RlnbError, match="no such file"):
        copy(other, RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    other.send = lambda wish: None  # type: ignore[method-assign]
    with pytest.raises(Closed, match="nothing has arrived"):
        copy(other, RunDir(tmp_path), WISH)  # type: ignore[arg-type]
