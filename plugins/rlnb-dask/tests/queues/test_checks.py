"""All wrong settings are found before a job is submitted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import pytest
from rlnb_dask.queues import launcher

import rlnb
from rlnb.launchers import DetachedLauncher, Resources


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"walltime": None}, "needs a walltime"),
        ({"walltime": 8}, "walltime=8 is not a duration"),
        ({"walltime": "8 hours"}, "'8 hours' is not a duration"),
        ({"walltime": "00:01:00"}, "stopping needs the last 60 s"),
        ({"nodes": 0}, "nodes=0 is not a number above 0"),
        ({"gpus_per_node": -1}, "gpus_per_node=-1"),
        ({"memory_gib_per_node": "64GB"}, "memory_gib_per_node='64GB'"),
        ({"partition": "gpu\n#SBATCH --uid=0"}, "is not a single line of text"),
        ({"account": "robots; rm -rf ~"}, "contains characters that are not allowed in it"),
        ({"interface": "$(id)"}, "contains characters"),
        ({"directives": ["--a\n--b"]}, "directives[0]"),
        ({"python": ""}, "python=''"),
        ({"container_runtime": "singularity"}, "is not one of apptainer, docker"),
    ],
)
def test_a_wrong_setting_is_found_before_the_queue_is_queried(
    problems: Callable[..., str], settings: dict[str, object], expected: str
) -> None:
    assert expected in problems(**settings)


@pytest.mark.parametrize(
    ("settings", "resources", "expected"),
    [
        ({}, {"device": "cuda"}, "device='cuda', but gpus_per_node=0, so the job has no GPU."),
        ({}, {"device": "cuda:1"}, "device='cuda:1', but gpus_per_node=0, so the job has no GPU."),
        ({"gpus_per_node": 1}, {"device": "cuda:1"}, "device='cuda:1', but gpus_per_node=1."),
        ({"gpus_per_node": 2}, {"device": "cuda:1", "nproc_per_node": 2}, "2 ranks cannot share cuda:1."),
        ({"gpus_per_node": 4}, {"nproc_per_node": 8}, "8 ranks need a GPU each, but gpus_per_node=4."),
        (
            {"gpus_per_node": 4},
            {"device": "cuda", "nproc_per_node": 8},
            "8 ranks need a GPU each, but gpus_per_node=4.",
        ),
    ],
)
def test_a_training_without_its_gpus_is_found_before_the_queue_is_queried(
    problems: Callable[..., str], settings: dict[str, object], resources: dict[str, Any], expected: str
) -> None:
    assert problems(resources=Resources(**resources), **settings) == expected


@pytest.mark.parametrize(
    ("settings", "resources"),
    [
        ({"gpus_per_node": 4}, {"nproc_per_node": 4, "device": "cuda"}),
        ({"gpus_per_node": 4}, {"nproc_per_node": 2}),
        ({"gpus_per_node": 1}, {"nproc_per_node": 8, "device": "cpu"}),
        ({}, {"nproc_per_node": 8}),
        ({"directives": ["--gres=gpu:4"]}, {"nproc_per_node": 4, "device": "cuda"}),
    ],
)
def test_a_training_with_its_gpus_has_no_problem(
    problems: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, object],
    resources: dict[str, Any],
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    lines = problems(resources=Resources(**resources), **settings)
    assert lines == "There is no sbatch on this machine, so no job can be submitted from it."


def test_all_problems_are_found_at_once(problems: Callable[..., str]) -> None:
    lines = problems(walltime=None, nodes=0, account="a b")
    assert len(lines.splitlines()) == 3
    lines = problems(resources=Resources(device="cuda"), walltime=None)
    assert len(lines.splitlines()) == 2, "a setting and a size"


def test_a_machine_without_the_queues_commands_is_a_problem(
    problems: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for name, command in (("slurm", "sbatch"), ("pbs", "qsub"), ("lsf", "bsub"), ("htcondor", "condor_submit")):
        assert f"There is no {command} on this machine" in problems(name)


def test_the_ranks_of_a_role_on_the_cpu_need_no_gpu(
    problems: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DetachedLauncher, "gpu_ranks", staticmethod(lambda manifest: 1))
    monkeypatch.setenv("PATH", "/nowhere")
    resources = Resources(device="cuda", nproc_per_node=3)
    assert problems(resources=resources, gpus_per_node=1).startswith("There is no sbatch")
    monkeypatch.setattr(DetachedLauncher, "gpu_ranks", staticmethod(lambda manifest: 2))
    assert problems(resources=resources, gpus_per_node=1) == "2 ranks need a GPU each, but gpus_per_node=1."


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"nodes": float("nan")}, "nodes=nan is not a number above 0"),
        ({"nodes": 1.5}, "nodes=1.5 is not a whole number"),
        ({"nodes": None}, "nodes=None is not a whole number"),
        ({"memory_gib_per_node": float("inf")}, "memory_gib_per_node=inf is not a number above 0"),
        ({"hang_after_s": -1}, "hang_after_s=-1 is not a number of seconds above 0"),
        ({"partition": "a\nb"}, "is not a single line of text"),
        ({"prologue": "a\0b"}, "is not text for the job script"),
    ],
)
def test_no_job_script_is_made_from_malformed_settings(settings: dict[str, Any], problem: str) -> None:
    launcher = rlnb.slurm(**{"walltime": "01:00:00", **settings})
    with pytest.raises(rlnb.CheckError, match=problem):
        launcher.job_script()


def test_the_queue_is_asked_once_for_equal_jobs(
    commands: Callable[[str, str], None], problems: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands("sbatch", f"echo x >> {tmp_path}/calls; echo 'Invalid account' >&2; exit 1")
    assert [problems(account="rovers") for _ in range(3)] == ["Slurm would refuse this job: Invalid account"] * 3
    problems(account="drones")
    assert (tmp_path / "calls").read_text() == "x\n" * 2
    with dask.config.set({"jobqueue.slurm.job-extra-directives": ["--constraint=h100"]}):
        problems(account="drones")
    assert (tmp_path / "calls").read_text() == "x\n" * 3, "the site's settings are in the job too"
    monkeypatch.setattr(launcher, "KEEP_S", 0.0)
    problems(account="drones")
    assert (tmp_path / "calls").read_text() == "x\n" * 4
