"""Fixtures for the tests of this folder: another user's account behind a real SSH server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import module_of, running


@pytest.fixture(scope="session")
def far() -> Iterator[Any]:
    """Provide an account that shares no folder with the tests, and an SSH server that leads there."""
    with module_of("ssh", "An SSH server", "rlnb_ssh").machine() as machine:
        yield machine


@pytest.fixture(scope="module")
def slurm() -> Iterator[Any]:
    """Provide a Slurm of two nodes, whose commands the account may use; later tests of this process have their own."""
    rig = module_of("slurm", "Slurm")
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", "")  # its value afterwards is again that of another Slurm
        folder = Path(f"/tmp/rlnb-slurm-ssh-{os.getpid()}")
        with running(rig.Slurm(folder, 2, port=17900 + 10 * number)) as cluster:
            yield cluster
