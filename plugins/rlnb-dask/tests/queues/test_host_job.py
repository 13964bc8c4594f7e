"""The host as a job of Slurm: its script, its handle and its problems."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rlnb_dask.queues import slurm

import rlnb
from rlnb.launchers import Resources

SCRIPT = """#!/usr/bin/env bash
#SBATCH -J rlnb-host
#SBATCH -p gpu
#SBATCH -A robots
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=2048M
#SBATCH --no-requeue
#SBATCH --partition=cpu
set -e
trap 'rlnb_status=$?; [ "$rlnb_ready" ] || echo "The prologue failed on `uname -n`, status $rlnb_status:\
 ${BASH_COMMAND-}" >&2' EXIT
module load cuda
rlnb_ready=yes
set +e
exec '/my env/bin/python' -P -m rlnb_dask.host '/runs/a b/jobs/0-train'
"""


def test_the_script_of_a_host() -> None:
    launcher = rlnb.slurm(
        walltime="01:00:00",
        partition="gpu",
        account="robots",
        python="/my env/bin/python",
        prologue="module load cuda",
        host="job",
        host_directives="--partition=cpu",
    )
    assert slurm.host_script(launcher, Path("/runs/a b/jobs/0-train")) == SCRIPT
    assert launcher.settings["host_directives"] == ["--partition=cpu"]


def test_a_wrong_host_is_a_problem(problems: Callable[..., str], commands: Callable[[str, str], None]) -> None:
    commands("sbatch", "true")
    resources = Resources(device="cpu")
    assert problems(resources=resources, host="there") == "host='there' is neither 'here' nor 'job'."
    assert "host_directives have no effect" in problems(resources=resources, host_directives=["--mem=1G"])
    assert "not a single line" in problems(resources=resources, host="job", host_directives=["a\nb"])
    assert "host_directives[1]='--array=0-3' cannot be used" in problems(
        resources=resources, host="job", host_directives=["--mem=1G", "--array=0-3"]
    )
    assert problems(resources=resources, host="job", host_directives=["--mem=1G", "--time=3-0"]) == ""


def test_a_host_that_slurm_refuses_is_an_error(tmp_path: Path, commands: Callable[[str, str], None]) -> None:
    launcher = rlnb.slurm(walltime="01:00:00", host="job")
    commands("squeue", "true")
    commands("sbatch", "echo '7;cluster'")
    assert launcher.submit(None, tmp_path) == {"slurm_job": "7"}
    commands("sbatch", "echo 'invalid account' >&2; exit 1")
    with pytest.raises(rlnb.RlnbError, match="refused the job of the host: invalid account"):
        launcher.submit(None, tmp_path)


def test_a_host_whose_submission_has_lost_its_answer_is_not_submitted_twice(
    tmp_path: Path, commands: Callable[[str, str], None]
) -> None:
    launcher = rlnb.slurm(walltime="01:00:00", host="job")
    lost = "echo 'Socket timed out on send/recv operation' >&2; exit 1"
    commands("squeue", f"cat {tmp_path}/queue")
    commands("sbatch", f"echo '7  {tmp_path}/host.log' > {tmp_path}/queue; {lost}")
    (tmp_path / "queue").write_text(f"6  {tmp_path}/rlnb-6.err\n")
    assert launcher.submit(None, tmp_path) == {"slurm_job": "7"}
    commands("sbatch", "echo 8")
    assert launcher.submit(None, tmp_path) == {"slurm_job": "7"}, "another try"
    commands("squeue", "exit 1")
    with pytest.raises(rlnb.RlnbError, match="squeue does not answer") as error:
        launcher.submit(None, tmp_path)
    assert launcher.is_away(str(error.value)), "so that the host of the interrupted job tries it again"


def test_one_query_tells_the_states_of_all_hosts(tmp_path: Path, commands: Callable[[str, str], None]) -> None:
    queue = slurm.HostStates()
    commands("squeue", f"echo $3 >> {tmp_path}/calls; echo '70 RUNNING'; echo '72 PENDING'")
    assert [queue.state(number) for number in ("70", "71", "72")] == ["RUNNING", "", "PENDING"]
    queue.asked_s = float("-inf")
    assert [queue.state(number) for number in ("70", "71", "72")] == ["RUNNING", "", "PENDING"]
    assert (tmp_path / "calls").read_text().split() == ["70", "70,71", "70,72", "70,72"]
    commands("squeue", f"echo $3 >> {tmp_path}/calls; exit 1")
    queue = slurm.HostStates()
    assert [queue.state(number) for number in ("70", "71", "70")] == [None] * 3
    assert (tmp_path / "calls").read_text().split()[4:] == ["70"], "a Slurm that is away gets one query"


def test_a_slurm_that_hangs_holds_no_look_at_a_run(
    tmp_path: Path, commands: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mirror that looks at its run has to say something in time, and so has a warm simulator's job."""
    monkeypatch.setattr(slurm, "WITHIN_S", 0.2)
    queue = slurm.HostStates()
    commands("squeue", f"while [ ! -e {tmp_path}/back ]; do sleep 0.1; done; echo '70 RUNNING'")
    begin_s = time.monotonic()
    assert [queue.state(number) for number in ("70", "71", "70", "71")] == [None] * 4
    assert time.monotonic() - begin_s < 2.0
    (tmp_path / "back").touch()
    while (state := queue.state("70")) is None:
        assert time.monotonic() - begin_s < 20.0
        time.sleep(0.05)
    assert state == "RUNNING"


def test_a_waiting_host_cannot_leave_the_queue_from_a_machine_without_scancel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(rlnb.RlnbError, match=r"There is no scancel here\. Use it on a login node, for 70\."):
        rlnb.slurm().cancel({"slurm_job": "70"}, tmp_path)


def test_a_host_lives_while_its_job_waits_or_runs(
    tmp_path: Path, commands: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "ASK_S", 0.0)
    launcher, handle = rlnb.slurm(), {"slurm_job": "70"}
    commands("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert launcher.alive(handle, tmp_path) is None
    commands("squeue", "echo '70 PENDING'")
    assert launcher.alive(handle, tmp_path) is True
    commands("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert launcher.alive(handle, tmp_path) is True, "the last answer"
    commands("squeue", "echo '70 COMPLETING'")
    assert launcher.alive(handle, tmp_path) is False
    (tmp_path / "host.alive").touch()
    assert launcher.alive(handle, tmp_path) is True, "it may be about to submit the next job"
    commands("squeue", "true")
    assert launcher.alive(handle, tmp_path) is False
    commands("scancel", f'echo "$@" >> {tmp_path}/calls')
    launcher.cancel(handle, tmp_path)
    assert (tmp_path / "calls").read_text() == "--state=PENDING -- 70\n"


def test_the_end_of_a_hosts_own_job_counts_only_for_a_host_as_a_job(commands: Callable[[str, str], None]) -> None:
    launcher = rlnb.slurm(host="job")
    assert slurm.own_job(rlnb.slurm(), {"SLURM_JOB_ID": "7"}) is None
    assert slurm.own_job(launcher, {}) is None
    job = slurm.own_job(launcher, {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "1795682858"})
    assert job is not None
    assert job.end_s() == 1795682858.0


def test_a_controller_that_is_away_is_asked_again_for_the_end_of_a_hosts_own_job(
    commands: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = slurm.own_job(rlnb.slurm(host="job"), {"SLURM_JOB_ID": "7"})
    assert job is not None
    commands("scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert job.end_s() is None
    commands("scontrol", 'echo "JobId=$4 JobState=RUNNING EndTime=1795682858"')
    assert job.end_s() is None, "Slurm is not asked again at once"
    monkeypatch.setattr(slurm, "OWN_END_S", 0.0)
    assert job.end_s() == 1795682858.0


@pytest.mark.parametrize(
    ("cause", "end"),
    [
        ("", ("was cancelled in the queue (scancel)", True)),
        (" DUE TO TIME LIMIT", ("has reached its time limit", False)),
        (" DUE TO PREEMPTION", ("was preempted", False)),
        (" DUE TO JOB REQUEUE", ("was requeued", False)),
        (" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", ("has lost its node", False)),
        (" DUE to SIGNAL Terminated", ("was cancelled in the queue (scancel)", True)),
    ],
)
def test_the_end_of_a_hosts_own_job_is_read_from_its_output(cause: str, end: tuple[str, bool]) -> None:
    step = "*** STEP 8.0 ON node1 CANCELLED AT 2026-11-28T04:42:55 DUE TO PREEMPTION ***"
    line = f"slurmstepd: error: *** JOB 7 ON node0 CANCELLED AT 2026-11-28T04:42:55{cause} ***"
    assert slurm.host_end(f"12:00:00 submitted to the queue: jobs 8\n{line}\n{step}\n") == end


def test_a_host_that_got_a_signal_without_a_word_of_slurms_was_ended_by_a_person() -> None:
    assert slurm.host_end("12:00:00 submitted to the queue: jobs 8\n") == ("was ended by a signal", True)
