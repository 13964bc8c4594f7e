"""The conformance kit of launchers, run for the launcher of a real Slurm."""

from __future__ import annotations

from typing import Any

import pytest

from rlnb.testing import LauncherConformance


@pytest.mark.slow
@pytest.mark.usefixtures("slurm")
class TestSlurm(LauncherConformance):
    launcher = "slurm"
    settings: dict[str, Any] = {"nodes": 2, "walltime": "00:10:00"}
    one_at_a_time: dict[str, Any] = {"nodes": 4, "directives": ["--exclusive"]}
    cut_short: dict[str, Any] = {"walltime": "00:00:12", "grace_s": 2, "max_restarts": 0}
    end_s = 60.0  # a queue of Slurm may take its time while other tests run
