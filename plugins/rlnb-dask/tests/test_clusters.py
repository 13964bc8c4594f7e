"""The nodes of one job, as its queue reports them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rlnb_dask import clusters
from rlnb_dask.queues import slurm_nodes

import rlnb


def cluster(tmp_path: Path, launcher: Any, nodes: int = 1) -> tuple[clusters.Cluster, dict[str, object]]:
    """Return a cluster, and the dict in which its job records notes."""
    notes: dict[str, object] = {}
    job: Any = SimpleNamespace(path=tmp_path, cancelled=False, note=lambda **facts: notes.update(facts))
    return clusters.Cluster(launcher, nodes, job), notes


def test_the_id_of_each_job_is_noted_as_soon_as_it_is_known(tmp_path: Path) -> None:
    nodes, notes = cluster(tmp_path, rlnb.pbs(walltime="01:00:00"), 2)
    nodes._ids.append("7")
    assert nodes.gone() == ""
    assert notes == {"queue": "pbs", "jobs": ("7",)}
    nodes._ids.append("8")
    assert nodes.gone() == ""
    assert notes == {"queue": "pbs", "jobs": ("7", "8")}


def test_the_keys_of_a_cluster_that_cannot_start_are_deleted(tmp_path: Path) -> None:
    nodes, _ = cluster(tmp_path, rlnb.slurm(walltime="01:00:00", host_interface="nowhere0"))
    with pytest.raises(RuntimeError, match="nowhere0"), nodes.client():
        pass
    assert not (tmp_path / ".tls").exists()


def test_a_refused_submission_gives_no_nodes_and_no_further_job(tmp_path: Path) -> None:
    nodes, _ = cluster(tmp_path, rlnb.slurm(walltime="01:00:00"))
    nodes._errors.append(RuntimeError("Command exited with 1:\nsbatch: error: invalid account\n"))
    assert nodes.gone() == "invalid account"
    assert nodes.unwanted()


def test_a_job_that_the_queue_has_ended_is_reported_with_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, line in {"squeue": "", "scontrol": "JobId=7 JobState=TIMEOUT"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{line}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "rlnb-7.err").write_text("/nowhere/python: No such file or directory\nsrun: error: task 0: exit 2\n")
    nodes, _ = cluster(tmp_path, rlnb.slurm(walltime="01:00:00"))
    nodes._ids.append("7")
    line = "The last line of its output: /nowhere/python: No such file or directory"
    assert nodes.gone() == f"Slurm's job 7 has reached its time limit. {line}"
    assert not nodes.unwanted(), "a new job may resume it"


def test_a_cluster_of_the_user_has_no_queue_to_ask(tmp_path: Path) -> None:
    nodes, _ = cluster(tmp_path, rlnb.dask("tls://a:1"))
    assert (nodes.gone(), nodes.why(), nodes.unwanted()) == ("", "", False)


def test_the_queue_is_asked_at_most_every_few_seconds_why_jobs_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "squeue").write_text(f"#!/bin/sh\necho x >> {tmp_path}/asked\necho '7 SUSPENDED (None)'\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    nodes, _ = cluster(tmp_path, rlnb.slurm(walltime="01:00:00"))
    assert nodes.waits() == "", "not submitted yet"
    nodes._ids.append("7")
    assert [nodes.standstill() for _ in range(3)] == ["suspended"] * 3
    assert (nodes.gone(), nodes.waits()) == ("", "suspended")
    assert (tmp_path / "asked").read_text() == "x\n"


@pytest.mark.parametrize("launcher", [rlnb.dask("tls://a:1"), rlnb.pbs(walltime="01:00:00")])
def test_a_queue_that_does_not_answer_gives_no_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Any
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    nodes, _ = cluster(tmp_path, launcher)
    nodes._ids.append("7")
    assert (nodes.waits(), nodes.standstill()) == ("", "")


class Submissions:
    """A queue whose controller is away for the first tries."""

    def __init__(self, away: int, error: str = "Unable to contact slurm controller") -> None:
        self.away, self.error, self.tries = away, error, 0

    async def __call__(self) -> str:
        self.tries += 1
        if self.tries <= self.away:
            raise RuntimeError(f"Command exited with 1:\nsbatch: error: {self.error}\n")
        return "Submitted batch job 7"


def submit(tmp_path: Path, once: Submissions, cancelled: bool = False) -> str:
    nodes, _ = cluster(tmp_path, rlnb.slurm(walltime="01:00:00"))
    nodes._job.cancelled = cancelled  # type: ignore[misc]
    return asyncio.run(nodes._submit(once))


def test_a_submission_is_tried_again_while_the_controller_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(clusters, "POLL_S", 0.01)
    (tmp_path / "squeue").write_text("#!/bin/sh\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    once = Submissions(away=2)
    assert (submit(tmp_path, once), once.tries) == ("Submitted batch job 7", 3)
    refused = Submissions(away=2, error="invalid account")
    with pytest.raises(RuntimeError, match="invalid account"):
        submit(tmp_path, refused)
    cancelled = Submissions(away=2)
    with pytest.raises(RuntimeError, match="Unable to contact"):
        submit(tmp_path, cancelled, cancelled=True)
    assert (refused.tries, cancelled.tries) == (1, 1)
    monkeypatch.setattr(clusters, "AWAY_S", 0.0)
    with pytest.raises(RuntimeError, match="Unable to contact"):
        submit(tmp_path, Submissions(away=2))


def test_no_answer_about_a_lost_submission_is_no_permission_for_a_second_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(clusters, "POLL_S", 0.01)
    count, job = tmp_path / "count", f"9  {tmp_path}/rlnb-%J.err"
    script = f"echo x >> {count}\n[ $(wc -l < {count}) -gt 2 ] || exit 1\necho '{job}'"
    (tmp_path / "squeue").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    once = Submissions(away=5, error="Socket timed out on send/recv operation")
    assert (submit(tmp_path, once), once.tries) == ("9", 1)


def test_a_job_waits_until_the_queue_takes_one_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(clusters, "POLL_S", 0.01)
    monkeypatch.setattr(clusters, "AWAY_S", 0.02)
    (tmp_path / "squeue").write_text("#!/bin/sh\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    nodes, _ = cluster(tmp_path, rlnb.slurm(walltime="01:00:00"))
    reasons = []

    class Full(Submissions):
        async def __call__(self) -> str:
            reasons.append(nodes.waits())
            return await super().__call__()

    once = Full(away=3, error="QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates")
    assert asyncio.run(nodes._submit(once)) == "Submitted batch job 7"
    assert reasons == ["", *["Job violates: QOSMaxSubmitJobPerUserLimit"] * 3]
    assert nodes.waits() == ""


def test_each_submission_has_its_own_reason_to_wait_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(clusters, "POLL_S", 0.01)
    (tmp_path / "squeue").write_text("#!/bin/sh\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    nodes, _ = cluster(tmp_path, rlnb.slurm(walltime="01:00:00"), 2)

    class Refused(Submissions):
        async def __call__(self) -> str:
            self.error = "invalid account" if self.tries else self.error
            return await super().__call__()

    async def both() -> str:
        away = asyncio.create_task(nodes._submit(Submissions(away=1000)))
        with pytest.raises(RuntimeError, match="invalid account"):
            await nodes._submit(Refused(away=2, error="QOSMaxSubmitJobPerUserLimit"))
        reason = nodes.waits()
        nodes._job.cancelled = True  # type: ignore[misc]
        with pytest.raises(RuntimeError, match="Unable to contact"):
            await away
        return reason

    assert asyncio.run(both()) == "Unable to contact slurm controller"
    assert nodes.waits() == ""


def test_a_job_whose_answer_was_lost_is_not_submitted_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(clusters, "POLL_S", 0.01)
    (tmp_path / "squeue").write_text(f"#!/bin/sh\necho '8 {tmp_path}/host.log'\necho '9  {tmp_path}/rlnb-%J.err'\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    once = Submissions(away=5, error="Socket timed out on send/recv operation")
    assert (submit(tmp_path, once), once.tries) == ("9", 1)


@pytest.mark.parametrize(
    ("launcher", "output"),
    [
        (rlnb.slurm(walltime="01:00:00", nodes=2), "rlnb-7.err"),
        (rlnb.sge(walltime="01:00:00", nodes=2), "rlnb.o7"),
        (rlnb.oar(walltime="01:00:00", nodes=2), "OAR.rlnb.7.stderr"),
    ],
)
def test_nodes_that_never_came_are_the_cause(tmp_path: Path, launcher: Any, output: str) -> None:
    nodes, _ = cluster(tmp_path, launcher, 2)
    assert nodes.unreached(1) == ""
    (tmp_path / output).write_text("x - INFO - Timed out starting worker\n")
    assert nodes.unreached(1).startswith("1 of 2 nodes never reached this machine. Check the firewall")


def test_a_job_that_a_node_could_not_start_may_be_submitted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, node = "JobId=7 JobState={} StartTime=100 EndTime=108 NodeList=node1", "NodeName=node1 Reason={} [root@109]"
    (tmp_path / "squeue").write_text("#!/bin/sh\n")
    (tmp_path / "sacct").write_text("#!/bin/sh\nexit 1\n")

    def end(state: str, reason: str) -> tuple[str, bool, bool]:
        text = f"#!/bin/sh\n[ $3 = job ] && echo '{job.format(state)}' || echo '{node.format(reason)}'\n"
        (tmp_path / "scontrol").write_text(text)
        for name in ("squeue", "scontrol", "sacct"):
            (tmp_path / name).chmod(0o755)
        nodes, _ = cluster(tmp_path, rlnb.slurm(walltime="01:00:00"))
        nodes._ids.append("7")
        return nodes.gone(), nodes.launch_failed(), nodes.unwanted()

    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(slurm_nodes, "SETTLE_S", 0.0)
    monkeypatch.setattr(clusters, "SAY_S", 0.0)
    assert end("CANCELLED", "Prolog error") == ("Slurm's job 7 could not start (node1: Prolog error).", True, False)
    scancel = "Slurm's job 7 was cancelled in the queue (scancel); node1: bad disk."
    assert end("CANCELLED", "bad disk") == (scancel, False, True)
