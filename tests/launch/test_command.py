"""The argv of a job, as text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rlnb
from rlnb.launch.command import interpreter, shell, worker_command

RUN, JOB = Path("/data/runs/r1"), Path("/data/runs/r1/jobs/0-train")


def manifest(nproc_per_node: int = 1, python: str | None = "/opt/env/bin/python") -> rlnb.Manifest:
    return rlnb.Manifest(
        run_id="r1",
        created="2026-01-01T00:00:00+00:00",
        task=rlnb.Task(id="Isaac-Cartpole-Direct"),
        library="rsl_rl",
        resources=rlnb.Resources(nproc_per_node=nproc_per_node),
        python=python,
    )


def test_one_process_is_plain_python() -> None:
    command = worker_command(manifest(), "train", RUN, JOB)
    assert shell(command) == (
        "PYTHONUNBUFFERED=1 /opt/env/bin/python -m rlnb.worker train /data/runs/r1 /data/runs/r1/jobs/0-train"
    )


def test_several_processes_are_torchruns() -> None:
    command = worker_command(manifest(nproc_per_node=4), "train", RUN, JOB)
    assert shell(command) == (
        "PYTHONUNBUFFERED=1 /opt/env/bin/python -m torch.distributed.run --standalone --nnodes=1 --nproc_per_node=4"
        " -m rlnb.worker train /data/runs/r1 /data/runs/r1/jobs/0-train"
    )


def test_isaaclabs_own_script_is_an_interpreter_of_two_words() -> None:
    command = worker_command(manifest(python="/opt/isaaclab/isaaclab.sh -p"), "train", RUN, JOB)
    assert command.argv[:4] == ("/opt/isaaclab/isaaclab.sh", "-p", "-m", "rlnb.worker")


def test_an_interpreter_in_a_folder_with_a_space_is_quoted() -> None:
    command = worker_command(manifest(python="'/opt/my env/python' -X dev"), "train", Path("/data/my runs"), JOB)
    assert command.argv[:3] == ("/opt/my env/python", "-X", "dev")
    assert shell(command) == (
        "PYTHONUNBUFFERED=1 '/opt/my env/python' -X dev -m rlnb.worker train '/data/my runs' /data/runs/r1/jobs/0-train"
    )


def test_no_interpreter_named_is_this_one() -> None:
    assert interpreter(None) == (sys.executable,)


@pytest.mark.parametrize("kind", ["evaluate", "export"])
def test_only_training_waits_in_the_queue_and_runs_on_several_ranks(kind: str) -> None:
    training = worker_command(manifest(nproc_per_node=2), "train", RUN, JOB)
    other = worker_command(manifest(nproc_per_node=2), kind, RUN, JOB)  # type: ignore[arg-type]
    assert (training.queued, other.queued) == (True, False)
    assert other.argv == ("/opt/env/bin/python", "-m", "rlnb.worker", kind, str(RUN), str(JOB))


def test_a_launcher_with_a_queue_of_its_own_needs_no_second_one() -> None:
    assert worker_command(manifest(), "train", RUN, JOB, max_running=1).queued
    assert not worker_command(manifest(), "train", RUN, JOB, max_running=None).queued


def test_what_the_launcher_allows_is_in_the_command() -> None:
    command = worker_command(
        manifest(), "train", RUN, JOB, max_running=3, walltime_s=60.0, gpu_per_slot=True, env={"A": "b c"}
    )
    assert (command.max_running, command.walltime_s, command.gpu_per_slot) == (3, 60.0, True)
    assert shell(command).startswith("PYTHONUNBUFFERED=1 A='b c' /opt/env/bin/python ")
