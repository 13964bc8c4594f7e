"""An incremental reader of TensorBoard event files.

An event file is a TFRecord file: per record a little-endian uint64 length, its masked CRC32-C, the
payload, and the payload's masked CRC32-C (https://www.tensorflow.org/tutorials/load_data/tfrecord);
each payload is a ``tensorflow.Event`` protocol buffer, parsed with TensorBoard's own class the first
time that a writer uses a tag (:mod:`rlnb.metrics.repeats`).
"""

from __future__ import annotations

import contextlib
import logging
import math
import struct
import time
from array import array
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rlnb.errors import RlnbError
from rlnb.metrics.repeats import Repeats
from rlnb.storage import files

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4
_LARGEST_RECORD = 1 << 28
"""A length beyond this is garbage, not an event."""
_CHUNK_BYTES = 1 << 20
TAIL_BYTES = 1 << 17
"""Bytes at the end of a long file that are read first, where time is short."""

Scalar = tuple[int, float, float]
"""Step, wall time in seconds since the epoch, value."""


class Column:
    """The scalars of one tag in the order of writing, 24 bytes each."""

    __slots__ = ("_steps", "_times", "_values")

    def __init__(self) -> None:
        self._steps, self._times, self._values = array("q"), array("d"), array("d")

    def append(self, step: int, time: float, value: float) -> None:
        """Add one."""
        self._steps.append(step)
        self._times.append(time)
        self._values.append(value)

    def extend(self, other: Column) -> None:
        """Add those of another tag or file behind one's own."""
        self._steps.extend(other._steps)
        self._times.extend(other._times)
        self._values.extend(other._values)

    def arrays(self, start: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return steps (int64), wall times (float64, seconds since the epoch) and values (float64) as copies.

        Args:
            start: Index of the first.
        """
        import numpy as np

        steps, times, values = (memoryview(part)[start:] for part in (self._steps, self._times, self._values))
        return np.array(steps), np.array(times), np.array(values)

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, index: int) -> Scalar:
        return self._steps[index], self._times[index], self._values[index]

    def __iter__(self) -> Iterator[Scalar]:
        return zip(self._steps, self._times, self._values, strict=True)


Columns = defaultdict[str, Column]


@dataclass(slots=True)
class _File:
    """How far a file is read, and what was read ahead from its end."""

    offset: int = 0
    damaged: bool = False
    repeats: Repeats = field(default_factory=Repeats)
    tail: Columns = field(default_factory=lambda: defaultdict(Column))


class EventReader:
    """Reads what was appended since the last call to every event file below a folder.

    A torn record at the end of a file is left for the next call; a damaged one ends the reading
    of that file with a warning, the scalars before it are kept.

    Attributes:
        scalars: Tag to its scalars, in order of writing.
        behind: Bytes that are still to be read, after a call that ran out of time.
    """

    def __init__(self, folder: Path, *, without: str = "") -> None:
        """Read nothing yet.

        Args:
            folder: Where the files are, at any depth.
            without: Name of a folder in it that is passed over.
        """
        self._folder, self._without = folder, folder / without if without else None
        self._files: dict[Path, _File] = {}
        self.scalars: Columns = defaultdict(Column)
        self.behind = 0

    def refresh(self, limit_s: float = math.inf) -> int:
        """Read what is new; return the number of new scalars.

        Args:
            limit_s: Seconds after which to stop, about. What is left is for the next call; the newest of it is read
                at once, so that a curve of millions of points shows where it is now (:meth:`ahead`).
        """
        deadline, count, self.behind = time.monotonic() + limit_s, 0, 0
        for path in sorted(self._paths(), key=_age):
            file = self._files.setdefault(path, _File())
            if not file.damaged:
                count += self._read(path, file, deadline)
        return count

    def ahead(self, tag: str) -> Column:
        """Return the newest scalars of a tag that are read though others before them are not."""
        newest = Column()
        for file in self._files.values():
            if tag in file.tail:
                newest.extend(file.tail[tag])
        return newest

    @property
    def tags(self) -> set[str]:
        """Every tag of which there is a scalar."""
        return {tag for tags in (self.scalars, *(file.tail for file in self._files.values())) for tag in tags}

    def _paths(self) -> Iterator[Path]:
        paths = self._folder.rglob("*tfevents*")
        return (path for path in paths if self._without is None or self._without not in path.parents)

    def _read(self, path: Path, file: _File, deadline: float) -> int:
        count = 0
        try:
            with files.open_regular(path) as opened:
                size = opened.seek(0, 2)
                grown = True  # until there is a torn tail, which is for the next call and not for this one's haste
                while grown and file.offset < size and time.monotonic() < deadline:
                    scalars, grown = self._read_chunk(opened, file, size)
                    count += scalars
                file.tail = defaultdict(Column)
                if grown and size - file.offset > TAIL_BYTES:
                    self._read_tail(opened, file, size)
                self.behind += size - file.offset if grown else 0
        except RlnbError as exc:  # a pipe, say
            file.damaged = True
            files.warn_once(str(exc))
        except OSError as exc:
            files.warn_once(f"{path} cannot be read: {exc.strerror or exc}. Make it readable, or move it away.")
        except Exception as exc:  # protobuf's DecodeError has no public base class
            file.damaged = True
            logger.warning("%s is damaged after byte %d, the rest is not read: %s", path, file.offset, exc)
        return count

    def _read_chunk(self, opened: BinaryIO, file: _File, size: int) -> tuple[int, bool]:
        """Read some records; return how many scalars, and whether there was a whole record at all."""
        chunk_bytes, start = _CHUNK_BYTES, file.offset
        while True:
            opened.seek(start)
            data = opened.read(chunk_bytes)
            count = _parse(data, self.scalars, file, at_end=start + len(data) >= size)
            if file.offset > start or start + len(data) >= size:
                return count, file.offset > start
            chunk_bytes *= 2  # a record that is longer than that

    def _read_tail(self, opened: BinaryIO, file: _File, size: int) -> None:
        opened.seek(size - TAIL_BYTES)
        data = opened.read(TAIL_BYTES)
        start = _boundary(data)
        if start is not None:
            with contextlib.suppress(Exception):  # damage there is told when the reading gets to it
                _parse(data[start:], file.tail, _File(), at_end=True)


def _parse(data: bytes, into: Columns, file: _File, *, at_end: bool) -> int:
    """Add the scalars of whole records to columns, and move the file's offset behind them."""
    from tensorboard.compat.proto.event_pb2 import Event  # seconds, so only when there is something to read

    count, start = 0, file.offset
    for payload, end in _records(data, at_end=at_end):
        if (scalar := file.repeats.read(payload)) is not None:
            into[scalar[0]].append(*scalar[1:])
            count += 1
        else:
            count += _parse_event(Event.FromString(payload), payload, into, file)
        file.offset = start + end
    return count


def _parse_event(event: Any, payload: bytes, into: Columns, file: _File) -> int:
    count = 0
    for value in event.summary.value:
        number = value.simple_value if value.HasField("simple_value") else _scalar(value)
        if number is not None:
            into[value.tag].append(event.step, event.wall_time, number)
            count += 1
    if count == 1 and len(event.summary.value) == 1:
        file.repeats.learn(payload, event)
    return count


def _records(data: bytes, *, at_end: bool) -> Iterator[tuple[bytes, int]]:
    """Yield each whole record's payload and the offset behind it."""
    offset, size = 0, len(data)
    while offset + _HEADER.size <= size:
        length, crc = _HEADER.unpack_from(data, offset)
        if not 0 < length <= _LARGEST_RECORD:
            raise ValueError(f"a record claims {length} bytes")
        end = offset + _HEADER.size + length + _FOOTER_BYTES
        if end > size:
            if at_end and crc != _crc(data[offset : offset + 8]):  # else damage would pass for a torn tail
                raise ValueError(f"a record claims {length} bytes")
            return
        yield data[offset + _HEADER.size : end - _FOOTER_BYTES], end
        offset = end


def _boundary(data: bytes) -> int | None:
    """Return where the first record begins in bytes from the middle of a file; None if none does."""
    for offset in range(len(data) - _HEADER.size):
        length, crc = _HEADER.unpack_from(data, offset)
        if length <= _LARGEST_RECORD and crc == _crc(data[offset : offset + 8]):
            return offset
    return None


def _crc(data: bytes) -> int:
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    return masked_crc32c(data)  # type: ignore[no-any-return]


def _scalar(value: Any) -> float | None:
    """Return a summary value as a float, or None when it is not a scalar (image, histogram, text)."""
    if value.WhichOneof("value") != "tensor":
        return None
    tensor = value.tensor
    if len(tensor.tensor_shape.dim):
        return None
    for name in ("float_val", "double_val", "int_val"):
        if values := getattr(tensor, name):
            return float(values[0])
    return None


def _age(path: Path) -> tuple[float, str]:
    """Order files by the second in their name (``events.out.tfevents.<seconds>...``), then by name."""
    for part in path.name.split("."):
        if part.isdigit() and len(part) >= 9:
            return float(part), str(path)
    return 0.0, str(path)
