"""A queue on another machine: its launcher is that machine's, with the queue inside."""

from __future__ import annotations

import inspect

import pytest

import rlnb
from rlnb.launchers import DetachedLauncher, RemoteLauncher, make_launcher

pytest.importorskip("rlnb_ssh")


def test_the_queue_is_that_of_the_other_machine() -> None:
    launcher = rlnb.slurm(nodes=2, gpus_per_node=4, walltime="01:00:00", python="~/venv/bin/python", via="anna@login")
    assert isinstance(launcher, RemoteLauncher)
    assert (launcher.name, launcher.place, launcher.python) == ("ssh", "anna@login", "~/venv/bin/python")
    assert (launcher.nodes, launcher.nproc_per_node) == (2, 4)
    inner = launcher.queue
    assert inner is not None
    assert (inner.name, inner.settings["walltime"]) == ("slurm", "01:00:00")


def test_a_launcher_of_the_machine_keeps_its_settings() -> None:
    login = rlnb.ssh("anna@login", root="/scratch/anna", options=["-p", "2222"])
    launcher = rlnb.slurm(walltime="1", via=login)
    assert isinstance(launcher, RemoteLauncher)
    assert launcher.settings["queue"] is not None
    assert {**launcher.settings, "queue": None} == dict(login.settings)


def test_what_is_no_machine_is_refused() -> None:
    with pytest.raises(rlnb.CheckError, match="via=3 is not the name of a machine"):
        rlnb.slurm(via=3)


def test_a_launcher_with_limits_of_its_own_is_refused() -> None:
    for login in (rlnb.ssh("anna@login", max_running=2), rlnb.ssh("anna@login", queue=rlnb.slurm(walltime="1"))):
        with pytest.raises(rlnb.CheckError, match="has a queue or limits of its own"):
            rlnb.slurm(walltime="1", via=login)


def test_the_arguments_of_a_queue_are_known_as_before() -> None:
    parameters = inspect.signature(rlnb.slurm).parameters
    assert {"nodes", "walltime", "via"} <= {*parameters}
    assert "args" not in parameters
    with pytest.raises(rlnb.CheckError, match="'wall_time' is not a setting of slurm"):
        make_launcher("slurm", {"wall_time": "1"})
    assert isinstance(rlnb.slurm(walltime="1"), DetachedLauncher)
