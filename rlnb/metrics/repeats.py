"""Read repeated events without building protobuf objects, in half the time.

Nearly every event is one scalar of a tag that was logged before. The events of one tag differ only in three numbers;
the bytes between the numbers are always the same (https://protobuf.dev/programming-guides/encoding/)::

    09 <wall time, double>  10 <step, varint>  <summary with its one value: lengths, tag, 15>  <value, float>

Once protobuf has parsed one such event, these bytes therefore identify the tag. Protobuf parses all other events.
"""

from __future__ import annotations

import struct
from typing import Any

_BEGINNING = struct.Struct("<BdB")
_VALUE = struct.Struct("<f")
_WALL_TIME, _STEP = 0x09, 0x10
_LONGEST_STEP = 8
"""Longest varint read here, in bytes; negative numbers take ten bytes and are left to protobuf."""
_SHORTEST = _BEGINNING.size + _LONGEST_STEP + _VALUE.size
MOST = 10_000
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
        if beginning is None or len(self._tags) >= MOST:
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
    if first != _WALL_TIME or second != _STEP:
        return None
    step = shift = 0
    for place in range(_BEGINNING.size, _BEGINNING.size + _LONGEST_STEP):
        byte = payload[place]
        if byte < 0x80:
            return step | byte << shift, wall_time, place + 1
        step |= (byte & 0x7F) << shift
        shift += 7
    return None
