"""Fixtures for the tests of this folder: another machine, which is another folder of this one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.hooks.registry import registry

DOOR = Path(__file__).parents[1] / "rig" / "door"
# pytest's importlib mode does not add this folder.
sys.path.insert(0, str(DOOR.parent))


@pytest.fixture
def door(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Provide a launcher whose runs live in another folder, in this process and in those that it starts."""
    monkeypatch.syspath_prepend(str(DOOR))
    monkeypatch.setenv("PYTHONPATH", str(DOOR), prepend=os.pathsep if os.environ.get("PYTHONPATH") else None)
    registry.cache_clear()
    place = tmp_path / "door"
    place.mkdir()
    try:
        yield rlnb.door(str(place), root=str(tmp_path / "far"))
    finally:
        registry.cache_clear()
