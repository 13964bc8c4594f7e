"""A training of Isaac Lab in a container of Podman, on a real Slurm."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from runs_on_nodes import LEAVE_S, echo, processes, wait_until

import rlnb
from rlnb.plugin import ENDED

CANCEL_S = 30.0
WORKER = "localhost/rlnb-worker"
"""The image that ``benchmarks/images.py`` builds from the recipe."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def podman(tmp_path: Path) -> Any:
    """Provide the launcher's settings for the image of the rig."""
    import podman as rig

    if reason := rig.missing():
        pytest.skip(reason)
    rig.write_settings(tmp_path / "containers.conf")
    prologue = [f"export CONTAINERS_CONF={tmp_path / 'containers.conf'}"]
    return {"container": rig.IMAGE, "container_runtime": "podman", "prologue": prologue}


@pytest.fixture
def recipe(tmp_path: Path) -> Any:
    """Provide the launcher's settings for the worker's image of ``rlnb containers write``."""
    import podman as rig

    if reason := rig.missing(WORKER):
        pytest.skip(reason)
    rig.write_settings(tmp_path / "containers.conf", shared=False)
    prologue = [f"export CONTAINERS_CONF={tmp_path / 'containers.conf'}"]
    return {"container": WORKER, "container_runtime": "podman", "prologue": prologue}


def inside(run: rlnb.Run) -> Sequence[psutil.Process]:
    """Return the processes of a run that have another root folder than this one."""
    own = os.stat("/")
    return [process for process in processes(run) if not os.path.samestat(os.stat(f"/proc/{process.pid}/root"), own)]


def training(run: rlnb.Run) -> rlnb.Run:
    """Wait until a run has trained some iterations in a container."""
    wait_until(lambda: run.progress[0] >= 3 or run.state in ENDED, 120)
    assert run.state == "running", run.logs()
    assert inside(run)
    return run


@pytest.mark.isaaclab
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_isaac_lab_trains_in_a_container_and_its_files_belong_to_the_user(slurm: Any, clean: Path, podman: Any) -> None:
    launcher = rlnb.slurm(walltime="00:10:00", cpus_per_node=2, memory_gib_per_node=6, **podman)
    run = rlnb.train("Isaac-Cartpole-Direct", num_envs=16, max_iterations=2, device="cpu", launcher=launcher)
    wait_until(lambda: inside(run) or run.state in ENDED, 120)
    assert inside(run), run.logs()
    assert run.wait(200).state == "completed", run.logs()
    assert run.progress == (2, 2)
    assert "rlnb_dask.docker podman" in run.command
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in run.path.rglob("*")}
    assert owners == {(os.getuid(), os.getgid())}
    wait_until(lambda: not processes(run) and not slurm.jobs(), LEAVE_S)


@pytest.mark.isaaclab
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_isaac_lab_trains_in_the_image_of_the_recipe(slurm: Any, clean: Path, recipe: Any) -> None:
    launcher = rlnb.slurm(walltime="00:10:00", cpus_per_node=2, memory_gib_per_node=6, **recipe)
    run = rlnb.train("Isaac-Cartpole-Direct", num_envs=16, max_iterations=2, device="cpu", launcher=launcher)
    assert run.wait(250).state == "completed", run.logs()
    assert "/opt/rlnb/prebuilt" not in run.logs(), "a warning about kernels that could not be copied"
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in run.path.rglob("*")}
    assert owners == {(os.getuid(), os.getgid())}
    wait_until(lambda: not processes(run) and not slurm.jobs(), LEAVE_S)


def test_a_cancellation_reaches_the_processes_in_the_container(slurm: Any, clean: Path, podman: Any) -> None:
    run = training(echo(rlnb.slurm(walltime="00:10:00", nodes=2, **podman), nproc_per_node=2, device="cpu"))
    assert len(inside(run)) >= 4
    run.cancel()
    assert wait_until(lambda: not processes(run), 60) < CANCEL_S
    assert run.state == "cancelled"


def test_a_walltime_ends_the_container_after_a_last_checkpoint(slurm: Any, clean: Path, podman: Any) -> None:
    run = training(echo(rlnb.slurm(walltime="00:02:00", grace_s=90, max_restarts=0, **podman), device="cpu"))
    with pytest.raises(rlnb.RunError, match="stopped shortly before the end of the queue's walltime"):
        run.wait(90)
    assert run.state == "timeout"
    assert run.checkpoints.last_whole() is not None
    wait_until(lambda: not processes(run), LEAVE_S)
