"""The text of Slurm's jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

import pytest

import rlnb

FULL = """#!/usr/bin/env bash

#SBATCH -J rlnb
#SBATCH -p gpu
#SBATCH -A robots
#SBATCH -t 1-08:30:00
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --no-requeue
#SBATCH --cpus-per-task=8
#SBATCH --mem=65536M
#SBATCH --gpus-per-node=4
export GLOO_SOCKET_IFNAME=ib0
export NCCL_SOCKET_IFNAME=ib0
srun --export=ALL --kill-on-bad-exit=1 --cpus-per-task=8 bash -c 'set -e
trap '"'"'rlnb_status=$?; [ "$rlnb_ready" ] || echo "The prologue failed on `uname -n`, status $rlnb_status:\
 ${BASH_COMMAND-}" >&2'"'"' EXIT
module load cuda
rlnb_ready=yes
set +e
"$@"' rlnb '/shared/my env/bin/python' -P -m rlnb_dask.worker <scheduler> --name\
 <name> --nthreads 1 --memory-limit 64.00GiB --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard\
 --dashboard-address 127.0.0.1:0 --interface ib0
"""
SMALL = """#!/usr/bin/env bash

#SBATCH -J rlnb
#SBATCH -t 01:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --no-requeue

srun --export=ALL --kill-on-bad-exit=1 PYTHON -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1\
 --memory-limit 4.00GiB --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
GPUS = """#!/usr/bin/env bash

#SBATCH -J rlnb
#SBATCH -t 01:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --no-requeue
#SBATCH --cpus-per-task=16
#SBATCH --mem=65536M
#SBATCH --gpus-per-node=4

srun --export=ALL --kill-on-bad-exit=1 --cpus-per-task=16 PYTHON -P -m rlnb_dask.worker <scheduler> --name\
 <name> --nthreads 1 --memory-limit 64.00GiB\
 --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
"""A job for four GPUs, without further sizes."""


def test_every_setting_is_in_the_job(settings: dict[str, object]) -> None:
    assert rlnb.slurm(**settings).job_script() == FULL


def test_a_job_with_gpus_requests_cores_and_memory(gpu_script: Callable[[str], str]) -> None:
    assert gpu_script("slurm") == GPUS


def test_a_job_without_sizes_leaves_them_to_the_site() -> None:
    script = rlnb.slurm(walltime="01:00:00").job_script()
    assert script == SMALL.replace("PYTHON", shlex.quote(sys.executable))


def test_an_option_for_cores_or_memory_replaces_the_default_for_gpus() -> None:
    """Slurm refuses --cpus-per-task with --cpus-per-gpu, and --mem with --mem-per-gpu."""
    by_gpu = ["--cpus-per-gpu=8", "--mem-per-gpu=32G"]
    script = rlnb.slurm(walltime="01:00:00", gpus_per_node=4, directives=by_gpu).job_script()
    assert "--cpus-per-task" not in script
    assert "--mem=" not in script
    assert [line for line in by_gpu if f"#SBATCH {line}" in script.splitlines()] == by_gpu
    plain = rlnb.slurm(walltime="01:00:00", gpus_per_node=4, directives=["--constraint=h200"]).job_script()
    assert "#SBATCH --cpus-per-task=16" in plain
    assert "#SBATCH --mem=65536M" in plain


def test_all_nodes_of_a_training_are_one_job() -> None:
    arguments = rlnb.slurm(nodes=3, walltime="01:00:00").job_arguments(3)
    assert (arguments["cores"], arguments["processes"], arguments["memory"]) == (3, 3, "12GiB")
    assert rlnb.slurm().single_job
    assert not rlnb.pbs().single_job


def test_the_cause_of_an_end_is_not_hidden_by_slurms_reports_about_other_nodes() -> None:
    reason = rlnb.slurm().reason
    why = "slurmstepd-node1: error: execve(): /nowhere/python: No such file or directory"
    rest = "slurmstepd-node0: error: *** STEP 26.0 ON node0 CANCELLED AT 2026-11-23T04:42:55 ***"
    assert reason(f"{why}\n{rest}\nsrun: error: node0: task 0: Exited with exit code 2\n\n") == why
    newer = "[2026-11-23T04:42:55] error: *** STEP 26.0 ON n0 CANCELLED AT 2026-11-23T04:42:55 DUE TO TASK FAILURE ***"
    assert reason(f"{why}\n{newer}") == why
    walltime = "slurmstepd: error: *** JOB 7 ON node0 CANCELLED AT 2026-11-23T04:42:55 DUE TO TIME LIMIT ***"
    assert reason(f"starting\n{walltime}\n{rest}") == walltime
    by_hand = "slurmstepd: error: *** JOB 7 ON node0 CANCELLED AT 2026-11-23T04:42:55 ***"
    assert reason(f"starting\n{by_hand}\n{rest}") == by_hand
    assert reason(f"{why}\n{by_hand.removesuffix('***')}DUE TO TASK FAILURE ***") == why
    assert reason(rest) == reason("") == ""
    prologue = "The prologue failed on node0, status 127: module load cuda"
    assert (
        reason(f"rlnb: line 3: module: command not found\n{prologue}\nrlnb: line 3: module: command not found")
        == prologue
    )


def test_slurms_refusal_is_a_problem(commands: Callable[[str, str], None]) -> None:
    commands("sbatch", "echo 'allocation failure: Invalid partition name specified' >&2; exit 1")
    problem = rlnb.slurm(walltime="01:00:00").refusal()
    assert problem is not None
    assert problem.what == "Slurm would refuse this job: Invalid partition name specified"
    commands("sbatch", "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1")
    problem = rlnb.slurm(walltime="01:00:00").refusal()
    assert problem is not None
    assert problem.what.startswith("Slurm does not answer, so it cannot check this job: Unable to contact")
    commands("sbatch", "echo 'sbatch: Job 7 to start at 2026-11-23T04:42:55' >&2")
    assert rlnb.slurm(walltime="01:00:00").refusal() is None


def test_a_queue_that_is_full_at_present_refuses_only_what_cannot_wait(commands: Callable[[str, str], None]) -> None:
    lines = r"sbatch: error: QOSMaxSubmitJobPerUserLimit\nallocation failure: Job violates accounting/QOS policy"
    commands("sbatch", f"printf '{lines}\\n' >&2; exit 1")
    assert rlnb.slurm(walltime="01:00:00").refusal() is None
    host = rlnb.slurm(walltime="01:00:00", host="job").refusal()
    assert host is not None, "no process is left that could wait"
    (array,) = rlnb.slurm(walltime="01:00:00").check_array(3)
    assert array.what.endswith(
        "an array of 3 such jobs: Job violates accounting/QOS policy: QOSMaxSubmitJobPerUserLimit"
    )
    assert array.fix.startswith(
        "Use fewer runs, or array=False, with which runs wait outside the queue. The QOS allows"
    )


def test_a_query_distinguishes_waiting_jobs_ended_jobs_and_no_answer(commands: Callable[[str, str], None]) -> None:
    launcher = rlnb.slurm()
    commands("squeue", "echo '7 PENDING (Resources)'")
    assert launcher.look(["7"]) == "7 PENDING (Resources)"
    commands("squeue", "echo '7 COMPLETING (None)'")
    assert launcher.look(["7"]) == ""
    commands("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert launcher.look(["7"]) == ""
    commands("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert launcher.look(["7"]) is None


def test_a_cancelled_job_is_unwanted(commands: Callable[[str, str], None]) -> None:
    launcher = rlnb.slurm()
    commands("scontrol", 'echo "JobId=$4 JobState=$([ $4 = 7 ] && echo CANCELLED || echo RUNNING) Reason=None"')
    assert launcher.ended(["7", "8"], 0.0) == {"7": "CANCELLED"}
    assert launcher.unwanted(["CANCELLED"])
    assert not launcher.unwanted(["TIMEOUT", "NODE_FAIL", "PREEMPTED"])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", ""),
        ("jobs 7", ""),
        ("7 PENDING (JobHeldAdmin)", "PENDING (JobHeldAdmin)"),
        ("7 PENDING (Nodes required for job are DOWN)", "PENDING (Nodes required for job are DOWN)"),
        ("7 CONFIGURING (None)", "CONFIGURING (None)"),
        ("7 RUNNING (None)", ""),
        ("7 SUSPENDED (None)", "suspended"),
    ],
)
def test_the_reason_of_a_wait_is_that_of_slurm(line: str, reason: str) -> None:
    assert rlnb.slurm(walltime="01:00:00").waits(line) == reason


def test_a_suspended_job_has_not_ended(commands: Callable[[str, str], None]) -> None:
    commands("squeue", "echo '7 SUSPENDED (None)'")
    commands("scontrol", "echo 'JobId=7 JobState=SUSPENDED'")
    slurm = rlnb.slurm(walltime="01:00:00")
    assert slurm.look(["7"]) == "7 SUSPENDED (None)"
    assert slurm.ended(["7"], 0.0) == {}


def test_too_few_nodes_that_are_up_are_no_refusal(commands: Callable[[str, str], None]) -> None:
    commands("sbatch", "echo 'allocation failure: Requested node configuration is not available' >&2; exit 1")
    commands("sinfo", "echo 'main*|node0|4|8000|(null)'; echo 'main*|node1|8|8000|gpu:2'")
    launcher = rlnb.slurm(walltime="01:00:00", nodes=2)
    assert launcher.refusal() is None
    problem = rlnb.slurm(walltime="01:00:00", nodes=2, cpus_per_node=8).refusal()
    assert problem is not None
    assert "1 of the 2 nodes of main are large enough for it" in problem.what
    assert rlnb.slurm(walltime="01:00:00", gpus_per_node=2, cpus_per_node=8, memory_gib_per_node=2).refusal() is None
    assert rlnb.slurm(walltime="01:00:00", nodes=3).refusal() is not None


def test_nodes_that_are_down_are_no_refusal_of_the_hosts_job(commands: Callable[[str, str], None]) -> None:
    commands(
        "sbatch",
        "grep -q rlnb-host || exit 0; echo 'Requested node configuration is not available' >&2; exit 1",
    )
    launcher = rlnb.slurm(walltime="01:00:00", nodes=2, cpus_per_node=8, host="job")
    commands("sinfo", "echo 'main*|node0|4|8000|(null)'")
    assert launcher.refusal() is None
    commands("sinfo", "echo 'main*|node0|4|1000|(null)'")
    problem = launcher.refusal()
    assert problem is not None
    assert problem.what.startswith("Slurm would refuse the job of the host: Requested node configuration is not")


def test_the_final_state_of_a_job_is_said_in_words() -> None:
    meaning = rlnb.slurm().meaning
    assert meaning("7", "CANCELLED") == "Slurm's job 7 was cancelled in the queue (scancel)"
    assert "have lost each other" in meaning("7", "COMPLETED")
    assert meaning("7", "REVOKED") == "Slurm's job 7 is REVOKED"


def test_a_controller_that_is_away_is_told_from_a_refusal() -> None:
    away = rlnb.slurm().is_away
    assert away("sbatch: error: Unable to contact slurm controller (connect failure)")
    assert away("Socket timed out on send/recv operation")
    assert not away("invalid account")


def test_the_end_of_a_job_is_that_of_the_walltime_before_slurm_rounds_it_up(
    commands: Callable[[str, str], None],
) -> None:
    commands("scontrol", 'echo "JobId=$4 JobState=RUNNING EndTime=6000"')
    assert rlnb.slurm(walltime="01:00:00").end_s(["7"]) == 6000.0
    assert rlnb.slurm(walltime="00:00:35").end_s(["7"]) == 5975.0
    assert rlnb.slurm(walltime="1-0:0:35").end_s(["7"]) == 5975.0
    assert rlnb.slurm(walltime="90").end_s(["7"]) == 6000.0, "minutes"
