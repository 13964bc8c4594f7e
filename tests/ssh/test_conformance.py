"""The conformance kit of launchers, run for another user's account behind a real SSH server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import psutil
import pytest

import rlnb
from rlnb.testing import LauncherConformance

NODES = {"nodes": 2, "walltime": "00:10:00"}


class OnTheOtherSide(LauncherConformance):
    """Counts and kills the processes of the account, not those of this user that mirror its runs."""

    launcher = "ssh"
    machine: Any

    @pytest.fixture(autouse=True)
    def _machine(self, far: Any) -> None:
        type(self).machine = far
        type(self).settings = {
            "place": far.place,
            "python": far.python,
            "root": str(far.runs),
            "options": far.options,
        }

    def processes(self, run: rlnb.Run) -> Sequence[object]:
        """Return the processes of a run there. The far end of a mirror names no run, and is none of them."""
        found: Sequence[object] = self.machine.processes(run.id)
        return found

    def kill(self, run: rlnb.Run) -> None:
        """Kill the agents there."""
        for process in self.machine.processes(run.id):
            if "rlnb.node" in process.info["cmdline"]:
                try:
                    process.kill()
                except psutil.NoSuchProcess:  # the process ended with its agent
                    continue


@pytest.mark.slow
class TestSsh(OnTheOtherSide):
    one_at_a_time = {"max_running": 1}
    cut_short = {"walltime_s": 1.0}


@pytest.mark.slow
class TestSlurmBehindSsh(OnTheOtherSide):
    """The account is on the login node of a Slurm, and the nodes run as the account."""

    start_s = 180.0
    one_at_a_time = {"queue": {"name": "slurm", "settings": {**NODES, "directives": ["--exclusive"]}}}
    cut_short = {
        "queue": {"name": "slurm", "settings": {**NODES, "walltime": "00:00:12", "grace_s": 2, "max_restarts": 0}}
    }

    @pytest.fixture(autouse=True)
    def _slurm(self, far: Any, slurm: Any) -> None:
        type(self).settings = {
            **type(self).settings,
            "env": {"SLURM_CONF": os.environ["SLURM_CONF"]},
            "queue": {"name": "slurm", "settings": NODES},
        }
