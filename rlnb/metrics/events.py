"""An incremental reader of TensorBoard event files.

An event file is a TFRecord file. Each record consists of a little-endian uint64 length, its masked CRC32-C, the
payload, and the payload's masked CRC32-C (https://www.tensorflow.org/tutorials/load_data/tfrecord).
Each payload is a ``tensorflow.Event`` protocol buffer. The first event of a tag is parsed with TensorBoard's own
class, later ones with :mod:`rlnb.metrics.rows`.
"""

from __future__ import annotations

import contextlib
import logging
import math
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from rlnb.errors import RlnbError
from rlnb.metrics import folders
from rlnb.metrics.columns import Column, Columns
from rlnb.metrics.rows import Repeats, Rows
from rlnb.storage import files
from rlnb.storage.entries import MOST_ALIKE, files_below

logger = logging.getLogger(__name__)

_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4
_LARGEST_RECORD = 1 << 28
"""Largest length of a record that is read, in bytes. A larger one counts as a value that is no scalar."""
_CHUNK_BYTES = 1 << 18
TAIL_BYTES = 1 << 17
"""Bytes at the end of a long file that are read ahead when reading runs out of time."""


@dataclass(slots=True)
class _File:
    """Reading position in a file, and what was read."""

    folder: str = ""
    offset: int = 0
    damaged: bool = False
    begun: float = 0.0
    """Wall time of the first record, in seconds since the epoch."""
    repeats: Repeats = field(default_factory=Repeats)
    rows: Rows = field(default_factory=Rows)
    unreadable: bool = False
    """Whether the last attempt to open or read it failed."""
    scalars: Columns = field(default_factory=lambda: defaultdict(Column))
    tail: Columns = field(default_factory=lambda: defaultdict(Column))
    """Scalars that were read ahead from the end of the file."""
    restart: int | None = None
    """Smallest step of a restart that the file announces."""
    drawn: dict[str, bool] = field(default_factory=dict)
    """Whether the tensors of a tag are scalars; the files of a folder share it."""
    others: Counter[str] = field(default_factory=Counter)
    """Number of values that are no scalars, by kind."""
    named: tuple[bool, float, frozenset[str]] | None = None
    """State when the curves were last named: whether the file has a given end, its begin, and its tags."""


class EventReader:
    """Reads the records appended since the last call to any event file below a folder.

    An incomplete record at the end of a file is left for the next call. A damaged record ends the reading of its file
    with a warning; the scalars before it are kept.

    Attributes:
        curves: Curves by name; :mod:`rlnb.metrics.folders` has the rules. The oldest folder of each tag is first.
        behind: Bytes that the last call left unread because it ran out of time.
        revision: Number of times that points which were there before have changed, or that a name has.
    """

    _column: type[Column] = Column
    """Class of the columns."""

    def __init__(self, folder: Path, *, without: str = "", by_time: bool = False) -> None:
        """Create a reader; nothing is read until :meth:`refresh`.

        Args:
            folder: Folder of the event files, which may lie at any depth.
            without: Name of a subfolder to skip.
            by_time: Whether the points are in order of time and none replaces another, as measures of a machine are.
        """
        self._folder, self._without, self._by_time = folder, folder / without if without else None, by_time
        self._files: dict[Path, _File] = {}
        self._drawn: dict[str, dict[str, bool]] = {}
        self._ends: Mapping[Path, int] = {}
        self._named: list[tuple[Path, int, bool]] = []
        """:meth:`_state` when the curves were last named and updated."""
        self.curves: dict[str, folders.Curve] = {}
        self.behind = self.revision = 0

    def end_at(self, sizes: Mapping[str, int]) -> bool:
        """Ignore what files contain after their first bytes; return whether all files have to be read again.

        Args:
            sizes: Number of bytes to read, by path below the folder.
        """
        self._ends = {self._folder / path: size for path, size in sizes.items()}
        too_far = any(file.offset > self._ends.get(path, file.offset) for path, file in self._files.items())
        if too_far:  # before the sizes were known
            self._files.clear()
            self._drawn.clear()
            self.curves.clear()
            self._named = []
            self.revision += 1
        return too_far

    def refresh(self, limit_s: float = math.inf) -> int:
        """Read the newly appended records; return the number of new scalars.

        Args:
            limit_s: Approximate time limit in seconds. The next call reads the rest, but the newest scalars are read
                ahead at once, so that a curve of millions of points shows its current value (:meth:`ahead`).
        """
        count = self._read_files(time.monotonic() + limit_s)
        if (state := self._state()) != self._named or any(file.tail for file in self._files.values()):
            self._named = state
            self._name()
            changed = [curve.update() for curve in self.curves.values()]
            self.revision += any(changed)
        return count

    def _read_files(self, deadline: float) -> int:
        """Read the newly appended records of all files; return the number of new scalars."""
        count = self.behind = 0
        for path in sorted(self._paths(), key=_age):
            file = self._files.get(path)
            if file is None:
                folder = _folder_of(path, self._folder)
                file = self._files[path] = _File(
                    folder=folder,
                    drawn=self._drawn.setdefault(folder, {}),
                    scalars=defaultdict(self._column),
                )
            if not file.damaged:
                count += self._read(path, file, deadline)
        return count

    def _state(self) -> list[tuple[Path, int, bool]]:
        """Return what the curves depend on, since those of 100,000 tags take long to look through."""
        return [(path, file.offset, path in self._ends) for path, file in self._files.items()]

    @property
    def scalars(self) -> dict[str, Column]:
        """The points of each curve, by name, in order."""
        return {name: curve.column for name, curve in self.curves.items() if len(curve.column)}

    @property
    def tags(self) -> set[str]:
        """The name of every curve."""
        return set(self.curves)

    def ahead(self, name: str) -> Column:
        """Return the newest points of a curve that were read ahead of unread older ones."""
        return self.curves[name].ahead() if name in self.curves else Column()

    def written(self, name: str) -> Column:
        """Return all points of a curve in the order of its files, with those that later ones have replaced."""
        column = Column()
        for file in self.curves[name].files:
            column.extend(file.scalars.get(self.curves[name].tag, Column()))
        return column

    @property
    def is_whole(self) -> bool:
        """Whether every file was read to its end, and none is damaged."""
        return not self.behind and not any(file.damaged or file.unreadable for file in self._files.values())

    @property
    def others(self) -> dict[str, int]:
        """Number of values that are no scalars by kind, such as ``{"images": 3}``; the most frequent kind is first."""
        total = sum((file.others for file in self._files.values()), Counter[str]())
        return dict(total.most_common())

    def _name(self) -> None:
        """Name the curves again if a file is new, has other tags than before, or if the order of the files changed."""
        states = {
            path: (path in self._ends, file.begun, frozenset((*file.scalars, *file.tail)))
            for path, file in self._files.items()
        }
        if all(file.named == states[path] for path, file in self._files.items()):
            return
        for path, file in self._files.items():
            file.named = states[path]
        ordered = sorted(
            self._files, key=lambda path: (path not in self._ends, _age(path)[0], self._files[path].begun, path)
        )
        names = set(self.curves)
        self.curves = folders.curves_of(
            [self._files[path] for path in ordered], self.curves.values(), by_time=self._by_time
        )
        self.revision += not names <= set(self.curves)

    def _paths(self) -> Iterator[Path]:
        paths = files_below(self._folder, lambda name: "tfevents" in name, alike=MOST_ALIKE)
        return (path for path in paths if self._without is None or self._without not in path.parents)

    def _read(self, path: Path, file: _File, deadline: float) -> int:
        count, file.unreadable = 0, False
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
            file.unreadable = True
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
        count = _parse(data, file.scalars, file, at_end=start + len(data) >= size)
        if file.offset == start and start + len(data) < size:
            count += self._read_long(opened, file, size)
        return count, file.offset > start

    def _read_long(self, opened: BinaryIO, file: _File, size: int) -> int:
        """Read a record that is longer than a chunk once it is complete; return the number of its scalars.

        It may hold a video, and also the scalars that a writer puts into the same event.
        """
        opened.seek(file.offset)
        header = opened.read(_HEADER.size)
        length, crc = _HEADER.unpack(header)
        if crc != _crc(header[:8]):
            raise ValueError(f"a record claims {length} bytes")
        end = file.offset + _HEADER.size + length + _FOOTER_BYTES
        if end > size:
            return 0
        count = 0
        if length <= _LARGEST_RECORD:
            count = _parse_payload(opened.read(length), file.scalars, file)
        else:
            file.others["other values"] += 1
        file.offset = end
        return count

    def _read_tail(self, opened: BinaryIO, file: _File, size: int) -> None:
        opened.seek(size - TAIL_BYTES)
        data = opened.read(TAIL_BYTES)
        start = _boundary(data)
        if start is not None:
            with contextlib.suppress(Exception):  # _read reports the damage when it gets there
                _parse(data[start:], file.tail, _File(drawn=dict(file.drawn)), at_end=True)


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
        read = _File()
        for payload in payloads[::step]:
            _parse_payload(payload, columns, read)
    return columns, len(payloads)


def _parse(data: bytes, into: Columns, file: _File, *, at_end: bool) -> int:
    """Append the scalars of complete records to columns, and move the file's offset past them."""
    start, rows, more = file.offset, file.rows, True
    rows.begin()
    total, place = rows.read(data, 0, into)
    while more:
        file.offset = start + place
        if place and not at_end and len(data) - place < rows.size:
            break  # the next chunk begins with a row
        count, place, more = _parse_singly(data, place, into, file, at_end=at_end)
        total += count
    return total


def _parse_singly(data: bytes, begin: int, into: Columns, file: _File, *, at_end: bool) -> tuple[int, int, bool]:
    """Append the scalars of the records from a place on, until rows follow, whose scalars are appended too.

    Returns:
        Number of scalars, the place behind them, and whether there were rows. Without rows, no complete record is left.
    """
    start, count, end = file.offset - begin, 0, begin
    for payload, end in _records(data, begin, at_end=at_end):
        if (scalar := file.repeats.read(payload)) is None:
            count += _parse_payload(payload, into, file)
            file.rows.begin()
        else:
            into[scalar[0]].append(*scalar[1:])
            more, place = file.rows.after(data, scalar[0], len(payload), end, into)
            count += 1 + more
            if more:
                return count, place, True
        file.offset = start + end
    return count, end, False


def _parse_payload(payload: bytes, into: Columns, file: _File) -> int:
    from tensorboard.compat.proto.event_pb2 import Event  # this import takes seconds, so it waits for the first record

    return _parse_event(Event.FromString(payload), payload, into, file)


def _parse_event(event: Any, payload: bytes, into: Columns, file: _File) -> int:
    count = 0
    file.begun = file.begun or event.wall_time
    if event.HasField("session_log") and event.session_log.status == event.session_log.START:
        file.restart = event.step if file.restart is None else min(event.step, file.restart)
        for column in into.values():
            column.restart(event.step)
    for value in event.summary.value:
        number = number_of(value, file.drawn)
        if number is None:
            file.others[kind_of(value)] += 1
            continue
        into[tag_of(value)].append(event.step, event.wall_time, number)
        count += 1
    if count == 1 and len(event.summary.value) == 1:
        file.repeats.learn(payload, event)
    return count


def _records(data: bytes, offset: int = 0, *, at_end: bool) -> Iterator[tuple[bytes, int]]:
    """Yield the payload of each complete record from an offset on, and the offset of its end."""
    size = len(data)
    while offset + _HEADER.size <= size:
        length, crc = _HEADER.unpack_from(data, offset)
        end = offset + _HEADER.size + length + _FOOTER_BYTES
        doubtful = not 0 < length <= _LARGEST_RECORD or (at_end and end > size)
        if doubtful and crc != _crc(data[offset : offset + 8]):  # padding or damage, not an empty or incomplete record
            raise ValueError(f"a record claims {length} bytes")
        if end > size:
            return
        yield data[offset + _HEADER.size : end - _FOOTER_BYTES], end
        offset = end


def _boundary(data: bytes) -> int | None:
    """Return the offset of the first record in bytes from the middle of a file; None if no record begins there."""
    for offset in range(len(data) - _HEADER.size):
        length, crc = _HEADER.unpack_from(data, offset)
        if length <= _LARGEST_RECORD and crc == _crc(data[offset : offset + 8]):  # that of eight zeros is not zero
            return offset
    return None


def _crc(data: bytes) -> int:
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    return masked_crc32c(data)  # type: ignore[no-any-return]


def _age(path: Path) -> tuple[float, str]:
    """Return a sort key: the second in the file's name (``events.out.tfevents.<seconds>...``), then by name."""
    for part in path.name.split("."):
        if part.isdigit() and len(part) >= 9:
            return float(part), str(path)
    return 0.0, str(path)


def _folder_of(path: Path, above: Path) -> str:
    """Return the folder of a file below another, with slashes; empty for the same folder."""
    return "" if path.parent == above else path.parent.relative_to(above).as_posix()


# -- values ----------------------------------------------------------------------------------------------------------
# TensorBoard draws a ``simple_value``, and a tensor with one number whose metadata name the plugin "scalars" or the
# data class of scalars (``tensorboard/dataclass_compat.py``). A writer may put the metadata into the first event of a
# tag in a folder only, and tensors without any may follow a ``simple_value``. TensorFlow writes a tensor's number as
# bytes, other writers write it into a field of its type.


_SCALARS, _DATA_CLASS_SCALAR = "scalars", 1
_BFLOAT16 = 14
_KINDS = {"images", "histograms", "audio", "text", "hparams", "pr_curves", "mesh"}
_TYPES = {
    1: ("<f4", "float_val"),
    2: ("<f8", "double_val"),
    3: ("<i4", "int_val"),
    4: ("<u1", "int_val"),
    5: ("<i2", "int_val"),
    6: ("<i1", "int_val"),
    9: ("<i8", "int64_val"),
    10: ("?", "bool_val"),
    _BFLOAT16: ("<u2", "half_val"),
    17: ("<u2", "int_val"),
    19: ("<f2", "half_val"),
    22: ("<u4", "uint32_val"),
    23: ("<u8", "uint64_val"),
}
"""NumPy's type and the field of values, by ``tensorflow.DataType``
(https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/framework/types.proto)."""


def number_of(value: Any, drawn: dict[str, bool]) -> float | None:
    """Return the number of a summary value, NaN and infinities included; None if TensorBoard draws it otherwise.

    Args:
        value: A ``tensorflow.Summary.Value``.
        drawn: Whether the tensors of a tag are scalars, from the value or the metadata that came first; updated in
            place.
    """
    tag = tag_of(value)
    if value.HasField("simple_value"):
        drawn.setdefault(tag, True)
        return float(value.simple_value)
    if not value.HasField("tensor"):
        return None
    if value.HasField("metadata") and tag not in drawn:
        drawn[tag] = _draws(value.metadata)
    return _number(value.tensor) if drawn.get(tag) else None


def tag_of(value: Any) -> str:
    """Return the tag of a summary value. Old writers put that of a tensor into the name of the node."""
    return str(value.tag or (value.node_name if value.HasField("tensor") else ""))


def kind_of(value: Any) -> str:
    """Return a word for a summary value that is no scalar, such as ``"histograms"``."""
    plugin, field = str(value.metadata.plugin_data.plugin_name), str(value.WhichOneof("value"))
    kinds = (plugin, {"image": "images", "histo": "histograms"}.get(field, field))
    return next((kind for kind in kinds if kind in _KINDS), "other values")


def _draws(metadata: Any) -> bool:
    if metadata.data_class:
        return bool(metadata.data_class == _DATA_CLASS_SCALAR)
    return bool(metadata.plugin_data.plugin_name == _SCALARS)


def _number(tensor: Any) -> float | None:
    """Return the number of a tensor of any shape with one number; None for other tensors."""
    import numpy as np

    if tensor.dtype not in _TYPES or math.prod(dim.size for dim in tensor.tensor_shape.dim) != 1:
        return None
    dtype, name = _TYPES[tensor.dtype]
    if tensor.tensor_content:
        if len(tensor.tensor_content) != np.dtype(dtype).itemsize:
            return None
        number = np.frombuffer(tensor.tensor_content, dtype)[0]
    elif len(values := getattr(tensor, name)) != 1:
        return None
    elif name == "half_val":  # the bits of the number
        number = np.array(values[0] & 0xFFFF, "<u2").view(dtype)[()]
    else:
        number = values[0]
    if tensor.dtype == _BFLOAT16:  # the upper half of a float32
        number = np.array(int(number) << 16, "<u4").view("<f4")[()]
    return float(number)
