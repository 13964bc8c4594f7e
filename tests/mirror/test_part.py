"""A file that arrives in frames is whole or absent, and holds nothing but what has arrived."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.mirror.frames import Closed, Frame
from rlnb.mirror.run_files import Part


def frame(offset: int, body: bytes, total: int) -> Frame:
    return Frame(kind="put", path="a.bin", offset=offset, body=body, total=total)


def test_a_file_is_absent_until_its_last_bytes_have_arrived(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.bin"
    part = Part(path)
    assert part.status() == (0, 0)
    assert not part.write(frame(0, b"abc", 5))
    assert (part.status()[0], path.exists()) == (3, False)
    assert part.write(frame(3, b"de", 5))
    assert (path.read_bytes(), part.path.exists()) == (b"abcde", False)
    assert Part(path).write(frame(0, b"", 0))
    assert path.read_bytes() == b""


@pytest.mark.parametrize("odd", [frame(2, b"x", 5), frame(4, b"x", 5), frame(3, b"xyz", 5), frame(0, b"x", 99)])
def test_a_frame_that_does_not_follow_is_refused(tmp_path: Path, odd: Frame) -> None:
    part = Part(tmp_path / "a.bin", 9)
    part.write(frame(0, b"abc", 5))
    with pytest.raises(Closed):
        part.write(odd)
    assert part.path.read_bytes() == b"abc"


def test_a_file_that_came_before_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"first")
    assert Part(path).write(frame(0, b"x", 1), once=True)
    assert path.read_bytes() == b"first"
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    part = Part(tmp_path / "a.bin")
    part.path.symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic"):
        part.write(frame(0, b"x", 1))
    assert not (tmp_path / "precious").exists()
