"""The names of Slurm's limits in words. tests/cluster has the answers of a Slurm with accounts."""

from __future__ import annotations

import pytest
from rlnb_dask.queues import slurm_limits

POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


@pytest.mark.parametrize(
    ("stderr", "objection"),
    [
        (
            f"sbatch: error: QOSMaxWallDurationPerJobLimit\nallocation failure: {POLICY}\n",
            "QOSMaxWallDurationPerJobLimit",
        ),
        (
            f"sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: {POLICY}",
            "AssocMaxSubmitJobLimit",
        ),
    ],
)
def test_an_objection_names_the_limit(stderr: str, objection: str) -> None:
    assert slurm_limits.objection(stderr) == f"{POLICY}: {objection}"


def test_an_objection_without_a_limit_is_the_last_line() -> None:
    assert (
        slurm_limits.objection("a note\nallocation failure: Invalid qos specification\n") == "Invalid qos specification"
    )
    assert slurm_limits.objection("") == ""


def test_an_objection_names_a_partition_that_does_not_exist() -> None:
    stderr = "sbatch: error: invalid partition specified: x\nallocation failure: Invalid partition name specified\n"
    assert slurm_limits.objection(stderr) == "Invalid partition name specified: invalid partition specified: x"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("QOSMaxWallDurationPerJobLimit", "exceeds a limit of the QOS and will not start. Use a shorter walltime"),
        ("AssocMaxCpuMinutesPerJobLimit", "exceeds a limit of the account and will not start. Use a shorter walltime"),
        ("QOSMaxNodePerJobLimit", "Use fewer nodes"),
        ("QOSMaxCpuPerNode", "Use fewer cores"),
        ("QOSMaxGRESPerJob", "Use fewer GPUs"),
        ("QOSMaxMemoryPerJob", "Use less memory"),
        ("QOSMaxLicensePerJob", "Use a smaller job"),
        ("PartitionTimeLimit", "the job exceeds a limit of the partition. Use a shorter walltime"),
        ("PartitionNodeLimit", "few nodes in service, or its limits permit only fewer or only more nodes"),
        ("QOSMinCpuNotSatisfied", "the job is smaller than the QOS permits. Use more cores, GPUs or nodes"),
        ("QOSMaxSubmitJobPerUserLimit", "the QOS allows no further job in the queue until another one has ended"),
        ("AssocGrpSubmitJobsLimit", "the account allows no further job in the queue until another one has ended"),
        ("QOSMaxJobsPerUserLimit", "with this one, your jobs would exceed a limit of the QOS"),
        ("AssocMaxJobsLimit", "with this one, your jobs would exceed a limit of the account"),
        ("QOSGrpCpuLimit", "with this one, the jobs of the QOS would exceed a limit of the QOS"),
        ("AssocGrpCPURunMinutesLimit", "with this one, the jobs of the account would exceed a limit of the account"),
        ("AssocGrpCPUMinutesLimit", "the rest of the account's budget is too small for the job"),
        ("QOSGrpWallLimit", "the rest of the QOS's budget is too small for the job"),
    ],
)
def test_a_limit_is_said_in_words(name: str, advice: str) -> None:
    assert slurm_limits.advice(f"PENDING ({name})").endswith(advice)


@pytest.mark.parametrize(
    "reason", ["Resources", "PartitionDown", "JobHeldAdmin", "ReqNodeNotAvail, UnavailableNodes:n1", "QOSTimeLimit"]
)
def test_other_reasons_have_no_advice(reason: str) -> None:
    assert slurm_limits.advice(f"PENDING ({reason})") == ""


def test_the_fix_names_the_command_that_lists_what_is_allowed() -> None:
    assert slurm_limits.fix("Invalid qos specification") == slurm_limits.RIGHTS
    assert slurm_limits.fix("Invalid account or account/partition combination specified") == slurm_limits.RIGHTS
    assert slurm_limits.fix("Invalid partition name specified") == slurm_limits.PARTITIONS
    fix = slurm_limits.fix(f"{POLICY}: QOSMinCpuNotSatisfied")
    advice = "The job is smaller than the QOS permits. Use more cores, GPUs or nodes."
    assert fix == f"{advice} `sacctmgr show qos` lists its limits."


def test_only_a_limit_of_submissions_is_over_some_time() -> None:
    assert slurm_limits.FULL.search("sbatch: error: QOSMaxSubmitJobPerUserLimit")
    assert slurm_limits.FULL.search("AssocGrpSubmitJobsLimit")
    assert not slurm_limits.FULL.search("QOSMaxWallDurationPerJobLimit")
