"""The hash of a source file: that of its content, without the line that names the notebook of a cell."""

from __future__ import annotations

import hashlib

HEADER = b"# rlnb task "
"""Begin of the first line of a cell's module. The line names the task and the notebook, and belongs to no hash."""


def body_of(content: bytes) -> bytes:
    """Return a file's content without the header line that names the notebook of a cell."""
    return content.partition(b"\n")[2] if content.startswith(HEADER) else content


def sha256(content: bytes) -> str:
    """Return the SHA-256 of a file's content without its header line, in hexadecimal."""
    return hashlib.sha256(body_of(content)).hexdigest()


def is_of(content: bytes, digest: str | None) -> bool:
    """Return whether a hash is that of a file's content. Older versions of rlnb hashed the header line too."""
    return digest in (None, sha256(content), hashlib.sha256(content).hexdigest())
