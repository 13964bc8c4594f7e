"""The text of PBS's jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

import pytest
from rlnb_dask.queues import pbs

import rlnb

FULL = """#!/usr/bin/env bash

#PBS -N rlnb
#PBS -q gpu
#PBS -A robots
#PBS -l select=1:ncpus=8:mem=65536mb:ngpus=4
#PBS -l walltime=32:30:00
set -e
trap 'rlnb_status=$?; [ "$rlnb_ready" ] || echo "The prologue failed on `uname -n`, status $rlnb_status:\
 ${BASH_COMMAND-}" >&2' EXIT
module load cuda
rlnb_ready=yes
set +e
export GLOO_SOCKET_IFNAME=ib0
export NCCL_SOCKET_IFNAME=ib0
'/shared/my env/bin/python' -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 64.00GiB\
 --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0 --interface ib0
"""
SMALL = """#!/usr/bin/env bash

#PBS -N rlnb
#PBS -l select=1:ncpus=1:mem=4096mb
#PBS -l walltime=01:00:00

PYTHON -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 4.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
GPUS = """#!/usr/bin/env bash

#PBS -N rlnb
#PBS -l select=1:ncpus=16:mem=65536mb:ngpus=4
#PBS -l walltime=01:00:00

PYTHON -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 64.00GiB --death-timeout 60\
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


# Two jobs as OpenPBS lists them, the second with a line that goes on after a tab.
JOBS = """Job Id: 7.server
    Job_Name = rlnb
    job_state = Q
    comment = Not Running: Insufficient amount of resource: ngpus (R: 4 A: 0 T: 0)

Job Id: 8.server
    Job_Name = rlnb
    job_state = F
    comment = Job run at Thu Nov 26 at 08:00 on (node1:ncpus=1) and
\t failed
    Exit_status = 127
"""


def test_the_states_of_jobs_are_read() -> None:
    jobs = pbs.jobs_of(JOBS)
    assert jobs["7"]["comment"].endswith("ngpus (R: 4 A: 0 T: 0)")
    assert jobs["8"]["comment"].endswith("(node1:ncpus=1) and failed")
    assert (pbs.final_of(jobs["7"]), pbs.final_of(jobs["8"])) == (None, "done (exit status 127)")
    assert pbs.final_of({"job_state": "F", "Exit_status": "271"}) == "killed (SIGTERM)"
    assert pbs.final_of({"job_state": "F", "Exit_status": "-10"}) == (
        "stuck in the queue (PBS could not start it, exit status -10)"
    )


PROLOGUE = """Job Id: 9.server
    Job_Name = rlnb
    job_state = F
    exec_host = gpu07/0*16
    exec_vnode = (gpu07:ncpus=16:mem=67108864kb:ngpus=4)
    comment = Job run at Thu Nov 26 at 08:00 on (gpu07:ncpus=16) and failed
    Exit_status = {status}
    run_count = 1
"""


@pytest.mark.parametrize("status", [-1, -2, -3, -17])
def test_a_job_that_its_node_could_not_start_names_the_node(status: int) -> None:
    end = pbs.final_of(pbs.jobs_of(PROLOGUE.format(status=status))["9"])
    said = f"(gpu07: Job run at Thu Nov 26 at 08:00 on (gpu07:ncpus=16) and failed, exit status {status})"
    assert end == f"launch failed {said}"
    assert rlnb.pbs().meaning("9", end) == f"PBS's job 9 could not start {said}"
    assert not rlnb.pbs().unwanted([end])
    bare = pbs.final_of({"job_state": "F", "Exit_status": "-17"})
    assert bare == "launch failed (its node: a hook of the site has refused the job, exit status -17)"


@pytest.mark.parametrize("status", [-10, -13, -21, -29])
def test_a_job_that_no_node_would_start_is_not_tried_again(status: int) -> None:
    end = pbs.final_of(pbs.jobs_of(PROLOGUE.format(status=status))["9"])
    assert end is not None
    assert rlnb.pbs().unwanted([end])
