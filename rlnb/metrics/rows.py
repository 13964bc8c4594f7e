"""Read many repeated events at once, with NumPy.

A training logs the same tags in the same order again and again, so the records of its event file form rows of equal
length that differ only in the times, steps, values and checksums. Once a row was read record by record, the rows that
follow are compared with it byte by byte, and their numbers are taken out as arrays. Whatever differs, such as a new
tag, a longer step or damage, is left to the reader of single records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlnb.metrics.columns import Columns
from rlnb.metrics.repeats import step_bytes

if TYPE_CHECKING:
    import numpy as np

HEADER_BYTES, FOOTER_BYTES = 12, 4
"""Bytes of a record before and after its payload."""
_TIME, _STEP = HEADER_BYTES + 1, HEADER_BYTES + 10
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
            width = step_bytes(content, begin + _STEP)
            mask[begin + _TIME : begin + _STEP - 1] = 0
            mask[begin + _STEP : begin + _STEP + width] = 0x80  # its upper bits say how long it is
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
            part = rows[:, self._begins[longer] + _STEP + number] & 0x7F
            steps[:, longer] |= part.astype(np.int64) << 7 * number
        times = self._numbers(rows, self._begins + _TIME, "<f8")
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
