"""Read many repeated events at once, with NumPy.

A training logs the same tags in the same order again and again, so the records of its event file form rows of equal
length that differ only in the times, steps, values and checksums. Once a row was read record by record, the rows that
follow are compared with it byte by byte, and their numbers are taken out as arrays. Whatever differs, such as a new
tag, a longer step or damage, is left to the reader of single records.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from rlnb.metrics.columns import Columns

if TYPE_CHECKING:
    import numpy as np

HEADER_BYTES, FOOTER_BYTES = 12, 4
"""Bytes of a record before and after its payload."""
_TIME_PLACE, _STEP_PLACE = HEADER_BYTES + 1, HEADER_BYTES + 10
"""Places of wall time and step in a record."""
_LEAST_ROWS = 4
"""Rows that make the work on a new row worthwhile."""
_LEAST_RECORDS = 64
"""Records that a row must have saved, or else the next rows are looked for later."""
_LONGEST_WAIT = 4096
"""Most records that are read singly before rows are looked for again."""


class _Row:
    """A sequence of records of different tags, as a template of those that follow.

    Args:
        content: The bytes of the records.
        records: Tag and payload's length of each record.
    """

    def __init__(self, content: bytes, records: list[tuple[str, int]]) -> None:
        import numpy as np

        self.tags, self.size = [tag for tag, _ in records], len(content)
        mask, begin = np.full(self.size, 0xFF, np.uint8), 0
        begins, widths = [], []
        for _, length in records:
            end = begin + HEADER_BYTES + length + FOOTER_BYTES
            width = step_bytes(content, begin + _STEP_PLACE)
            mask[begin + _TIME_PLACE : begin + _STEP_PLACE - 1] = 0
            mask[begin + _STEP_PLACE : begin + _STEP_PLACE + width] = 0x80  # its upper bits say how long it is
            mask[end - FOOTER_BYTES - 4 : end] = 0
            begins.append(begin)
            widths.append(width)
            begin = end
        self._mask = mask
        self._bytes = np.frombuffer(content, np.uint8) & mask
        self._begins, self._widths = np.array(begins), np.array(widths)
        self._ends = np.append(self._begins[1:], self.size)

    def count(self, data: bytes, begin: int) -> int:
        """Return the number of rows in a file's bytes from a place on."""
        import numpy as np

        most = (len(data) - begin) // self.size
        if not most or not self._fits(np.frombuffer(data, np.uint8, self.size, begin)):
            return 0
        rows = np.frombuffer(data, np.uint8, most * self.size, begin).reshape(most, self.size)
        same = ((rows & self._mask) == self._bytes).all(axis=1)
        return most if same.all() else int(same.argmin())

    def read(self, data: bytes, begin: int, count: int, into: Columns) -> None:
        """Append the scalars of rows to columns."""
        import numpy as np

        rows = np.frombuffer(data, np.uint8, count * self.size, begin).reshape(count, self.size)
        steps = np.zeros((count, len(self.tags)), np.int64)
        for number in range(int(self._widths.max())):
            longer = np.flatnonzero(self._widths > number)
            part = rows[:, self._begins[longer] + _STEP_PLACE + number] & 0x7F
            steps[:, longer] |= part.astype(np.int64) << 7 * number
        times = self._numbers(rows, self._begins + _TIME_PLACE, "<f8")
        values = self._numbers(rows, self._ends - FOOTER_BYTES - 4, "<f4")
        for number, tag in enumerate(self.tags):
            into[tag].append_arrays(steps[:, number], times[:, number], values[:, number])

    def _fits(self, row: np.ndarray) -> bool:
        return bool(((row & self._mask) == self._bytes).all())

    def _numbers(self, rows: np.ndarray, begins: np.ndarray, dtype: str) -> np.ndarray:
        """Return the numbers that begin at some places of each row."""
        import numpy as np

        width = np.dtype(dtype).itemsize
        places = (begins[:, None] + np.arange(width)).ravel()
        return np.ascontiguousarray(rows[:, places]).view(dtype)


class Rows:
    """Looks for rows in the bytes of one file, which are passed chunk by chunk."""

    def __init__(self) -> None:
        self._row: _Row | None = None
        self._wait, self._next_wait = 0, 1
        self.begin()

    @property
    def size(self) -> int:
        """Bytes of the last row; 0 if there is none."""
        return self._row.size if self._row is not None else 0

    def begin(self) -> None:
        """Forget the records that were read singly, because other bytes or another record follow."""
        self._records: list[tuple[str, int]] = []
        self._places: dict[tuple[str, int], int] = {}
        self._ends: list[int] = []

    def read(self, data: bytes, begin: int, into: Columns) -> tuple[int, int]:
        """Append the scalars of the rows at a place that are like the last one; return their number and their end."""
        row = self._row
        if row is None or not (count := row.count(data, begin)):
            return 0, begin
        row.read(data, begin, count, into)
        self.begin()  # the records before the rows do not adjoin those behind them
        return count * len(row.tags), begin + count * row.size

    def after(self, data: bytes, tag: str, length: int, end: int, into: Columns) -> tuple[int, int]:
        """Do the same after a record that was read singly.

        Args:
            data: Bytes of the file.
            tag: Tag of the record.
            length: Length of its payload.
            end: Its end in the bytes.
            into: The columns.
        """
        record = (tag, length)
        earlier = self._places.get(record)
        self._places[record] = len(self._records)
        self._records.append(record)
        self._ends.append(end)
        if self._wait:
            self._wait -= 1
            return 0, end
        if earlier is None:
            return 0, end
        begin = self._ends[earlier]
        count, place = 0, end
        if (len(data) - end) // (end - begin) >= _LEAST_ROWS:
            records = self._records[earlier + 1 :]
            if len({tag for tag, _ in records}) == len(records):
                self._row = _Row(data[begin:end], records)
                count, place = self.read(data, end, into)
        if count >= _LEAST_RECORDS:
            self._wait, self._next_wait = 0, 1
        else:
            self._wait, self._next_wait = self._next_wait, min(2 * self._next_wait, _LONGEST_WAIT)
        return count, place


# -- repeats ---------------------------------------------------------------------------------------------------------
# Nearly every event is one scalar of a tag that was logged before. The events of one tag differ only in three numbers;
# the bytes between the numbers are always the same (https://protobuf.dev/programming-guides/encoding/)::
#
# 09 <wall time, double>  10 <step, varint>  <summary with its one value: lengths, tag, 15>  <value, float>
#
# Once protobuf has parsed one such event, these bytes therefore identify the tag. Protobuf parses all other events.


_BEGINNING = struct.Struct("<BdB")
_VALUE = struct.Struct("<f")
_WALL_TIME_TAG, _STEP_TAG = 0x09, 0x10
_LONGEST_STEP = 8
"""Longest varint read here, in bytes; negative numbers take ten bytes and are left to protobuf."""
_SHORTEST = _BEGINNING.size + _LONGEST_STEP + _VALUE.size
MOST_TAGS = 10_000
"""Most tags to remember, in case a writer uses a new tag for every event."""


class Repeats:
    """Tags by the bytes that identify them."""

    def __init__(self) -> None:
        self._tags: dict[bytes, str] = {}

    def read(self, payload: bytes) -> tuple[str, int, float, float] | None:
        """Return tag, step, wall time and value of an event whose tag was learned; None for any other event."""
        if (beginning := _begin(payload)) is None:
            return None
        step, wall_time, place = beginning
        tag = self._tags.get(payload[place:-4])
        return None if tag is None else (tag, step, wall_time, _VALUE.unpack_from(payload, len(payload) - 4)[0])

    def learn(self, payload: bytes, event: Any) -> None:
        """Remember the bytes that identify the tag of an event, if its layout is the one above.

        Args:
            payload: The event's bytes.
            event: Protobuf's object for these bytes, a ``tensorflow.Event`` with one ``simple_value``.
        """
        beginning = _begin(payload)
        if beginning is None or len(self._tags) >= MOST_TAGS:
            return
        value = event.summary.value[0]
        plain = type(event)(wall_time=event.wall_time, step=event.step)
        plain.summary.value.add(tag=value.tag, simple_value=value.simple_value)
        if plain.SerializeToString(deterministic=True) == payload:
            self._tags[payload[beginning[2] : -4]] = value.tag


def step_bytes(content: bytes, place: int) -> int:
    """Return the number of bytes of the step that begins at a place."""
    return next(number for number in range(1, _LONGEST_STEP + 1) if content[place + number - 1] < 0x80)


def _begin(payload: bytes) -> tuple[int, float, int] | None:
    """Return step, wall time, and the offset of the bytes after them; None if the payload has another layout."""
    if len(payload) < _SHORTEST:
        return None
    first, wall_time, second = _BEGINNING.unpack_from(payload)
    if first != _WALL_TIME_TAG or second != _STEP_TAG:
        return None
    step = shift = 0
    for place in range(_BEGINNING.size, _BEGINNING.size + _LONGEST_STEP):
        byte = payload[place]
        if byte < 0x80:
            return step | byte << shift, wall_time, place + 1
        step |= (byte & 0x7F) << shift
        shift += 7
    return None
