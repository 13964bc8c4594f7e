"""The hash of a source file, and the content that it covers."""

from __future__ import annotations

import hashlib

from rlnb.storage.source_hash import body_of, is_of, sha256

BODY = b"TASK = 1\n"
CELL = b"# rlnb task 'Lift' of 'lift.ipynb'\n" + BODY


def test_the_same_cell_has_one_hash_in_every_notebook() -> None:
    copy = CELL.replace(b"lift.ipynb", b"copy.ipynb")
    assert sha256(CELL) == sha256(copy) == sha256(BODY) == hashlib.sha256(BODY).hexdigest()
    assert body_of(CELL) == BODY
    assert sha256(CELL) != sha256(CELL + b"# changed\n")


def test_a_hash_of_an_older_version_covers_the_header_too() -> None:
    assert is_of(CELL, sha256(CELL))
    assert is_of(CELL, hashlib.sha256(CELL).hexdigest())
    assert is_of(CELL, None)
    assert not is_of(CELL, "0" * 64)
