"""A real Slurm for the tests of this folder, and the end of every run that they leave."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb

# Where pytest's importlib mode would not find them.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "rig")]

NODES = 4
PORTS = 20
"""Between the Slurms of two processes of tests."""


@pytest.fixture(scope="session")
def slurm() -> Iterator[Any]:
    """A Slurm of four nodes, one for each process of tests."""
    if importlib.util.find_spec("rlnb_dask") is None:
        pytest.skip("rlnb-dask is not installed here")
    import slurm as rig

    if lacking := rig.missing():
        pytest.skip(f"there is no Slurm here: {', '.join(lacking)}")
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    found = rig.Slurm(Path(f"/tmp/rlnb-slurm-{os.getpid()}"), NODES, port=16817 + PORTS * number)
    try:
        found.up()
        yield found
    finally:
        found.down()


@pytest.fixture
def clean(root: Path) -> Iterator[Path]:
    """A root of whose runs nothing goes on, on any node."""
    from gangs import processes, wait_until

    yield root
    for run in rlnb.runs():
        run.cancel()
    wait_until(lambda: not any(processes(run) for run in rlnb.runs()), 30)
