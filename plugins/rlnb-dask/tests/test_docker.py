"""What a node adds to ``docker run`` and ``podman run``, with programs in place of them and of nvidia-smi."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path

import pytest
from rlnb_dask.docker import job_gpus

import rlnb
from rlnb.hooks.registry import require
from rlnb.launchers import Resources
from rlnb.plugin import Command, Manifest

LISTING = "0, GPU-aa\n1, GPU-bb\n2, GPU-cc\n"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with programs in place of Docker, which prints its arguments, and of nvidia-smi, which has 3 GPUs."""
    scripts = {
        "docker": 'printf "%s\\n" "$@"; echo "visible: $CUDA_VISIBLE_DEVICES"',
        "nvidia-smi": f'test "$*" = "--query-gpu=index,uuid --format=csv,noheader" && cat <<END\n{LISTING}END',
    }
    scripts["podman"] = scripts["docker"]
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(programs: Path, device: str = "auto", runtime: str = "docker", **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command of a run in a container, on a node with an environment."""
    settings = rlnb.slurm(container="lab:3.0", container_runtime=runtime, walltime="01:00:00").settings
    in_docker = Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo", launcher="slurm")
    resources = Resources(device=device)
    in_docker = dataclasses.replace(in_docker, launcher_settings=settings, resources=resources)
    plain = Command(argv=("/env/bin/python", "-m", "rlnb.worker", "train", "/the runs/--gpus=all"))
    command = require("rlnb_wrap_command", command=plain, manifest=in_docker)
    node = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    return subprocess.run(command.argv, env={**node, **env}, capture_output=True, text=True, timeout=60)


def arguments(programs: Path, runtime: str = "docker", **env: str) -> list[str]:
    process = run(programs, runtime=runtime, **env)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_docker_gets_the_settings_of_nccl_and_gloo_that_the_node_has(programs: Path) -> None:
    settings = {"NCCL_P2P_DISABLE": "1", "NCCL_DEBUG": "a b\nNCCL_X=1", "TORCH_NCCL_BLOCKING_WAIT": "1", "GLOO_A": ""}
    words = arguments(programs, **settings, MY_NCCL_A="1", NCCLX="1", SECRET="1")
    assert words[0] == "run"
    expected = sorted(f"--env={name}" for name in settings)
    assert sorted(word for word in words if "NCCL" in word or "GLOO" in word or "SECRET" in word) == expected
    assert words[-7:-1] == ["lab:3.0", "python", "-m", "rlnb.worker", "train", "/the runs/--gpus=all"]


def test_nvidias_terms_are_accepted_only_by_the_users_own_variable(programs: Path) -> None:
    """Docker leaves a variable out if ``--env=NAME`` has no value and the node does not set it."""
    words = arguments(programs)
    assert [word for word in words if "EULA" in word or "CONSENT" in word] == [
        *("--env=ACCEPT_EULA", "--env=OMNI_KIT_ACCEPT_EULA", "--env=PRIVACY_CONSENT")
    ]
    for name in ("CUDA_DEVICE_ORDER", "NVIDIA_DRIVER_CAPABILITIES"):
        assert f"--env={name}" in words


@pytest.mark.parametrize(
    ("env", "uuids"),
    [
        ({}, "GPU-aa,GPU-bb,GPU-cc"),
        ({"CUDA_VISIBLE_DEVICES": "2, 0"}, "GPU-cc,GPU-aa"),
        ({"CUDA_VISIBLE_DEVICES": "MIG-dd"}, "MIG-dd"),
    ],
)
def test_the_container_gets_the_gpus_of_the_job_by_their_uuids(programs: Path, env: dict[str, str], uuids: str) -> None:
    words = arguments(programs, **env)
    assert [word for word in words if word.startswith("--gpus")] == [f'--gpus="device={uuids}"']
    assert "--env=CUDA_VISIBLE_DEVICES" in words
    assert words[-1] == f"visible: {uuids}"


def test_podman_gets_the_gpus_of_the_job_by_their_names_in_the_description_of_devices(programs: Path) -> None:
    words = arguments(programs, "podman", CUDA_VISIBLE_DEVICES="2,0")
    assert words[0] == "run"
    devices = [word for word in words if word.startswith("--device")]
    assert devices == ["--device=nvidia.com/gpu=GPU-cc", "--device=nvidia.com/gpu=GPU-aa"]
    assert words[-1] == "visible: GPU-cc,GPU-aa"


@pytest.mark.parametrize(("visible", "gpus"), [("", []), ("NoDevFiles", []), ("1,7", ["GPU-bb"])])
def test_gpus_that_the_job_does_not_have_are_left_out(visible: str, gpus: list[str]) -> None:
    assert job_gpus(visible, LISTING) == gpus


def test_a_job_without_gpus_gets_none(programs: Path) -> None:
    for words in (arguments(programs, CUDA_VISIBLE_DEVICES=""), run(programs, device="cpu").stdout.splitlines()):
        assert not [word for word in words if word.startswith("--gpus")]


def test_a_node_that_cannot_name_the_gpus_of_the_job_starts_no_container(programs: Path) -> None:
    (programs / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    process = run(programs, CUDA_VISIBLE_DEVICES="0")
    assert process.returncode == 1
    assert process.stderr.startswith("nvidia-smi cannot list the GPUs of this job: ")
    assert process.stdout == ""


@pytest.mark.parametrize("runtime", ["docker", "podman"])
def test_a_node_without_the_runtime_names_it(programs: Path, runtime: str) -> None:
    (programs / runtime).unlink()
    process = run(programs, "cpu", runtime, PATH=str(programs))
    assert process.returncode == 1
    reason = f"{runtime} cannot be started on this node: No such file or directory. Install it there, or use"
    assert process.stderr.startswith(reason)
