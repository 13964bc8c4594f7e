"""The text of Grid Engine's jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

import dask
import dask_jobqueue  # noqa: F401  adds its defaults to Dask's configuration
import pytest

import rlnb

FULL = """#!/usr/bin/env bash

#$ -N rlnb
#$ -q gpu
#$ -P robots
#$ -l h_rt=32:30:00
#$ -cwd
#$ -j y
#$ -l gpu=4
module load cuda
export GLOO_SOCKET_IFNAME=ib0
export NCCL_SOCKET_IFNAME=ib0
'/shared/my env/bin/python' -m rlnb_dask.worker <scheduler> --name <name> --nthreads 8 --memory-limit 64.00GiB\
 --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0 --interface ib0
"""
SMALL = """#!/usr/bin/env bash

#$ -N rlnb
#$ -l h_rt=01:00:00
#$ -cwd
#$ -j y

PYTHON -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 4.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
GPUS = """#!/usr/bin/env bash

#$ -N rlnb
#$ -l h_rt=01:00:00
#$ -cwd
#$ -j y
#$ -l gpu=4

PYTHON -m rlnb_dask.worker <scheduler> --name <name> --nthreads 16 --memory-limit 64.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
"""A job for four GPUs, without further sizes."""


def test_every_setting_is_in_the_job(settings: dict[str, object]) -> None:
    assert rlnb.sge(**settings).job_script() == FULL


def test_a_job_with_gpus_requests_cores_and_memory(gpu_script: Callable[[str], str]) -> None:
    assert gpu_script("sge") == GPUS


def test_a_job_without_sizes_leaves_them_to_the_site() -> None:
    script = rlnb.sge(walltime="01:00:00").job_script()
    assert script == SMALL.replace("PYTHON", shlex.quote(sys.executable))


def test_cores_and_memory_without_a_directive_are_problems(
    problems: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    cores = "Grid Engine would give the job one core, not 16: no directive has a parallel environment."
    memory = "memory_gib_per_node=64, but no directive requests memory from Grid Engine."
    assert problems("sge", gpus_per_node=4) == cores
    assert problems("sge", gpus_per_node=4, memory_gib_per_node=64).splitlines() == [cores, memory]
    lines = problems("sge", gpus_per_node=4, memory_gib_per_node=64, directives=["-pe smp 16", "-l mem_free=4G"])
    assert "There is no qsub on this machine" in lines, "the settings have no problem"
    assert "There is no qsub on this machine" in problems("sge")


def test_the_sites_own_directives_may_request_cores_and_memory(
    problems: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    site = {"job-extra-directives": ["-pe gpu 16"], "resource-spec": "h_vmem=8G"}
    with dask.config.set({"jobqueue.sge": {**dask.config.get("jobqueue.sge"), **site}}):
        assert "There is no qsub" in problems("sge", gpus_per_node=4, memory_gib_per_node=64)
