"""The text of PBS's jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

import rlnb

FULL = """#!/usr/bin/env bash

#PBS -N rlnb
#PBS -q gpu
#PBS -A robots
#PBS -l select=1:ncpus=8:mem=65536mb:ngpus=4
#PBS -l walltime=32:30:00
module load cuda
export GLOO_SOCKET_IFNAME=ib0
export NCCL_SOCKET_IFNAME=ib0
'/shared/my env/bin/python' -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 64.00GiB\
 --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0 --interface ib0
"""
SMALL = """#!/usr/bin/env bash

#PBS -N rlnb
#PBS -l select=1:ncpus=1:mem=4096mb
#PBS -l walltime=01:00:00

PYTHON -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 4.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
GPUS = """#!/usr/bin/env bash

#PBS -N rlnb
#PBS -l select=1:ncpus=16:mem=65536mb:ngpus=4
#PBS -l walltime=01:00:00

PYTHON -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 64.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
"""A job for four GPUs, without further sizes."""


def test_every_setting_is_in_the_job(settings: dict[str, object]) -> None:
    assert rlnb.pbs(**settings).job_script() == FULL


def test_a_job_with_gpus_requests_cores_and_memory(gpu_script: Callable[[str], str]) -> None:
    assert gpu_script("pbs") == GPUS


def test_a_job_without_sizes_leaves_them_to_the_site() -> None:
    script = rlnb.pbs(walltime="01:00:00").job_script()
    assert script == SMALL.replace("PYTHON", shlex.quote(sys.executable))
