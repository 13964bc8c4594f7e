"""The text of LSF's jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

import dask
import dask_jobqueue  # noqa: F401  adds its defaults to Dask's configuration

import rlnb

FULL = """#!/usr/bin/env bash

#BSUB -J rlnb
#BSUB -q gpu
#BSUB -P "robots"
#BSUB -n 8
#BSUB -R "span[hosts=1]"
#BSUB -M 68719477
#BSUB -W 32:30
#BSUB -gpu num=4
module load cuda
export GLOO_SOCKET_IFNAME=ib0
export NCCL_SOCKET_IFNAME=ib0
'/shared/my env/bin/python' -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 64.00GiB\
 --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0 --interface ib0
"""
SMALL = """#!/usr/bin/env bash

#BSUB -J rlnb
#BSUB -n 1
#BSUB -M 4294968
#BSUB -W 01:00

PYTHON -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 4.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
GPUS = """#!/usr/bin/env bash

#BSUB -J rlnb
#BSUB -n 16
#BSUB -R "span[hosts=1]"
#BSUB -M 68719477
#BSUB -W 01:00
#BSUB -gpu num=4

PYTHON -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 64.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
"""A job for four GPUs, without further sizes."""


def test_every_setting_is_in_the_job(settings: dict[str, object]) -> None:
    assert rlnb.lsf(**settings).job_script() == FULL


def test_a_job_with_gpus_requests_cores_and_memory(gpu_script: Callable[[str], str]) -> None:
    assert gpu_script("lsf") == GPUS


def test_a_job_without_sizes_leaves_them_to_the_site() -> None:
    script = rlnb.lsf(walltime="01:00:00").job_script()
    assert script == SMALL.replace("PYTHON", shlex.quote(sys.executable))


def test_the_sites_node_size_applies_until_the_user_sets_a_size() -> None:
    site = {**dask.config.get("jobqueue.lsf"), "ncpus": 7, "mem": 7_000_000_000}
    with dask.config.set({"jobqueue.lsf": site}):
        plain = rlnb.lsf(walltime="01:00:00").job_arguments(1)
        sized = rlnb.lsf(walltime="01:00:00", cpus_per_node=3).job_arguments(1)
    assert (plain["ncpus"], plain["mem"]) == (7, 7_000_000_000)
    assert (sized["ncpus"], sized["mem"]) == (3, 4 * 2**30)
