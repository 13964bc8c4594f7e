"""The argv of a job."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

import rlnb
from rlnb.launch.command import interpreter, ranks_of, runs_worker, worker_command
from rlnb.launchers import Resources
from rlnb.plugin import Manifest

RUN, JOB = Path("/data/runs/r1"), Path("/data/runs/r1/jobs/0-train")
PATHS = (str(RUN), str(JOB))


def manifest(nproc_per_node: int = 1, python: str | None = "/opt/env/bin/python") -> Manifest:
    return Manifest(
        run_id="r1",
        created="2026-01-01T00:00:00+00:00",
        task=rlnb.Task(id="Isaac-Cartpole-Direct"),
        library="rsl_rl",
        resources=Resources(nproc_per_node=nproc_per_node),
        python=python,
    )


def test_one_process_is_plain_python() -> None:
    command = worker_command(manifest(), "train", RUN, JOB)
    assert command.shell() == (
        "PYTHONUNBUFFERED=1 /opt/env/bin/python -P -m rlnb.worker train /data/runs/r1 /data/runs/r1/jobs/0-train"
    )


def test_several_processes_are_started_by_torchrun() -> None:
    command = worker_command(manifest(nproc_per_node=4), "train", RUN, JOB)
    assert command.shell() == (
        "PYTHONUNBUFFERED=1 /opt/env/bin/python -P -m torch.distributed.run --nproc_per_node=4 --nnodes=1"
        " -m rlnb.worker train /data/runs/r1 /data/runs/r1/jobs/0-train"
    )


def test_isaaclabs_launch_script_is_an_interpreter_with_an_argument() -> None:
    command = worker_command(manifest(python="/opt/isaaclab/isaaclab.sh -p"), "train", RUN, JOB)
    assert command.argv[:5] == ("/opt/isaaclab/isaaclab.sh", "-p", "-P", "-m", "rlnb.worker")


def test_a_script_gets_the_asset_root_of_its_run() -> None:
    script = dataclasses.replace(manifest(), script=("train.py",), asset_root="/mnt/assets")
    assert worker_command(script, "train", RUN, JOB).env["ISAACSIM_ASSET_ROOT"] == "/mnt/assets"
    for other in (dataclasses.replace(script, asset_root=None), dataclasses.replace(script, script=())):
        assert "ISAACSIM_ASSET_ROOT" not in worker_command(other, "train", RUN, JOB).env


def test_an_interpreter_in_a_folder_with_a_space_is_quoted() -> None:
    command = worker_command(manifest(python="'/opt/my env/python' -X dev"), "train", Path("/data/my runs"), JOB)
    assert command.argv[:3] == ("/opt/my env/python", "-X", "dev")
    assert command.shell() == (
        "PYTHONUNBUFFERED=1 '/opt/my env/python' -X dev -P -m rlnb.worker train '/data/my runs' "
        "/data/runs/r1/jobs/0-train"
    )


def test_the_default_interpreter_is_the_current_one() -> None:
    assert interpreter(None) == (sys.executable,)


@pytest.mark.parametrize("kind", ["evaluate", "export"])
def test_only_training_waits_in_the_queue_and_runs_on_several_ranks(kind: str) -> None:
    training = worker_command(manifest(nproc_per_node=2), "train", RUN, JOB)
    other = worker_command(manifest(nproc_per_node=2), kind, RUN, JOB)  # type: ignore[arg-type]
    assert (training.queued, other.queued) == (True, False)
    assert other.argv == ("/opt/env/bin/python", "-P", "-m", "rlnb.worker", kind, str(RUN), str(JOB))


def test_a_launcher_with_its_own_queue_skips_the_machines_queue() -> None:
    assert worker_command(manifest(), "train", RUN, JOB, max_running=1).queued
    assert not worker_command(manifest(), "train", RUN, JOB, max_running=None).queued


def test_the_limits_of_the_launcher_are_in_the_command() -> None:
    command = worker_command(manifest(), "train", RUN, JOB, max_running=3, walltime_s=60.0, gpu_ranks=1)
    assert (command.max_running, command.walltime_s, command.gpu_per_slot) == (3, 60.0, True)
    quoted = dataclasses.replace(command, env={"PYTHONUNBUFFERED": "1", "A": "b c"})
    assert quoted.shell().startswith("PYTHONUNBUFFERED=1 A='b c' /opt/env/bin/python ")


def test_the_ranks_of_a_node_are_read_from_its_command() -> None:
    def ranks(resources: Resources, kind: str = "train") -> int:
        request = dataclasses.replace(manifest(), resources=resources)
        return ranks_of(worker_command(request, kind, RUN, JOB).argv)  # type: ignore[arg-type]

    assert (
        ranks(Resources()),
        ranks(TWO_BY_TWO),
        ranks(Resources(nproc_per_node=4)),
    ) == (1, 2, 4)
    assert ranks(TWO_BY_TWO, "evaluate") == 1
    assert ranks_of(("python", "train.py", "--nproc_per_node=8")) == 1, "a script's own argument"


TWO_BY_TWO = Resources(nodes=2, nproc_per_node=2)


def test_on_several_nodes_the_agent_sets_the_node_rank() -> None:
    request = dataclasses.replace(manifest(), resources=TWO_BY_TWO)
    ranks = ("-P", "-m", "torch.distributed.run", "--nproc_per_node=2", "--nnodes=2")
    command = worker_command(request, "train", RUN, JOB)
    assert command.argv == ("/opt/env/bin/python", *ranks, "-m", "rlnb.worker", "train", *PATHS)


def test_the_shell_command_of_several_nodes_has_variables_for_the_node() -> None:
    several = dataclasses.replace(manifest(), resources=TWO_BY_TWO)
    note, line = worker_command(several, "train", RUN, JOB).shell().splitlines()
    assert note.startswith("# On each node, with NODE from 0 to 1")
    assert line.startswith("PET_NODE_RANK=$NODE PET_MASTER_ADDR=$FIRST PET_MASTER_PORT=29500 PYTHONUNBUFFERED=1 ")


def test_only_a_training_sets_the_threads_of_a_rank() -> None:
    request = dataclasses.replace(manifest(), resources=Resources(nproc_per_node=2, threads=1))
    assert worker_command(request, "train", RUN, JOB).env["OMP_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in worker_command(request, "evaluate", RUN, JOB).env
    assert "OMP_NUM_THREADS" not in worker_command(manifest(), "train", RUN, JOB).env


def test_each_rank_on_a_gpu_takes_one_slot() -> None:
    several = worker_command(manifest(nproc_per_node=3), "train", RUN, JOB, max_running=4, gpu_ranks=3)
    assert (several.slots, several.max_running, several.gpu_per_slot) == (3, 4, True)
    assert worker_command(manifest(nproc_per_node=3), "train", RUN, JOB, max_running=4).slots == 1


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("python", "-m", "rlnb.worker", "train"), True),
        (("docker", "run", "lab", "python", "-m", "rlnb.worker"), True),
        (("python", "-m", "torch.distributed.run", "-m", "rlnb.worker"), True),
        (("python", "train.py", "rlnb.worker"), False),
        (("python", "-m", "rlnb.worker_of_a_container"), False),
    ],
)
def test_a_worker_is_distinguished_from_a_script_even_inside_a_wrapper(argv: tuple[str, ...], expected: bool) -> None:
    assert runs_worker(argv) is expected
