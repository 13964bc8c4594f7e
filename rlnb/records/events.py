"""An incremental reader of TensorBoard event files.

An event file is a TFRecord file: per record a little-endian uint64 length, its masked CRC32-C, the
payload, and the payload's masked CRC32-C (https://www.tensorflow.org/tutorials/load_data/tfrecord);
each payload is a ``tensorflow.Event`` protocol buffer, parsed with TensorBoard's own class.
"""

from __future__ import annotations

import logging
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4
_LARGEST_RECORD = 1 << 28
"""A length beyond this is garbage, not an event."""

Scalar = tuple[int, float, float]
"""Step, wall time in seconds since the epoch, value."""


class EventReader:
    """Reads what was appended since the last call to every event file below a folder.

    A torn record at the end of a file is left for the next call; a damaged one ends the reading
    of that file with a warning, the scalars before it are kept.

    Attributes:
        scalars: Tag to list of (step, wall time in seconds, value), in order of writing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}
        self._damaged: set[Path] = set()
        self.scalars: dict[str, list[Scalar]] = defaultdict(list)

    def refresh(self) -> int:
        """Read what is new; return the number of new scalars."""
        return sum(self._read(path) for path in sorted(self._folder.rglob("*tfevents*"), key=_age))

    def _read(self, path: Path) -> int:
        from tensorboard.compat.proto.event_pb2 import Event  # seconds, so only when there is something to read

        if path in self._damaged:
            return 0
        start = self._offsets.get(path, 0)
        try:
            with open(path, "rb") as file:
                file.seek(start)
                data = file.read()
        except OSError as exc:
            logger.warning("%s cannot be read: %s", path, exc)
            return 0
        count = 0
        try:
            for payload, end in _records(data):
                event = Event.FromString(payload)
                for value in event.summary.value:
                    number = _scalar(value)
                    if number is not None:
                        self.scalars[value.tag].append((event.step, event.wall_time, number))
                        count += 1
                self._offsets[path] = start + end
        except Exception as exc:  # protobuf's DecodeError has no public base class
            self._damaged.add(path)
            logger.warning(
                "%s is damaged after byte %d, the rest is not read: %s", path, self._offsets.get(path, 0), exc
            )
        return count


def _records(data: bytes) -> Iterator[tuple[memoryview, int]]:
    """Yield each whole record's payload and the offset behind it."""
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    view, offset = memoryview(data), 0
    while offset + _HEADER.size <= len(view):
        length, crc = _HEADER.unpack_from(view, offset)
        if length > _LARGEST_RECORD:
            raise ValueError(f"a record claims {length} bytes")
        end = offset + _HEADER.size + length + _FOOTER_BYTES
        if end > len(view):
            if crc != masked_crc32c(bytes(view[offset : offset + 8])):  # else damage would pass for a torn tail
                raise ValueError(f"a record claims {length} bytes")
            return
        yield view[offset + _HEADER.size : end - _FOOTER_BYTES], end
        offset = end


def _scalar(value: object) -> float | None:
    """Return a summary value as a float, or None when it is not a scalar (image, histogram, text)."""
    kind = value.WhichOneof("value")  # type: ignore[attr-defined]
    if kind == "simple_value":
        return value.simple_value  # type: ignore[attr-defined]
    if kind == "tensor":
        tensor = value.tensor  # type: ignore[attr-defined]
        if len(tensor.tensor_shape.dim):
            return None
        for field in ("float_val", "double_val", "int_val"):
            if values := getattr(tensor, field):
                return float(values[0])
    return None


def _age(path: Path) -> tuple[float, str]:
    """Order files by the second in their name (``events.out.tfevents.<seconds>...``), then by name."""
    for part in path.name.split("."):
        if part.isdigit() and len(part) >= 9:
            return float(part), str(path)
    return 0.0, str(path)
