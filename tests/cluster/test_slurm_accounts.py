"""Trainings on a Slurm with accounts and limits, which refuse a job at once or let it wait."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import module_of, running
from runs_on_nodes import echo, wait_until

import rlnb
from conftest import free_port

WALLTIME = "00:10:00"
QOS = {
    "strict": ["maxwall=00:30:00", "maxjobsperuser=1", "maxsubmitjobsperuser=2", "flags=denyonlimit"],
    "lax": ["maxwall=00:30:00", "grptres=node=1"],
    "closed": [],
}
"""The QOS and their limits. Slurm refuses a job above a limit with denyonlimit, and lets it wait otherwise."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def accounts() -> Iterator[Any]:
    """Provide a Slurm of two nodes with accounts. The user may use each QOS except ``closed``."""
    rig = module_of("slurm", "Slurm with accounts", accounts=True)
    from slurm_accounts import sacctmgr

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", "")  # its value afterwards is again that of another Slurm
        folder, user = Path(f"/tmp/rlnb-slurm-accounts-{os.getpid()}"), getpass.getuser()
        with running(rig.Slurm(folder, 2, port=free_port(0), accounts=True)) as cluster:
            sacctmgr("add", "account", "robots")
            for name, limits in QOS.items():
                sacctmgr("add", "qos", name, *(["set", *limits] if limits else []))
            sacctmgr("add", "user", user, "account=robots")
            sacctmgr("modify", "user", user, "set", "qos+=strict,lax")
            yield cluster


def launcher(qos: str = "normal", walltime: str = WALLTIME, **settings: Any) -> Any:
    return rlnb.slurm(account="robots", walltime=walltime, directives=[f"--qos={qos}"], **settings)


def refusal(of: Any) -> str:
    """Return the problems with which a training is refused."""
    with pytest.raises(rlnb.CheckError) as raised:
        echo(of)
    return str(raised.value)


def test_a_job_that_the_accounts_do_not_allow_is_refused_before_anything_is_written(accounts: Any, clean: Path) -> None:
    account = refusal(rlnb.slurm(account="nowhere", walltime=WALLTIME))
    assert "Slurm would refuse this job: Invalid account or account/partition combination specified" in account
    assert "`sacctmgr show associations user=$USER format=account,partition,qos`" in account
    for qos in ("nowhere", "closed"):
        assert "Slurm would refuse this job: Invalid qos specification" in refusal(launcher(qos))
    walltime = refusal(launcher("strict", walltime="01:00:00"))
    assert "user's size and/or time limits): QOSMaxWallDurationPerJobLimit" in walltime
    assert "The job exceeds a limit of the QOS and will not start. Use a shorter walltime." in walltime
    assert not list(clean.glob("runs/*"))
    assert not accounts.jobs()


def test_a_job_above_a_limit_that_lets_it_wait_says_that_it_will_not_start(accounts: Any, clean: Path) -> None:
    for settings, limit, advice in (
        ({"walltime": "01:00:00"}, "QOSMaxWallDurationPerJobLimit", "the job exceeds a limit of the QOS and will not "),
        ({"nodes": 2}, "QOSGrpNodeLimit", "with this one, the jobs of the QOS would exceed a limit of the QOS"),
    ):
        run = echo(launcher("lax", **settings))
        wait_until(lambda run=run: run.reason.startswith("PENDING (QOS"), 30)
        assert run.reason.startswith(f"PENDING ({limit}): {advice}")
        run.cancel()
        wait_until(lambda: not accounts.jobs(), 20)
        assert run.state == "cancelled"


def test_jobs_above_the_number_that_a_qos_allows_wait_inside_and_outside_the_queue(accounts: Any, clean: Path) -> None:
    first = echo(launcher("strict"))
    wait_until(lambda: first.state == "running", 60)
    second = echo(launcher("strict"), 3)
    reason = "PENDING (QOSMaxJobsPerUserLimit): with this one, your jobs would exceed a limit of the QOS"
    wait_until(lambda: second.reason == reason, 30)
    full = refusal(launcher("strict", host="job"))
    assert "QOSMaxSubmitJobPerUserLimit" in full
    assert "The QOS allows no further job in the queue until another one has ended." in full
    third = echo(launcher("strict"), 3)
    wait_until(lambda: "QOSMaxSubmitJobPerUserLimit" in third.reason, 30)
    assert third.state == "queued"
    first.cancel()
    assert second.wait(60).state == "completed"
    assert third.wait(60).state == "completed"
    wait_until(lambda: not accounts.jobs(), 20)


def test_an_array_above_the_number_of_jobs_is_refused(accounts: Any, clean: Path) -> None:
    with pytest.raises(rlnb.CheckError) as raised:
        rlnb.sweep(
            "Echo", "echo", space={"agent.goal": (0.5, 2.0)}, n_trials=3, launcher=launcher("strict"), array=True
        )
    assert "Slurm would refuse an array of 3 such jobs: Job violates accounting/QOS policy" in str(raised.value)
    assert "QOSMaxSubmitJobPerUserLimit" in str(raised.value)
    assert not accounts.jobs()
