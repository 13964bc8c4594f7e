"""The text of Grid Engine's jobs."""

from __future__ import annotations

import shlex
import sys

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


def test_every_setting_is_in_the_job(settings: dict[str, object]) -> None:
    assert rlnb.sge(**settings).job_script() == FULL


def test_a_job_without_sizes_leaves_them_to_the_site() -> None:
    script = rlnb.sge(walltime="01:00:00").job_script()
    assert script == SMALL.replace("PYTHON", shlex.quote(sys.executable))
