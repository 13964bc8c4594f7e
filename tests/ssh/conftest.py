"""Fixtures for the tests of this folder: another user's account behind a real SSH server."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# pytest's importlib mode does not add this folder.
sys.path.insert(0, str(Path(__file__).parents[1] / "rig"))


@pytest.fixture(scope="session")
def far() -> Iterator[Any]:
    """Provide an account that shares no folder with the tests, and an SSH server that leads there."""
    if importlib.util.find_spec("rlnb_ssh") is None:
        pytest.skip("rlnb-ssh is not installed here")
    import ssh as rig

    if lacking := rig.missing():
        pytest.skip(f"no SSH server can be started here: {', '.join(lacking)}")
    with rig.machine() as found:
        yield found


@pytest.fixture(scope="session")
def slurm() -> Iterator[Any]:
    """Provide a Slurm of two nodes, whose commands the account may use."""
    if importlib.util.find_spec("rlnb_dask") is None:
        pytest.skip("rlnb-dask is not installed here")
    import slurm as rig

    if lacking := rig.missing():
        pytest.skip(f"Slurm is not installed here: {', '.join(lacking)}")
    found = rig.Slurm(Path(f"/tmp/rlnb-slurm-ssh-{os.getpid()}"), 2, port=17900)
    try:
        found.up()
        yield found
    finally:
        found.down()
