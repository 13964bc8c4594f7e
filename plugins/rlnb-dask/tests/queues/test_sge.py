"""The text of Grid Engine's jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import dask
import dask_jobqueue  # noqa: F401  adds its defaults to Dask's configuration
import pytest
from rlnb_dask.queues import queries

import rlnb

FULL = """#!/usr/bin/env bash

#$ -N rlnb
#$ -q gpu
#$ -P robots
#$ -l h_rt=32:30:00
#$ -cwd
#$ -j y
#$ -S /bin/bash
#$ -r n
#$ -l gpu=4
set -e
trap 'rlnb_status=$?; [ "$rlnb_ready" ] || echo "The prologue failed on `uname -n`, status $rlnb_status:\
 ${BASH_COMMAND-}" >&2' EXIT
module load cuda
rlnb_ready=yes
set +e
export GLOO_SOCKET_IFNAME=ib0
export NCCL_SOCKET_IFNAME=ib0
'/shared/my env/bin/python' -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 8 --memory-limit 64.00GiB\
 --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0 --interface ib0
"""
SMALL = """#!/usr/bin/env bash

#$ -N rlnb
#$ -l h_rt=01:00:00
#$ -cwd
#$ -j y
#$ -S /bin/bash
#$ -r n

PYTHON -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 4.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
GPUS = """#!/usr/bin/env bash

#$ -N rlnb
#$ -l h_rt=01:00:00
#$ -cwd
#$ -j y
#$ -S /bin/bash
#$ -r n
#$ -l gpu=4

PYTHON -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 16 --memory-limit 64.00GiB --death-timeout 60\
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


def test_the_sites_own_shell_is_not_replaced() -> None:
    lines = rlnb.sge(walltime="01:00:00", directives=["-S /bin/zsh"]).job_script().splitlines()
    assert [line for line in lines if "-S" in line] == ["#$ -S /bin/zsh"]


def test_the_cause_of_a_refusal_is_not_the_last_line() -> None:
    error = 'stderr:\nUnable to run job: unknown resource "gpu"\nExiting.\n'
    assert rlnb.sge().reason(error) == 'Unable to run job: unknown resource "gpu"'
    assert (
        rlnb.sge().reason("no such file\n2026-11-26 - distributed.worker - INFO - Stopping worker\n") == "no such file"
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [("7 qw (no slots)", "7 qw (no slots)"), ("7 r, 8 hqw", "7 r, 8 hqw"), ("7 r, 8 t", ""), ("jobs 7", ""), ("", "")],
)
def test_the_reason_of_a_wait_is_that_of_grid_engine(line: str, reason: str) -> None:
    assert rlnb.sge(walltime="01:00:00").waits(line) == reason


def test_a_malformed_answer_is_no_answer(commands: Callable[[str, str], None]) -> None:
    commands("qstat", "echo '<job_info><queue_info>'")
    assert rlnb.sge().living(["7"]) is None


def test_a_master_that_is_away_is_told_from_a_refusal() -> None:
    away = rlnb.sge().is_away
    assert away(
        "error: commlib error: got select error (Connection refused)\nerror: unable to contact qmaster using port 1"
    )
    assert not away('Unable to run job: job rejected: the requested project "rovers" does not exist')


def test_a_master_that_does_not_answer_in_time_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "qsub").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "qsub").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(queries, "ANSWER_S", 0.2)
    problem = rlnb.sge(walltime="01:00:00").refusal()
    assert problem.what == "Grid Engine does not answer within 0.2 s, so it cannot check this job."
    assert "qstat" in problem.fix
