"""Event files as TensorBoard writes them, without its packages: TFRecord files of ``tensorflow.Event`` messages."""

import os
import socket
import struct
import time


class EventFile:
    """An event file in a folder, flushed after each iteration."""

    def __init__(self, folder):
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.0"
        self._file = open(os.path.join(folder, name), "wb", buffering=0)  # noqa: SIM115
        self._write(_double(1, time.time()) + _bytes(3, b"brain.Event:2"))

    def add_scalars(self, step, scalars):
        for tag, value in scalars.items():
            value_message = _bytes(1, tag.encode()) + _key(2, 5) + struct.pack("<f", value)
            summary = _bytes(1, value_message)
            self._write(_double(1, time.time()) + _key(2, 0) + _varint(step) + _bytes(5, summary))

    def _write(self, payload):
        header = struct.pack("<Q", len(payload))
        self._file.write(header + _masked_crc(header) + payload + _masked_crc(payload))


def _varint(number):
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _key(field, wire_type):
    return _varint(field << 3 | wire_type)


def _bytes(field, value):
    return _key(field, 2) + _varint(len(value)) + value


def _double(field, value):
    return _key(field, 1) + struct.pack("<d", value)


def _masked_crc(data):
    """Return the masked CRC32-C (Castagnoli) of a record's part."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
