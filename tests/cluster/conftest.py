"""A real Slurm for the tests of this folder, and the end of every run that they leave."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb

# Where pytest's importlib mode would not find them.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "rig")]

NODES = 4
PORTS, PROCESSES = 20, 16
"""Between the Slurms of two processes of tests; and the processes that there are at most."""


def free_port(number: int) -> int:
    """Return a port for the Slurm of a process of tests, whose nodes' are free too.

    Tests that were killed leave theirs, and somebody else may be testing on this machine.
    """
    for port in range(16817 + PORTS * number, 17800, PORTS * PROCESSES):
        with contextlib.ExitStack() as bound:
            try:
                for taken in (port, *range(port + 1000, port + 1000 + NODES)):
                    bound.enter_context(socket.create_server(("127.0.0.1", taken)))
            except OSError:
                continue
            return port
    raise RuntimeError("Every port for a Slurm is taken: what runs is shown by `pgrep -a slurm`.")


@pytest.fixture(scope="session")
def slurm() -> Iterator[Any]:
    """A Slurm of four nodes, one for each process of tests."""
    if importlib.util.find_spec("rlnb_dask") is None:
        pytest.skip("rlnb-dask is not installed here")
    import slurm as rig

    if lacking := rig.missing():
        pytest.skip(f"there is no Slurm here: {', '.join(lacking)}")
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    found = rig.Slurm(Path(f"/tmp/rlnb-slurm-{os.getpid()}"), NODES, port=free_port(number))
    try:
        found.up()
        yield found
    finally:
        found.down()


@pytest.fixture
def clean(root: Path) -> Iterator[Path]:
    """A root of whose runs nothing goes on, on any node."""
    from runs_on_nodes import LEAVE_S, processes, wait_until

    yield root
    for run in rlnb.runs():
        run.cancel()
    wait_until(lambda: not any(processes(run) for run in rlnb.runs()), LEAVE_S)
