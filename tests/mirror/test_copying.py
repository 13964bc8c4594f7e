"""A file is copied as a whole, and a copy that was interrupted goes on."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

import rlnb
from rlnb.mirror.frames import Closed, Frame
from rlnb.mirror.run_files import copy
from rlnb.mirror.server import send_file
from rlnb.records.layout import RunDir

WISH = Frame(kind="fetch", path="logs/model.pt")
CONTENT = b"0123456789"


class Other:
    """The other end, which closes after some frames. A frame has at most four bytes."""

    def __init__(self, folder: Path, parts: int = 9) -> None:
        self.offsets: list[int] = []
        self._folder, self._parts = folder, parts
        self._frames: list[Frame] = []

    def send(self, frame: Frame) -> None:
        if frame.kind == "fetch":
            self.offsets.append(frame.offset)
            send_file(self, RunDir(self._folder), frame)  # type: ignore[arg-type]
            return
        for begin in range(0, len(frame.body), 4) or [0]:
            body = frame.body[begin : begin + 4]
            self._frames.append(dataclasses.replace(frame, offset=frame.offset + begin, body=body))

    def receive(self, timeout_s: float) -> Frame | None:
        if not self._parts:
            raise Closed("cut")
        self._parts -= 1
        return self._frames.pop(0) if self._frames else None


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Provide a run on another machine with one file."""
    folder = tmp_path / "there"
    write(folder, CONTENT, 5.0)
    return folder


def write(folder: Path, content: bytes, time_s: float) -> None:
    path = folder / WISH.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (time_s, time_s))


def test_a_file_appears_as_a_whole(tmp_path: Path, there: Path) -> None:
    copy(Other(there), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    path = tmp_path / "logs" / "model.pt"
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mtime == 5.0
    assert os.listdir(path.parent) == ["model.pt"]


def test_a_copy_goes_on_where_it_ended(tmp_path: Path, there: Path) -> None:
    path = tmp_path / "logs" / "model.pt"
    with pytest.raises(Closed):
        copy(Other(there, parts=2), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    assert not path.exists()
    other = Other(there)
    copy(other, RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    assert other.offsets == [8]
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("content", [b"abcdefghij", b"abcdef", b"abc", b""])
def test_the_first_part_of_an_earlier_file_is_not_used(tmp_path: Path, there: Path, content: bytes) -> None:
    with pytest.raises(Closed):
        copy(Other(there, parts=2), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    write(there, content, 6.0)
    copy(Other(there), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    assert (tmp_path / "logs" / "model.pt").read_bytes() == content


def test_the_error_of_the_other_end_and_its_silence_end_the_copy(tmp_path: Path, there: Path) -> None:
    other = Other(there)
    other.send = lambda wish: other._frames.append(Frame(kind="failed", data={"error": "no such file"}))  # type: ignore[method-assign]
    with pytest.raises(rlnb.RlnbError, match="no such file"):
        copy(other, RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    other.send = lambda wish: None  # type: ignore[method-assign]
    with pytest.raises(Closed, match="nothing has arrived"):
        copy(other, RunDir(tmp_path), WISH)  # type: ignore[arg-type]
