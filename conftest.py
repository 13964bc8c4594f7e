"""Hides GPUs from all tests except those that are marked ``gpu``, and refuses markers that ``make`` would not find.

Otherwise, the device ``"auto"`` would be a GPU on one machine and the CPU on another.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

# In images that forbid bytecode, each process of a test would compile the modules of Isaac Lab and torch again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
sys.path.append(str(Path(__file__).parent / "tests" / "rig"))  # pytest's importlib mode would not find users.py
NAMES = {"isaaclab": "isaaclab", "slow": "slow|in_browser"}
"""Words by which the Makefile finds the files whose tests have a marker, as regular expressions."""
VARIABLE = "CUDA_VISIBLE_DEVICES"
ORIGINAL = os.environ.get(VARIABLE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test that ``make test-all`` would leave out."""
    folders = [Path(__file__).parent / name for name in ("tests", "plugins")]
    for marker, words in NAMES.items():
        files = {item.path for item in items if item.get_closest_marker(marker)}
        here = {path for path in files if any(path.is_relative_to(folder) for folder in folders)}
        lost = [str(path) for path in here if not re.search(rf"\b({words})\b", path.read_text(encoding="utf-8"))]
        lost += [str(path) for path in here if not path.match("test_*.py")]
        if lost:
            text = (
                f"{', '.join(lost)} has tests marked {marker}, but make test-all looks for them in files test_*.py that"
            )
            raise pytest.UsageError(f"{text} contain {words.replace('|', ' or ')}. Write the marker there.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Hide all GPUs, or show those that the user shows, before the fixtures of the test start any process."""
    if item.get_closest_marker("gpu") is None:
        os.environ[VARIABLE] = ""
    elif ORIGINAL is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = ORIGINAL
