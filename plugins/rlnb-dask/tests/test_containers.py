"""The command of a run in a container."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from pathlib import Path

import pytest
from rlnb_dask.queues.launcher import training_problems

import rlnb
from rlnb.hooks.registry import require
from rlnb.launchers import Resources
from rlnb.plugin import Command, Manifest


def manifest() -> Manifest:
    return Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo")


def test_the_runs_and_assets_are_mounted_in_a_ranks_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rlnb.options, "root", tmp_path)
    settings = rlnb.slurm(container="/images/isaaclab.sif", walltime="01:00:00").settings
    in_container = dataclasses.replace(manifest(), launcher="slurm", launcher_settings=settings, asset_root="/assets")
    plain = Command(argv=("/env/bin/python", "-m", "rlnb.worker", "train"), env={"A": "b"})
    wrap = functools.partial(require, "rlnb_wrap_command")
    command = wrap(command=plain, manifest=in_container)
    assert command.argv == (
        *("apptainer", "exec", "--nv", "--bind", str(tmp_path), "--bind", "/assets", "/images/isaaclab.sif"),
        *("python", "-m", "rlnb.worker", "train"),
    )
    assert command.env == plain.env
    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", "/mounted")
    mounted = wrap(command=plain, manifest=dataclasses.replace(in_container, asset_root=None))
    assert mounted.argv[5:7] == ("--bind", "/mounted")
    with_python = dataclasses.replace(in_container, python="/isaaclab.sh -p", resources=Resources(device="cpu"))
    assert "--nv" not in wrap(command=plain, manifest=with_python).argv
    assert wrap(command=plain, manifest=with_python).argv[-4:] == plain.argv
    assert wrap(command=plain, manifest=manifest()) is None


def test_docker_gets_the_names_of_variables_without_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rlnb.options, "root", tmp_path)
    arguments = {"container": "lab:3.0", "container_runtime": "docker", "walltime": "01:00:00"}
    settings = rlnb.slurm(**arguments).settings
    in_docker = dataclasses.replace(manifest(), launcher="slurm", launcher_settings=settings)
    plain = Command(argv=("/env/bin/python", "-m", "rlnb.worker"), env={"TOKEN": "secret"}, cwd="/work")
    command = require("rlnb_wrap_command", command=plain, manifest=in_docker)
    assert command.argv[:4] == (sys.executable, "-P", "-m", "rlnb_dask.docker")
    assert command.argv[4:8] == ("docker", "--gpus=all", "--rm", "--init")
    assert f"--user={os.getuid()}:{os.getgid()}" in command.argv
    assert command.argv[-4:] == ("lab:3.0", "python", "-m", "rlnb.worker")
    for word in (f"--volume={tmp_path}:{tmp_path}", "--workdir=/work", "--env=TOKEN"):
        assert word in command.argv
    assert "--env=PET_MASTER_ADDR" in command.argv
    assert "secret" not in " ".join(command.argv)
    assert command.env == plain.env


def test_docker_is_started_by_the_python_of_the_nodes() -> None:
    settings = rlnb.slurm(container="lab:3.0", container_runtime="docker", python="/env/python", walltime="1").settings
    in_docker = dataclasses.replace(manifest(), launcher_settings=settings, resources=Resources(device="cpu"))
    plain = Command(argv=("/env/bin/python", "-m", "rlnb.worker"))
    command = require("rlnb_wrap_command", command=plain, manifest=in_docker)
    assert command.argv[:6] == ("/env/python", "-P", "-m", "rlnb_dask.docker", "docker", "--rm")


@pytest.mark.parametrize(("uid", "user"), [(0, "--user=0:0"), (1000, "--userns=keep-id")])
def test_the_ranks_of_podman_have_the_id_of_the_user(monkeypatch: pytest.MonkeyPatch, uid: int, user: str) -> None:
    monkeypatch.setattr(os, "getuid", lambda: uid)
    monkeypatch.setattr(os, "getgid", lambda: uid)
    settings = rlnb.slurm(container="lab:3.0", container_runtime="podman", walltime="01:00:00").settings
    in_podman = dataclasses.replace(manifest(), launcher_settings=settings)
    plain = Command(argv=("/env/bin/python", "-m", "rlnb.worker"))
    argv = require("rlnb_wrap_command", command=plain, manifest=in_podman).argv
    assert argv[1:6] == ("-P", "-m", "rlnb_dask.docker", "podman", "--gpus=all")
    assert [word for word in argv if word.startswith("--user")] == [user]
    assert argv[-4:] == ("lab:3.0", "python", "-m", "rlnb.worker")


def test_pyxis_gets_the_image_and_the_folders_as_options_of_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rlnb.options, "root", tmp_path)
    arguments = {"container": "/images/isaaclab.sqsh", "container_runtime": "pyxis", "walltime": "01:00:00"}
    in_pyxis = dataclasses.replace(
        manifest(), launcher_settings=rlnb.slurm(**arguments).settings, asset_root="/assets", python="/isaaclab.sh -p"
    )
    plain = Command(argv=("/isaaclab.sh", "-p", "-m", "rlnb.worker"), env={"TOKEN": "secret"}, cwd="/work")
    command = require("rlnb_wrap_command", command=plain, manifest=in_pyxis)
    assert command.argv == (
        *(sys.executable, "-P", "-m", "rlnb_dask.pyxis", "--container-image=/images/isaaclab.sqsh"),
        *(f"--container-mounts={tmp_path}:{tmp_path},/assets:/assets", "--container-workdir=/work"),
        *("/isaaclab.sh", "-p", "-m", "rlnb.worker"),
    )
    assert command.env == plain.env
    with pytest.raises(rlnb.CheckError, match="Pyxis is a plugin of Slurm, and PBS does not have it"):
        rlnb.pbs(**arguments).job_script()


@pytest.mark.parametrize(
    ("runtime", "refused"),
    [("docker", ("a:b",)), ("podman", ("a:b",)), ("apptainer", ("a:b", "a,b")), ("pyxis", ("a:b", "a,b"))],
)
def test_a_folder_that_a_runtime_would_split_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str, refused: tuple[str, ...]
) -> None:
    launcher = rlnb.slurm(container="lab", container_runtime=runtime, walltime="01:00:00")
    for name in ("a b", "a:b", "a,b"):
        monkeypatch.setattr(rlnb.options, "root", tmp_path / name)
        lines = [problem.what for problem in training_problems(launcher, manifest())]
        expected = f"{tmp_path / name} cannot be mounted in a container of {runtime}, because its name contains"
        assert [line.startswith(expected) for line in lines] == [True] * (name in refused)
    monkeypatch.setattr(rlnb.options, "root", tmp_path)
    in_assets = dataclasses.replace(manifest(), asset_root="/as:sets")
    (problem,) = training_problems(launcher, in_assets)
    assert problem.what.startswith("/as:sets cannot be mounted")
    outside = rlnb.slurm(walltime="01:00:00")
    assert not [*training_problems(outside, in_assets)]
