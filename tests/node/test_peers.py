"""A node has its place among others, and detects that another node is lost."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rlnb.node import peers as module
from rlnb.node.peers import Member, Peers, Stall
from rlnb.records.layout import JobDir, RunDir
from rlnb.storage import files


def test_torchrun_gets_its_node_rank_from_the_environment() -> None:
    assert Member(1, 2, "10.0.0.1:29500").env() == {
        "PET_NODE_RANK": "1",
        "PET_MASTER_ADDR": "10.0.0.1",
        "PET_MASTER_PORT": "29500",
    }
    assert Member(0, 2, "[fe80::1]:29500").env()["PET_MASTER_ADDR"] == "fe80::1"


def test_the_ranks_of_a_single_node_meet_on_a_free_port_of_loopback() -> None:
    places = [Member().env() for _ in range(2)]
    assert {place["PET_MASTER_ADDR"] for place in places} == {"127.0.0.1"}
    assert len({place["PET_MASTER_PORT"] for place in places}) == 2


def test_a_node_that_falls_silent_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    monkeypatch.setattr(module, "SILENT_S", 0.3)
    job = JobDir(tmp_path)
    first, third = Peers(job, Member(0, 3, "h:1")), Peers(job, Member(2, 3, "h:1"))
    long_ago = time.time() - 3600  # clocks of other hosts may differ
    for beat in range(5):
        for node in range(3):
            job.alive(node).touch()
            os.utime(job.alive(node), (long_ago + beat, long_ago + beat))
        assert (first.missing(), third.missing()) == ("", "")
        time.sleep(0.1)
    job.alive(0).touch()
    job.alive(2).touch()
    first.missing()
    third.missing()
    time.sleep(0.2)
    os.utime(job.alive(2), (long_ago, long_ago))
    os.utime(job.alive(0), (long_ago, long_ago))
    time.sleep(0.2)
    assert "node 1 has been silent" in first.missing()
    assert third.missing() == "", "it checks only the first node"


def test_a_node_that_never_starts_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    monkeypatch.setattr(module, "JOIN_S", 2.0)
    job = JobDir(tmp_path)
    peers = Peers(job, Member(0, 2, "h:1"))
    assert peers.missing() == ""
    time.sleep(2.1)
    assert "node 1 did not start within" in peers.missing()


def test_the_clock_of_a_hang_starts_with_the_first_iteration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    monkeypatch.setattr(module, "START_S", 1.0)
    job = RunDir(tmp_path).next_job("train")
    starting, training = Stall(job, 0.2), Stall(job, 0.2)
    assert (starting.hangs(), training.hangs()) == ("", "")
    time.sleep(0.5)
    assert training.hangs() == "", "the start has a limit of its own"
    files.write_once(job.started, {})
    assert training.hangs() == ""
    time.sleep(0.3)
    assert training.hangs().startswith("nothing was logged for 0 s: a rank hangs. The end of each node's log")
    job.started.unlink()
    time.sleep(0.4)
    assert starting.hangs().startswith("nothing was logged for 1 s: a rank hangs before the first iteration.")


def test_an_event_file_that_cannot_be_read_does_not_end_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    run = RunDir(tmp_path)
    run.logs.mkdir()
    (run.logs / "newest.tfevents").symlink_to("events.out.tfevents.of.a.removed.trial")
    assert Stall(run.next_job("train"), 10.0).hangs() == ""


def test_a_script_that_logs_has_reached_its_first_iteration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    run = RunDir(tmp_path)
    run.logs.mkdir()
    events = run.logs / "events.out.tfevents.0"
    events.write_bytes(b"of the job before")
    job = run.next_job("train")
    stall = Stall(job, 0.2)
    assert stall.hangs() == ""
    time.sleep(0.3)
    assert stall.hangs() == "", "scalars of an earlier job are no start"
    events.write_bytes(b"of the job before and of this one")
    assert stall.hangs() == ""
    time.sleep(0.3)
    assert "a rank hangs. " in stall.hangs()
