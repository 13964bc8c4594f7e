"""The answers of Slurm's commands, from scripts in their place; tests/cluster has the commands themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rlnb_dask.queues import queries, slurm_answers
from rlnb_dask.queues.slurm_answers import Node

SINFO = """main*|node0|4|8000|(null)
main*|node1|128+|512000|gpu:h200:4(S:0-1),gpu:a100:2
old|node2|4|8000|gpu:2"""


def test_the_size_of_every_configured_node_is_read(commands: Callable[[str, str], None]) -> None:
    commands("sinfo", f"echo '{SINFO}'")
    small = Node(name="node0", cores=4, memory_mib=8000, gpus=0)
    large = Node(name="node1", cores=128, memory_mib=512000, gpus=6)
    assert slurm_answers.nodes(None) == {"main": [small, large]}
    old = Node(name="node2", cores=4, memory_mib=8000, gpus=2)
    assert slurm_answers.nodes("main,old") == {"main": [small, large], "old": [old]}


def test_the_end_of_a_job_is_that_of_one_that_runs(commands: Callable[[str, str], None]) -> None:
    commands("scontrol", 'echo "JobId=$4 JobState=RUNNING EndTime=$([ $SLURM_TIME_FORMAT = %s ] && echo 1795682858)"')
    assert slurm_answers.end_s(["7"]) == 1795682858.0
    commands("scontrol", 'echo "JobId=$4 JobState=RUNNING EndTime=Unknown"')
    assert slurm_answers.end_s(["7"]) is None
    commands("scontrol", 'echo "JobId=$4 JobState=PENDING EndTime=1795682858"')
    assert slurm_answers.end_s(["7"]) is None


def test_a_job_that_has_left_the_queue_is_told_from_no_answer(commands: Callable[[str, str], None]) -> None:
    commands("squeue", "echo '7 RUNNING'; echo '9 PENDING'")
    assert slurm_answers.states(["7", "8", "9"]) == {"7": "RUNNING", "9": "PENDING"}
    commands("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert slurm_answers.states(["7"]) == {}
    commands("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert slurm_answers.states(["7"]) is None


def test_a_command_that_hangs_or_is_missing_gives_no_answer(
    commands: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "ANSWER_S", 0.5)
    for name in ("squeue", "scontrol", "sinfo", "sbatch"):
        commands(name, "exec sleep 30")
    assert (slurm_answers.states(["7"]), slurm_answers.job_of("/runs")) == (None, None)
    assert (slurm_answers.jobs(["7"]), slurm_answers.nodes(None)) == ({}, {})
    assert slurm_answers.AWAY.search(slurm_answers.sbatch(["--test-only"], "").stderr)
    monkeypatch.setenv("PATH", "/nowhere")
    assert (slurm_answers.states(["7"]), slurm_answers.job_of("/runs")) == (None, None)
    assert (slurm_answers.jobs(["7"]), slurm_answers.nodes(None)) == ({}, {})
    assert "sbatch" in slurm_answers.sbatch(["--test-only"], "").stderr


def test_a_job_is_found_by_its_output(commands: Callable[[str, str], None]) -> None:
    commands("squeue", "echo '7   /runs/a b/jobs/0-train/rlnb-%J.err'; echo '8  /runs/c/jobs/0-train/rlnb-%J.err'")
    assert slurm_answers.job_of("/runs/c/jobs/0-train/rlnb-") == "8"
    assert slurm_answers.job_of("/runs/a b/jobs/0-train/rlnb-") == "7"
    assert slurm_answers.job_of("/runs/c/jobs/0/rlnb-") == ""


@pytest.mark.parametrize(("ahead_s", "seen"), [(0.0, 0.0), (-2.0, 0.0), (240.0, 240.0), (-240.0, -240.0)])
def test_the_end_of_a_job_is_told_by_this_machines_clock(
    commands: Callable[[str, str], None], ahead_s: float, seen: float
) -> None:
    job = "JobId=7 JobState=RUNNING EndTime=1795682858"
    config = f"Configuration data as of $(( $(date +%s) + {ahead_s:.0f} ))\\nAccountingStorageBackupHost = (null)"
    commands(
        "scontrol", f"""[ $SLURM_TIME_FORMAT = %s ] || exit 1; [ $2 = config ] && printf "{config}" || echo '{job}'"""
    )
    assert slurm_answers.ahead_s() == pytest.approx(seen, abs=2.0)
    assert slurm_answers.end_s(["7"]) == pytest.approx(1795682858.0 - seen, abs=2.0)
