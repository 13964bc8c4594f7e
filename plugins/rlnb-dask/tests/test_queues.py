"""What is asked of a queue becomes the text of its job, and what is wrong with it is told before."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import sys
from pathlib import Path
from types import SimpleNamespace

import dask
import dask_jobqueue  # noqa: F401  whose defaults are dask's from then on
import psutil
import pytest
from rlnb_dask import clusters, host, node

import rlnb
from rlnb import plugins

ASKED = {
    "nodes": 2,
    "cpus_per_node": 8,
    "gpus_per_node": 4,
    "memory_gib_per_node": 64,
    "walltime": "1-08:30:00",
    "partition": "gpu",
    "account": "robots",
    "interface": "ib0",
    "prologue": ["module load cuda"],
    "python": "/shared/my env/bin/python",
}
SLURM = """#!/usr/bin/env bash

#SBATCH -J rlnb
#SBATCH -p gpu
#SBATCH -A robots
#SBATCH -t 1-08:30:00
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --no-requeue
#SBATCH --cpus-per-task=8
#SBATCH --mem=65536M
#SBATCH --gpus-per-node=4
#SBATCH --constraint=h200
module load cuda
export GLOO_SOCKET_IFNAME=ib0
export NCCL_SOCKET_IFNAME=ib0
srun --kill-on-bad-exit=1 --cpus-per-task=8 '/shared/my env/bin/python' -m rlnb_dask.worker <scheduler> --name <name>\
 --nthreads 1 --memory-limit 64.00GiB --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard\
 --dashboard-address 127.0.0.1:0 --interface ib0
"""
OTHERS = {
    "pbs": [
        "#PBS -q gpu",
        "#PBS -A robots",
        "#PBS -l select=1:ncpus=8:mem=65536mb:ngpus=4",
        "#PBS -l walltime=32:30:00",
    ],
    "sge": ["#$ -q gpu", "#$ -P robots", "#$ -l h_rt=32:30:00", "#$ -l gpu=4"],
    "lsf": ["#BSUB -q gpu", '#BSUB -P "robots"', "#BSUB -n 8", "#BSUB -W 32:30", "#BSUB -gpu num=4"],
    "htcondor": ["RequestCpus = MY.DaskWorkerCores", "request_gpus = 4"],
    "oar": ["#OAR -q gpu", "#OAR --project robots", "#OAR -l /nodes=1/gpu=4,walltime=32:30:00"],
}


SITE = {
    "job-script-prologue": ["module load site"],
    "job-extra-directives": ["--constraint=site"],
    "resource-spec": "select=1:ncpus=99",
}


def manifest() -> rlnb.Manifest:
    return rlnb.Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo")


def problems(name: str = "slurm", **asked: object) -> str:
    launcher = plugins.load(plugins.launcher(name).factory)(**{"walltime": "01:00:00", **asked})
    return "\n".join(problem.what for problem in launcher.check(manifest()))


def test_a_gang_is_one_job_of_slurm() -> None:
    assert rlnb.slurm(**ASKED, directives=["--constraint=h200"]).job_script() == SLURM


@pytest.mark.filterwarnings("ignore:OAR Job memory")
@pytest.mark.parametrize("name", OTHERS)
def test_other_queues_are_asked_for_each_node_in_their_own_words(name: str) -> None:
    script = getattr(rlnb, name)(**ASKED).job_script()
    for line in OTHERS[name]:
        assert line in script
    assert "rlnb_dask.worker" in script
    assert "srun" not in script


def test_what_was_not_asked_for_is_left_to_the_site() -> None:
    script = rlnb.slurm(walltime="01:00:00").job_script()
    for word in ("--mem=", "--cpus-per-task", "gpus", " -p ", " -A "):
        assert word not in script


def test_a_launcher_can_be_made_again_from_its_settings() -> None:
    launcher = rlnb.slurm(**ASKED)
    again = rlnb.slurm(**launcher.settings)
    assert again.settings == launcher.settings
    assert again.job_script() == launcher.job_script()


def test_a_rank_is_started_on_every_gpu() -> None:
    assert rlnb.slurm(gpus_per_node=4).nproc_per_node == 4
    assert rlnb.slurm().nproc_per_node is None


def test_a_training_is_stopped_before_its_walltime() -> None:
    assert rlnb.slurm(walltime="1-08:30:00").limit_s == 32.5 * 3600 - 60
    assert rlnb.slurm(walltime="00:30:00", grace_s=300).limit_s == 1500


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"walltime": None}, "has no walltime"),
        ({"walltime": "8 hours"}, "'8 hours' is not a time"),
        ({"walltime": "00:01:00"}, "the last 60 s are for stopping"),
        ({"nodes": 0}, "nodes=0 is not a number above 0"),
        ({"gpus_per_node": -1}, "gpus_per_node=-1"),
        ({"memory_gib_per_node": "64GB"}, "memory_gib_per_node='64GB'"),
        ({"partition": "gpu\n#SBATCH --uid=0"}, "would become one of the job's"),
        ({"account": "robots; rm -rf ~"}, "holds characters that no such name has"),
        ({"interface": "$(id)"}, "holds characters"),
        ({"directives": ["--a\n--b"]}, "directives[0]"),
        ({"python": ""}, "python=''"),
        ({"container_runtime": "podman"}, "is none of apptainer, docker"),
    ],
)
def test_what_is_wrong_is_told_before_the_queue_is_asked(asked: dict[str, object], expected: str) -> None:
    assert expected in problems(**asked)


def test_all_problems_are_told_at_once() -> None:
    told = problems(walltime=None, nodes=0, account="a b")
    assert len(told.splitlines()) == 3


def test_a_machine_without_the_queues_commands_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for name, command in (("slurm", "sbatch"), ("pbs", "qsub"), ("lsf", "bsub"), ("htcondor", "condor_submit")):
        assert f"There is no {command} on this machine" in problems(name)


def test_ranks_run_in_a_container_that_sees_runs_and_assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rlnb.options, "root", tmp_path)
    settings = rlnb.slurm(container="/images/isaaclab.sif", walltime="01:00:00").settings
    asked = dataclasses.replace(manifest(), launcher="slurm", launcher_settings=settings, asset_root="/assets")
    plain = rlnb.Command(argv=("/env/bin/python", "-m", "rlnb.worker", "train"), env={"A": "b"})
    wrap = plugins.manager().hook.rlnb_wrap_command
    command = wrap(command=plain, manifest=asked)
    assert command.argv == (
        *("apptainer", "exec", "--nv", "--bind", str(tmp_path), "--bind", "/assets", "/images/isaaclab.sif"),
        *("python", "-m", "rlnb.worker", "train"),
    )
    assert command.env == plain.env
    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", "/mounted")
    of_the_site = wrap(command=plain, manifest=dataclasses.replace(asked, asset_root=None))
    assert of_the_site.argv[5:7] == ("--bind", "/mounted")
    of_its_own = dataclasses.replace(asked, python="/isaaclab.sh -p", resources=rlnb.Resources(device="cpu"))
    assert "--nv" not in wrap(command=plain, manifest=of_its_own).argv
    assert wrap(command=plain, manifest=of_its_own).argv[-4:] == plain.argv
    assert wrap(command=plain, manifest=manifest()) is None


def test_the_packages_of_the_ranks_own_interpreter_are_looked_at(tmp_path: Path) -> None:
    nowhere = node.look(str(tmp_path), "node0", (), None, "/nowhere/python")["problem"]
    assert nowhere.startswith("the interpreter /nowhere/python cannot be asked for its packages: ")
    broken = node.look(str(tmp_path), "node0", (), None, "/bin/sh -c 'echo no module >&2; exit 1'")["problem"]
    assert broken.endswith("cannot be asked for its packages: no module")
    other = node.look(str(tmp_path), "node0", ("rlnb", "nothing"), None, f"{sys.executable} -P")
    assert (other["versions"], other["problem"]) == (
        {"python": platform.python_version(), "rlnb": rlnb.__version__, "nothing": "none"},
        "",
    )
    assert other["versions"] == node.look(str(tmp_path), "node0", ("rlnb", "nothing"), None)["versions"]


def test_a_node_without_its_assets_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert node.look(str(tmp_path), "node0", (), "/nowhere")["problem"] == "the asset root /nowhere is not there"
    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", "/of/the/node")
    assert "/of/the/node is not there" in node.look(str(tmp_path), "node0", (), None)["problem"]
    assert node.look(str(tmp_path), "node0", (), str(tmp_path))["problem"] == ""


def test_docker_hears_names_of_variables_and_no_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rlnb.options, "root", tmp_path)
    asked = {"container": "lab:3.0", "container_runtime": "docker", "walltime": "01:00:00"}
    settings = rlnb.slurm(**asked).settings
    wanted = dataclasses.replace(manifest(), launcher="slurm", launcher_settings=settings)
    plain = rlnb.Command(argv=("/env/bin/python", "-m", "rlnb.worker"), env={"TOKEN": "secret"}, cwd="/work")
    command = plugins.manager().hook.rlnb_wrap_command(command=plain, manifest=wanted)
    assert command.argv[:4] == ("docker", "run", "--rm", "--init")
    assert command.argv[-4:] == ("lab:3.0", "python", "-m", "rlnb.worker")
    for word in (f"--volume={tmp_path}:{tmp_path}", "--workdir=/work", "--gpus=all", "--env=TOKEN"):
        assert word in command.argv
    assert "--env=PET_MASTER_ADDR" in command.argv
    assert "secret" not in " ".join(command.argv)
    assert command.env == plain.env


def test_a_node_that_comes_and_goes_before_all_are_there_ends_the_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rlnb.options, "root", tmp_path)
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    job = run.jobs[0].folder
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(run.jobs[0].handle["pid"]).wait(60)  # it says how the job ended, where nobody has
    job.result.unlink()
    seen = iter([{"tcp://a:1": {}, "tcp://b:1": {}}, {"tcp://a:1": {}}])
    client = SimpleNamespace(scheduler_info=lambda n_workers: {"workers": next(seen)})
    waiting = host.Host(rlnb.HostedJob(job.path), rlnb.pbs(nodes=3, walltime="01:00:00"))
    waiting._nodes = 3
    with pytest.raises(host.Ended):
        waiting._wait_for_nodes(client)
    ended = rlnb.HostedJob(job.path).result
    assert ended is not None
    assert "a node had come, and went before all were here" in ended.error
    assert ended.values == {"interrupted": True}


def test_why_a_job_ended_is_not_hidden_by_what_slurm_says_of_ending_the_rest() -> None:
    why = "slurmstepd-node1: error: execve(): /nowhere/python: No such file or directory"
    rest = "slurmstepd-node0: error: *** STEP 26.0 ON node0 CANCELLED AT 2026-11-23T04:42:55 ***"
    assert clusters.last_said(f"{why}\n{rest}\nsrun: error: node0: task 0: Exited with exit code 2\n\n") == why
    newer = "[2026-11-23T04:42:55] error: *** STEP 26.0 ON n0 CANCELLED AT 2026-11-23T04:42:55 DUE TO TASK FAILURE ***"
    assert clusters.last_said(f"{why}\n{newer}") == why
    walltime = "slurmstepd: error: *** JOB 7 ON node0 CANCELLED AT 2026-11-23T04:42:55 DUE TO TIME LIMIT ***"
    assert clusters.last_said(f"starting\n{walltime}\n{rest}") == walltime
    by_hand = "slurmstepd: error: *** JOB 7 ON node0 CANCELLED AT 2026-11-23T04:42:55 ***"
    assert clusters.last_said(f"starting\n{by_hand}\n{rest}") == by_hand
    assert clusters.last_said(f"{why}\n{by_hand.removesuffix('***')}DUE TO TASK FAILURE ***") == why
    assert clusters.last_said(rest) == clusters.last_said("") == ""


def test_a_host_that_is_a_job_itself_does_not_hand_on_its_limits() -> None:
    environ = {"SLURM_MEM_PER_NODE": "2048", "SLURM_JOB_ID": "7", "SLURM_CONF": "/etc/slurm.conf", "HOME": "/home/ann"}
    host.forget_own_job(environ)
    assert environ == {"SLURM_CONF": "/etc/slurm.conf", "HOME": "/home/ann"}


def test_one_line_is_not_taken_for_its_letters() -> None:
    asked = {"prologue": "module load cuda", "directives": "--constraint=h200", "account": 123}
    lines = rlnb.slurm(walltime="01:00:00", **asked).job_script().splitlines()
    assert "module load cuda" in lines
    assert "#SBATCH --constraint=h200" in lines
    assert "#SBATCH -A 123" in lines


@pytest.mark.parametrize("name", ["slurm", "pbs", "sge", "lsf", "oar"])
def test_what_a_site_sets_is_in_the_job_before_what_is_asked(name: str) -> None:
    asked = {"walltime": "01:00:00", "prologue": ["module load mine"], "directives": ["--reservation=mine"]}
    with dask.config.set({f"jobqueue.{name}": {**dask.config.get(f"jobqueue.{name}"), **SITE}}):
        lines = getattr(rlnb, name)(**asked).job_script().splitlines()
        sized = getattr(rlnb, name)(**asked, cpus_per_node=3).job_script()
    assert lines.index("module load site") < lines.index("module load mine")
    words = " ".join(lines)
    assert words.index("--constraint=site") < words.index("--reservation=mine")
    if name in ("pbs", "oar"):
        assert "ncpus=99" in words, "nothing was asked of the nodes"
        assert "ncpus=99" not in sized
