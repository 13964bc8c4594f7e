"""The command of a run in a container."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path

import pytest
from rlnb_dask import containers

import rlnb
from rlnb import plugins


def manifest() -> rlnb.Manifest:
    return rlnb.Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo")


def test_the_runs_and_assets_are_mounted_in_a_ranks_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rlnb.options, "root", tmp_path)
    settings = rlnb.slurm(container="/images/isaaclab.sif", walltime="01:00:00").settings
    in_container = dataclasses.replace(manifest(), launcher="slurm", launcher_settings=settings, asset_root="/assets")
    plain = rlnb.Command(argv=("/env/bin/python", "-m", "rlnb.worker", "train"), env={"A": "b"})
    wrap = plugins.manager().hook.rlnb_wrap_command
    command = wrap(command=plain, manifest=in_container)
    assert command.argv == (
        *("apptainer", "exec", "--nv", "--bind", str(tmp_path), "--bind", "/assets", "/images/isaaclab.sif"),
        *("python", "-m", "rlnb.worker", "train"),
    )
    assert command.env == plain.env
    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", "/mounted")
    mounted = wrap(command=plain, manifest=dataclasses.replace(in_container, asset_root=None))
    assert mounted.argv[5:7] == ("--bind", "/mounted")
    with_python = dataclasses.replace(in_container, python="/isaaclab.sh -p", resources=rlnb.Resources(device="cpu"))
    assert "--nv" not in wrap(command=plain, manifest=with_python).argv
    assert wrap(command=plain, manifest=with_python).argv[-4:] == plain.argv
    assert wrap(command=plain, manifest=manifest()) is None


def test_docker_gets_the_names_of_variables_without_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rlnb.options, "root", tmp_path)
    arguments = {"container": "lab:3.0", "container_runtime": "docker", "walltime": "01:00:00"}
    settings = rlnb.slurm(**arguments).settings
    in_docker = dataclasses.replace(manifest(), launcher="slurm", launcher_settings=settings)
    plain = rlnb.Command(argv=("/env/bin/python", "-m", "rlnb.worker"), env={"TOKEN": "secret"}, cwd="/work")
    command = plugins.manager().hook.rlnb_wrap_command(command=plain, manifest=in_docker)
    assert command.argv[:4] == containers.WITH_FAMILIES
    assert command.argv[4:6] == ("--rm", "--init")
    assert command.argv[-4:] == ("lab:3.0", "python", "-m", "rlnb.worker")
    for word in (f"--volume={tmp_path}:{tmp_path}", "--workdir=/work", "--gpus=all", "--env=TOKEN"):
        assert word in command.argv
    assert "--env=PET_MASTER_ADDR" in command.argv
    assert "secret" not in " ".join(command.argv)
    assert command.env == plain.env


def docker_arguments(tmp_path: Path, **env: str) -> list[str]:
    """Return the arguments that a program in place of Docker gets from the command on a node with an environment."""
    program = tmp_path / "docker"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    settings = rlnb.slurm(container="lab:3.0", container_runtime="docker", walltime="01:00:00").settings
    in_docker = dataclasses.replace(manifest(), launcher="slurm", launcher_settings=settings)
    plain = rlnb.Command(argv=("/env/bin/python", "-m", "rlnb.worker", "train", "/the runs/one"))
    command = plugins.manager().hook.rlnb_wrap_command(command=plain, manifest=in_docker)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.run(command.argv, env={"PATH": path, **env}, capture_output=True, text=True, check=True)
    return process.stdout.splitlines()


def test_docker_gets_the_settings_of_nccl_and_gloo_that_the_node_has(tmp_path: Path) -> None:
    settings = {"NCCL_P2P_DISABLE": "1", "NCCL_DEBUG": "a b\nNCCL_X=1", "TORCH_NCCL_BLOCKING_WAIT": "1", "GLOO_A": ""}
    arguments = docker_arguments(tmp_path, **settings, MY_NCCL_A="1", NCCLX="1", SECRET="1")
    assert arguments[0] == "run"
    expected = sorted(f"--env={name}" for name in settings)
    assert sorted(word for word in arguments if "NCCL" in word or "GLOO" in word or "SECRET" in word) == expected
    assert arguments[-5:] == ["python", "-m", "rlnb.worker", "train", "/the runs/one"], "each is one argument"
    assert arguments[-6] == "lab:3.0"


def test_nvidias_terms_are_accepted_only_by_the_users_own_variable(tmp_path: Path) -> None:
    """Docker leaves a variable out if ``--env=NAME`` has no value and the node does not set it."""
    words = [word for word in docker_arguments(tmp_path) if "EULA" in word or "CONSENT" in word]
    assert words == ["--env=ACCEPT_EULA", "--env=OMNI_KIT_ACCEPT_EULA", "--env=PRIVACY_CONSENT"]
    for name in ("CUDA_DEVICE_ORDER", "NVIDIA_DRIVER_CAPABILITIES"):
        assert f"--env={name}" in docker_arguments(tmp_path)
