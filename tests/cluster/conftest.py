"""Fixtures for the tests of this folder: a real Slurm, and a root whose runs all end with the test."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb

# pytest's importlib mode does not add this folder.
sys.path.insert(0, str(Path(__file__).parent))
from fixtures import module_of, running

NODES = 4
PORTS, PROCESSES = 20, 16
"""Distance between the ports of two test processes, and the largest number of test processes."""


PROLOG = """#!/bin/sh
test -e {folder}/slow.$SLURMD_NODENAME && sleep 8
test -e {folder}/broken.$SLURMD_NODENAME && exit 1
exit 0
"""
"""A Prolog that fails or is slow on the nodes for which there is a file."""


def free_port(number: int) -> int:
    """Return a free port for the Slurm of a test process, such that the ports of its nodes are free too.

    Ports may be taken by a Slurm that killed tests left behind, or by other tests on this machine.
    """
    for port in range(16817 + PORTS * number, 17800, PORTS * PROCESSES):
        with contextlib.ExitStack() as bound:
            try:
                for taken in (port, *range(port + 1000, port + 1000 + NODES)):
                    bound.enter_context(socket.create_server(("127.0.0.1", taken)))
            except OSError:
                continue
            return port
    raise RuntimeError("Every port for a Slurm is taken. `pgrep -a slurm` lists the daemons.")


def _slurm_folder() -> Path:
    """Return the folder of this test process's Slurm."""
    return Path(f"/tmp/rlnb-slurm-{os.getpid()}")


def end_runs(root: Path) -> None:
    """End every run, and wait until no process of them, and no host of an array, is left. It takes their queue."""
    from runs_on_nodes import LEAVE_S, alive, wait_until

    for run in rlnb.runs():
        run.cancel()
    wait_until(lambda: not alive(f"{root}/"), LEAVE_S)


@pytest.fixture(scope="session")
def slurm() -> Iterator[Any]:
    """Provide a Slurm of four nodes, one Slurm for each test process."""
    rig = module_of("slurm", "Slurm")
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    with running(rig.Slurm(_slurm_folder(), NODES, port=free_port(number))) as cluster:
        yield cluster


@pytest.fixture
def slurm_with_gpus(clean: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Provide a Slurm of two nodes with two GPUs each, beside the other one."""
    rig = module_of("slurm", "Slurm")
    monkeypatch.setenv("SLURM_CONF", "")  # its value afterwards is again that of the other Slurm
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    folder = Path(f"/tmp/rlnb-slurm-gpu-{os.getpid()}")
    with running(rig.Slurm(folder, 2, port=free_port(number), gpus=2)) as cluster:
        yield cluster
        end_runs(clean)


@pytest.fixture
def unfit(clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Provide a Slurm of three nodes beside the other one, and a function that gives nodes a Prolog that fails.

    With ``kind="slow"``, the Prolog takes eight seconds instead.
    """
    rig, folder = module_of("slurm", "Slurm"), tmp_path / "prolog"
    folder.mkdir()
    (folder / "prolog").write_text(PROLOG.format(folder=folder))
    (folder / "prolog").chmod(0o755)
    monkeypatch.setenv("SLURM_CONF", "")  # its value afterwards is again that of the other Slurm
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    place = Path(f"/tmp/rlnb-slurm-prolog-{os.getpid()}")

    def make(*nodes: int, kind: str = "broken") -> None:
        for node in nodes:
            (folder / f"{kind}.node{node}").touch()

    with running(rig.Slurm(place, 3, port=free_port(number), prolog=folder / "prolog")):
        yield make
        end_runs(clean)


@pytest.fixture(scope="session")
def sge() -> Iterator[Any]:
    """Provide a Grid Engine of four slots, one for each test process."""
    rig = module_of("sge", "Grid Engine")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    cluster = rig.GridEngine(Path(f"/tmp/rlnb-sge-{os.getpid()}"), port=port)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.env.items():
            patch.setenv(name, value)
        with running(cluster):
            yield cluster


@pytest.fixture(scope="session")
def oar() -> Iterator[Any]:
    """Provide an OAR of four cores. There is one on a machine, so another test process waits for it."""
    rig = module_of("oar", "OAR")
    with running(rig.Oar(Path(f"/tmp/rlnb-oar-{os.getpid()}"))) as cluster:
        yield cluster


@pytest.fixture
def clean(root: Path) -> Iterator[Path]:
    """Provide a root, and wait at the end until no process of its runs is left on any node."""
    yield root
    end_runs(root)
    # A further job that a failed test has left in the queue would take the nodes of the next test.
    if os.environ.get("SLURM_CONF", "").startswith(f"{_slurm_folder()}/"):
        subprocess.run(["scancel", "--me"], check=True, timeout=60)
