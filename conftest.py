"""Hides GPUs from all tests except those that are marked ``gpu``.

Elsewhere the device ``"auto"`` would be a GPU on one machine and the CPU on another.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# In images that forbid bytecode, each process of a test would compile the modules of Isaac Lab and torch again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
sys.path.append(str(Path(__file__).parent / "tests" / "rig"))  # pytest's importlib mode would not find users.py
VARIABLE = "CUDA_VISIBLE_DEVICES"
ORIGINAL = os.environ.get(VARIABLE)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Hide all GPUs, or show those that the user shows, before the fixtures of the test start any process."""
    if item.get_closest_marker("gpu") is None:
        os.environ[VARIABLE] = ""
    elif ORIGINAL is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = ORIGINAL
