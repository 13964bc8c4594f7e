"""The text of OAR's jobs."""

from __future__ import annotations

import shlex
import sys

import pytest

import rlnb

FULL = """#!/usr/bin/env bash

#OAR -n rlnb
#OAR -q gpu
#OAR --project robots
#OAR -l /nodes=1/gpu=4,walltime=32:30:00
module load cuda
export GLOO_SOCKET_IFNAME=ib0
export NCCL_SOCKET_IFNAME=ib0
'/shared/my env/bin/python' -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 64.00GiB\
 --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0 --interface ib0
"""
SMALL = """#!/usr/bin/env bash

#OAR -n rlnb
#OAR -l /nodes=1/core=1,walltime=01:00:00

PYTHON -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 4.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""

pytestmark = pytest.mark.filterwarnings("ignore:OAR Job memory")


def test_every_setting_is_in_the_job(settings: dict[str, object]) -> None:
    assert rlnb.oar(**settings).job_script() == FULL


def test_a_job_without_sizes_requests_one_core() -> None:
    script = rlnb.oar(walltime="01:00:00").job_script()
    assert script == SMALL.replace("PYTHON", shlex.quote(sys.executable))
