"""The text of LSF's jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

import dask
import dask_jobqueue  # noqa: F401  adds its defaults to Dask's configuration
from rlnb_dask.queues import lsf

import rlnb

FULL = """#!/usr/bin/env bash

#BSUB -J rlnb
#BSUB -q gpu
#BSUB -P "robots"
#BSUB -n 8
#BSUB -R "span[hosts=1]"
#BSUB -W 32:30
#BSUB -M 67108864
#BSUB -R "rusage[mem=65536/host]"
#BSUB -rn
#BSUB -gpu num=4:j_exclusive=yes
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

#BSUB -J rlnb
#BSUB -n 1
#BSUB -W 01:00
#BSUB -M 4194304
#BSUB -R "rusage[mem=4096/host]"
#BSUB -rn

PYTHON -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 4.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
GPUS = """#!/usr/bin/env bash

#BSUB -J rlnb
#BSUB -n 16
#BSUB -R "span[hosts=1]"
#BSUB -W 01:00
#BSUB -M 67108864
#BSUB -R "rusage[mem=65536/host]"
#BSUB -rn
#BSUB -gpu num=4:j_exclusive=yes

PYTHON -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 64.00GiB --death-timeout 60\
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


def test_the_memory_is_in_the_sites_unit_and_a_reservation_of_the_users_own_is_kept() -> None:
    with dask.config.set({"jobqueue.lsf": {**dask.config.get("jobqueue.lsf"), "lsf-units": "gb"}}):
        lines = rlnb.lsf(walltime="01:00:00", memory_gib_per_node=64).own_directives(1)
        own = rlnb.lsf(walltime="01:00:00", directives=['-R "rusage[mem=9]"']).own_directives(1)
    assert lines == ["-M 64", '-R "rusage[mem=64/host]"', "-rn"]
    assert own == ["-M 4", "-rn"]


def test_the_states_of_jobs_are_read() -> None:
    text = "7|PEND|-|-\n8|EXIT|127|-\n9|EXIT|140|TERM_RUNLIMIT: job killed after reaching LSF run time limit\n"
    jobs = lsf.jobs_of(text + "10|DONE|-|-\n")
    assert {number: lsf.final_of(job) for number, job in jobs.items()} == {
        "7": None,
        "8": "done (exit status 127)",
        "9": "ended by LSF (TERM_RUNLIMIT: job killed after reaching LSF run time limit)",
        "10": "done (exit status 0)",
    }


def test_a_job_that_its_host_could_not_start_names_the_host() -> None:
    text = "7|EXIT|1|TERM_PRE_EXEC_FAIL: job killed after its pre-execution command failed|gpu07\n"
    text += "8|EXIT|1|TERM_CWD_NOTEXIST: current working directory is not accessible on the execution host|-\n"
    ends = {number: lsf.final_of(job) or "" for number, job in lsf.jobs_of(text).items()}
    assert ends["7"] == "launch failed (gpu07: TERM_PRE_EXEC_FAIL: job killed after its pre-execution command failed)"
    assert ends["8"].startswith("launch failed (its node: TERM_CWD_NOTEXIST: ")
    assert not rlnb.lsf().unwanted([*ends.values()])


def test_a_job_that_a_person_has_ended_is_not_tried_again() -> None:
    for reason in ("TERM_OWNER: job killed by owner", "TERM_FORCE_ADMIN: job killed by root or LSF administrator"):
        end = lsf.final_of(["EXIT", "130", reason, "gpu07"]) or ""
        assert rlnb.lsf().unwanted([end])
    assert not rlnb.lsf().unwanted([lsf.final_of(["EXIT", "130", "TERM_PREEMPT: job killed", "gpu07"]) or ""])
