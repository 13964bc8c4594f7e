"""Small images with few colours."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

Colour = tuple[int, int, int]


def png(rows: Sequence[bytes], palette: Sequence[Colour]) -> bytes:
    """Return rows of palette indices as a PNG, 8 bits per pixel (ISO/IEC 15948). The same rows give the same bytes."""
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0)
    colours = bytes(value for colour in palette for value in colour)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 9)  # each row starts with its filter type, 0
    parts = ((b"IHDR", header), (b"PLTE", colours), (b"IDAT", pixels), (b"IEND", b""))
    chunks = (struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
