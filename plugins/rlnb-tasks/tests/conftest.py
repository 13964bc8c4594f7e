"""A single build of the packs, shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an asset root with the packs built into it."""
    pytest.importorskip("pxr")
    pytest.importorskip("newton")
    from rlnb.worker.assets import packs

    return packs.build(tmp_path_factory.mktemp("assets")).folder
