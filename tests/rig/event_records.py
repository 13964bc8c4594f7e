"""Records of TensorBoard's event files, made with its own protobufs and checksums."""

from __future__ import annotations

import struct

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c


def framed(payload: bytes) -> bytes:
    """Return a record: its length, the checksum of that, the payload, and its checksum."""
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", masked_crc32c(length)) + payload + struct.pack("<I", masked_crc32c(payload))


def record(event: Event) -> bytes:
    """Return the record of an event."""
    return framed(event.SerializeToString())


def scalar(tag: str, step: int, value: float, wall_time: float = 1e9) -> bytes:
    """Return the record of one point."""
    return record(Event(wall_time=wall_time, step=step, summary=Summary(value=[{"tag": tag, "simple_value": value}])))
