"""One build of the pack for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an asset root with the pack built into it."""
    pytest.importorskip("pxr")
    pytest.importorskip("newton")
    from rlnb_tasks.build import build

    folder = tmp_path_factory.mktemp("assets")
    build(folder)
    return folder
