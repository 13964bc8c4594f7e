"""An incremental reader of TensorBoard event files.

An event file is a TFRecord file. Each record consists of a little-endian uint64 length, its masked CRC32-C, the
payload, and the payload's masked CRC32-C (https://www.tensorflow.org/tutorials/load_data/tfrecord).
Each payload is a ``tensorflow.Event`` protocol buffer. The first event of a tag is parsed with TensorBoard's own
class, later ones with :mod:`rlnb.metrics.repeats`.
"""

from __future__ import annotations

import contextlib
import logging
import math
import struct
import time
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rlnb.errors import RlnbError
from rlnb.metrics.repeats import Repeats
from rlnb.storage import files
from rlnb.storage.walk import files_below

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4
_LARGEST_RECORD = 1 << 28
"""Largest credible length of a record, in bytes; a greater one means that the file is damaged."""
_CHUNK_BYTES = 1 << 18
TAIL_BYTES = 1 << 17
"""Bytes at the end of a long file that are read ahead when reading runs out of time."""

Scalar = tuple[int, float, float]
"""Step, wall time in seconds since the epoch, value."""


class Column:
    """The scalars of one tag in the order of writing, at 24 bytes per scalar."""

    __slots__ = ("_steps", "_times", "_values")

    def __init__(self) -> None:
        self._steps, self._times, self._values = array("q"), array("d"), array("d")

    def append(self, step: int, time: float, value: float) -> None:
        """Append a scalar; ``time`` is in seconds since the epoch."""
        self._steps.append(step)
        self._times.append(time)
        self._values.append(value)

    def extend(self, other: Column) -> None:
        """Append the scalars of another column."""
        self._steps.extend(other._steps)
        self._times.extend(other._times)
        self._values.extend(other._values)

    def arrays(self, start: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return steps (int64), wall times (float64, seconds since the epoch) and values (float64) as copies.

        Args:
            start: Index of the first scalar to return.
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
    """Reading position in a file, and the scalars read ahead from its end."""

    offset: int = 0
    damaged: bool = False
    repeats: Repeats = field(default_factory=Repeats)
    tail: Columns = field(default_factory=lambda: defaultdict(Column))


class EventReader:
    """Reads the records appended since the last call to any event file below a folder.

    An incomplete record at the end of a file is left for the next call. A damaged record ends the reading of its file
    with a warning; the scalars before it are kept.

    Attributes:
        scalars: Tag to its scalars, in order of writing.
        behind: Bytes that the last call left unread because it ran out of time.
    """

    def __init__(self, folder: Path, *, without: str = "") -> None:
        """Create a reader; nothing is read until :meth:`refresh`.

        Args:
            folder: Folder of the event files, which may lie at any depth.
            without: Name of a subfolder to skip.
        """
        self._folder, self._without = folder, folder / without if without else None
        self._files: dict[Path, _File] = {}
        self._ends: Mapping[Path, int] = {}
        self.scalars: Columns = defaultdict(Column)
        self.behind = 0

    def end_at(self, sizes: Mapping[str, int]) -> bool:
        """Ignore what files contain after their first bytes; return whether all files have to be read again.

        Args:
            sizes: Number of bytes to read, by path below the folder.
        """
        self._ends = {self._folder / path: size for path, size in sizes.items()}
        too_far = any(file.offset > self._ends.get(path, file.offset) for path, file in self._files.items())
        if too_far:  # before the sizes were known
            self._files.clear()
            self.scalars.clear()
        return too_far

    def refresh(self, limit_s: float = math.inf) -> int:
        """Read the newly appended records; return the number of new scalars.

        Args:
            limit_s: Approximate time limit in seconds. The next call reads the rest, but the newest scalars are read
                ahead at once, so that a curve of millions of points shows its current value (:meth:`ahead`).
        """
        deadline, count, self.behind = time.monotonic() + limit_s, 0, 0
        for path in sorted(self._paths(), key=_age):
            file = self._files.setdefault(path, _File())
            if not file.damaged:
                count += self._read(path, file, deadline)
        return count

    def ahead(self, tag: str) -> Column:
        """Return the newest scalars of a tag that were read ahead of unread older ones."""
        newest = Column()
        for file in self._files.values():
            if tag in file.tail:
                newest.extend(file.tail[tag])
        return newest

    @property
    def tags(self) -> set[str]:
        """Every tag that has a scalar."""
        return {tag for tags in (self.scalars, *(file.tail for file in self._files.values())) for tag in tags}

    def _paths(self) -> Iterator[Path]:
        paths = files_below(self._folder, lambda name: "tfevents" in name)
        return (path for path in paths if self._without is None or self._without not in path.parents)

    def _read(self, path: Path, file: _File, deadline: float) -> int:
        count = 0
        try:
            with files.open_regular(path) as opened:
                size = opened.seek(0, 2)
                size = min(size, self._ends.get(path, size))
                grown = True  # False once only an incomplete record is left, which ``behind`` does not count
                while grown and file.offset < size and time.monotonic() < deadline:
                    scalars, grown = self._read_chunk(opened, file, size)
                    count += scalars
                file.tail = defaultdict(Column)
                if grown and size - file.offset > TAIL_BYTES:
                    self._read_tail(opened, file, size)
                self.behind += size - file.offset if grown else 0
        except RlnbError as exc:  # not a regular file, for example a pipe
            file.damaged = True
            files.warn_once(str(exc))
        except OSError as exc:
            files.warn_once(f"{path} cannot be read: {exc.strerror or exc}. Make it readable, or move it away.")
        except Exception as exc:  # protobuf's DecodeError has no public base class
            file.damaged = True
            logger.warning("%s is damaged after byte %d. The rest of the file is ignored: %s", path, file.offset, exc)
        return count

    def _read_chunk(self, opened: BinaryIO, file: _File, size: int) -> tuple[int, bool]:
        """Read some records; return the number of scalars, and whether there was at least one complete record."""
        start = file.offset
        opened.seek(start)
        data = opened.read(min(_CHUNK_BYTES, size - start))
        count = _parse(data, self.scalars, file, at_end=start + len(data) >= size)
        if file.offset == start and start + len(data) < size:
            # The record is longer than a chunk: a video, for example, but no scalar. It is passed over unread.
            length, crc = _HEADER.unpack_from(data)
            if crc != _crc(data[:8]):
                raise ValueError(f"a record claims {length} bytes")
            end = start + _HEADER.size + length + _FOOTER_BYTES
            file.offset = end if end <= size else start
        return count, file.offset > start

    def _read_tail(self, opened: BinaryIO, file: _File, size: int) -> None:
        opened.seek(size - TAIL_BYTES)
        data = opened.read(TAIL_BYTES)
        start = _boundary(data)
        if start is not None:
            with contextlib.suppress(Exception):  # _read reports the damage when it gets there
                _parse(data[start:], file.tail, _File(), at_end=True)


def thinned(path: Path, most: int) -> tuple[Columns, int]:
    """Return the scalars of at most ``most`` records of an event file at even distances, and the number of records.

    Means over long trainings need no more, and most of the time goes into parsing. A damaged file gives the records
    before the damage, and an unreadable file gives none.
    """
    payloads: list[bytes] = []
    with contextlib.suppress(OSError, RlnbError, ValueError), files.open_regular(path) as file:
        payloads += (payload for payload, _ in _records(file.read(files.LARGEST_BYTES), at_end=True))
    columns: Columns = defaultdict(Column)
    step = max(1, -(-len(payloads) // most))
    with contextlib.suppress(Exception):  # protobuf's DecodeError has no public base class
        from tensorboard.compat.proto.event_pb2 import Event

        for payload in payloads[::step]:
            _parse_event(Event.FromString(payload), payload, columns, _File())
    return columns, len(payloads)


def _parse(data: bytes, into: Columns, file: _File, *, at_end: bool) -> int:
    """Append the scalars of complete records to columns, and move the file's offset past them."""
    from tensorboard.compat.proto.event_pb2 import Event  # this import takes seconds, so it waits for the first record

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
    """Yield the payload of each complete record and the offset of its end."""
    offset, size = 0, len(data)
    while offset + _HEADER.size <= size:
        length, crc = _HEADER.unpack_from(data, offset)
        if not 0 < length <= _LARGEST_RECORD:
            raise ValueError(f"a record claims {length} bytes")
        end = offset + _HEADER.size + length + _FOOTER_BYTES
        if end > size:
            if at_end and crc != _crc(data[offset : offset + 8]):  # a damaged length, not an incomplete record
                raise ValueError(f"a record claims {length} bytes")
            return
        yield data[offset + _HEADER.size : end - _FOOTER_BYTES], end
        offset = end


def _boundary(data: bytes) -> int | None:
    """Return the offset of the first record in bytes from the middle of a file; None if no record begins there."""
    for offset in range(len(data) - _HEADER.size):
        length, crc = _HEADER.unpack_from(data, offset)
        if length <= _LARGEST_RECORD and crc == _crc(data[offset : offset + 8]):
            return offset
    return None


def _crc(data: bytes) -> int:
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    return masked_crc32c(data)  # type: ignore[no-any-return]


def _scalar(value: Any) -> float | None:
    """Return a summary value as a float; None if it is not a scalar (image, histogram, text)."""
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
    """Return a sort key: the second in the file's name (``events.out.tfevents.<seconds>...``), then by name."""
    for part in path.name.split("."):
        if part.isdigit() and len(part) >= 9:
            return float(part), str(path)
    return 0.0, str(path)
