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


@pytest.fixture(scope="session")
def slurm() -> Iterator[Any]:
    """Provide a Slurm of two nodes, whose commands the account may use."""
    rig = module_of("slurm", "Slurm")
    with running(rig.Slurm(Path(f"/tmp/rlnb-slurm-ssh-{os.getpid()}"), 2, port=17900)) as cluster:
        yield cluster
