"""The text of HTCondor's jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

import dask
import dask_jobqueue  # noqa: F401  adds its defaults to Dask's configuration
import pytest
from rlnb_dask.queues import htcondor

import rlnb

FULL = """#!/usr/bin/env condor_submit

MY.DaskWorkerName = "htcondor--$F(MY.JobId)--"
batch_name = <name>
RequestCpus = MY.DaskWorkerCores
RequestMemory = floor(MY.DaskWorkerMemory / 1048576)
RequestDisk = floor(MY.DaskWorkerDisk / 1024)
MY.JobId = "$(ClusterId).$(ProcId)"
MY.DaskWorkerCores = 8
MY.DaskWorkerMemory = 68719476736
MY.DaskWorkerDisk = 1073741824
request_gpus = 4

Arguments = "-c 'set -e; trap ''rlnb_status=$?; [ ""$rlnb_ready"" ] || echo ""The prologue failed on `uname -n`, status\
 $rlnb_status: ${BASH_COMMAND-}"" >&2'' EXIT; module load cuda; rlnb_ready=yes; set +e;\
 export GLOO_SOCKET_IFNAME=ib0; export NCCL_SOCKET_IFNAME=ib0;\
 ''/shared/my env/bin/python'' -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 8 --memory-limit 64.00GiB\
 --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0 --interface ib0'"
Executable = /bin/sh

Queue
"""
SMALL = """#!/usr/bin/env condor_submit

MY.DaskWorkerName = "htcondor--$F(MY.JobId)--"
batch_name = <name>
RequestCpus = MY.DaskWorkerCores
RequestMemory = floor(MY.DaskWorkerMemory / 1048576)
RequestDisk = floor(MY.DaskWorkerDisk / 1024)
MY.JobId = "$(ClusterId).$(ProcId)"
MY.DaskWorkerCores = 1
MY.DaskWorkerMemory = 4294967296
MY.DaskWorkerDisk = 1073741824

Arguments = "-c 'PYTHON -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 4.00GiB\
 --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0'"
Executable = /bin/sh

Queue
"""
GPUS = """#!/usr/bin/env condor_submit

MY.DaskWorkerName = "htcondor--$F(MY.JobId)--"
batch_name = <name>
RequestCpus = MY.DaskWorkerCores
RequestMemory = floor(MY.DaskWorkerMemory / 1048576)
RequestDisk = floor(MY.DaskWorkerDisk / 1024)
MY.JobId = "$(ClusterId).$(ProcId)"
MY.DaskWorkerCores = 16
MY.DaskWorkerMemory = 68719476736
MY.DaskWorkerDisk = 1073741824
request_gpus = 4

Arguments = "-c 'PYTHON -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 16 --memory-limit 64.00GiB\
 --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0'"
Executable = /bin/sh

Queue
"""
"""A job for four GPUs, without further sizes."""


def test_every_setting_is_in_the_job(settings: dict[str, object]) -> None:
    assert rlnb.htcondor(**settings).job_script() == FULL


def test_a_job_with_gpus_requests_cores_and_memory(gpu_script: Callable[[str], str]) -> None:
    assert gpu_script("htcondor") == GPUS


def test_a_job_without_sizes_leaves_them_to_the_site() -> None:
    script = rlnb.htcondor(walltime="01:00:00").job_script()
    assert script == SMALL.replace("PYTHON", shlex.quote(sys.executable))


@pytest.mark.parametrize("key", ["job-extra-directives", "job-extra"])
def test_directives_are_assignments_that_override_the_sites(key: str) -> None:
    site = {**dask.config.get("jobqueue.htcondor"), key: {"+Project": "site", "priority": "1"}}
    launcher = rlnb.htcondor(directives=["+Project = mine", "rank=2"], gpus_per_node=1)
    with dask.config.set({"jobqueue.htcondor": site}):
        arguments = launcher.job_arguments(1)
    assert arguments["job_extra_directives"] == {
        "+Project": "mine",
        "priority": "1",
        "rank": "2",
        "request_gpus": "1",
    }


def test_no_walltime_is_needed(problems: Callable[..., str]) -> None:
    assert "walltime" not in problems("htcondor", walltime=None)


def test_the_states_of_jobs_are_read() -> None:
    rows = ["7\t0\t1\tundefined\tundefined", "8\t0\t5\t14\tCannot access /home/ann", "9\t0\t5\t1\tvia condor_hold"]
    assert htcondor.jobs_of("\n".join([*rows, "10\t0\t3\tundefined\tundefined"])) == {
        "7.0": ("idle", False),
        "8.0": ("held: Cannot access /home/ann", True),
        "9.0": ("held: via condor_hold", False),
    }
    assert htcondor.final_of("false\t127\tundefined\tundefined\n") == "done (exit status 127)"
    assert htcondor.final_of("true\tundefined\t9\tundefined\n") == "killed (SIGKILL)"
    assert htcondor.final_of("undefined\tundefined\tundefined\tvia condor_rm (by user ann)\n") == (
        "removed (via condor_rm (by user ann))"
    )
    assert htcondor.final_of("") is None


def test_a_job_that_its_machine_could_not_start_names_the_machine(commands: Callable[[str, str], None]) -> None:
    answer = "7\\t0\\t5\\t{}\\t{}\\tslot1@gpu07\\n"
    commands("condor_q", f"printf '{answer.format(6, 'Failed to execute /bin/sh: Input/output error')}'")
    launcher = rlnb.htcondor()
    assert launcher.living(["7.0"]) == {}, "HTCondor holds it for good"
    end = launcher.final("7.0")
    assert end == "launch failed (gpu07: held: Failed to execute /bin/sh: Input/output error)"
    assert not launcher.unwanted([end])
    commands("condor_q", f"printf '{answer.format(26, 'by the policy of the site')}'")
    assert launcher.final("7.0") == "stuck in the queue (held: by the policy of the site)"
