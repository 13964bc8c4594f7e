"""The scripts of tests/rig, which are no package."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

RIG = Path(__file__).parents[1] / "rig"


@pytest.fixture(scope="session")
def load_rig() -> Callable[[str], ModuleType]:
    """Return a function that imports a script of tests/rig by name."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, RIG / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
