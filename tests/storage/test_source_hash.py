"""The hash of a source file, and the content that it covers."""

from __future__ import annotations

import hashlib

from rlnb.storage.files import has_hash, source_body, source_hash

BODY = b"TASK = 1\n"
CELL = b"# rlnb task 'Lift' of 'lift.ipynb'\n" + BODY


def test_the_same_cell_has_one_hash_in_every_notebook() -> None:
    copy = CELL.replace(b"lift.ipynb", b"copy.ipynb")
    assert source_hash(CELL) == source_hash(copy) == source_hash(BODY) == hashlib.sha256(BODY).hexdigest()
    assert source_body(CELL) == BODY
    assert source_hash(CELL) != source_hash(CELL + b"# changed\n")


def test_a_hash_of_an_older_version_covers_the_header_too() -> None:
    assert has_hash(CELL, source_hash(CELL))
    assert has_hash(CELL, hashlib.sha256(CELL).hexdigest())
    assert has_hash(CELL, None)
    assert not has_hash(CELL, "0" * 64)
