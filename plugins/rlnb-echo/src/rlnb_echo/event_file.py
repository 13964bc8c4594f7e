"""Event files like TensorBoard's own, whose writer takes longer to import than a short training takes."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

POLYNOMIAL = 0x82F63B78
"""That of CRC-32C, with its bits in reverse order."""


class EventFile:
    """An event file in a folder. Each iteration is in the file as soon as it was added.

    Args:
        folder: Folder of the file, which is made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SourceMetadata

        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.0"
        self._file = open(folder / name, "wb", buffering=0)  # noqa: SIM115
        writer = SourceMetadata(writer="tensorboard.summary.writer.event_file_writer")
        first = Event(wall_time=time.time(), file_version="brain.Event:2", source_metadata=writer)
        self._write(first.SerializeToString())

    def add(self, iteration: int, scalars: Mapping[str, float]) -> None:
        """Add the scalars of an iteration, by tag."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        event = Event(wall_time=time.time(), step=iteration, summary=Summary(value=values))
        self._write(event.SerializeToString())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, data: bytes) -> None:
        length = struct.pack("<Q", len(data))
        self._file.write(length + _masked_crc(length) + data + _masked_crc(data))


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


_REMAINDERS = [_remainder(byte) for byte in range(256)]


def _masked_crc(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _REMAINDERS[crc & 0xFF ^ byte]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
