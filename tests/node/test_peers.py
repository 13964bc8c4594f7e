"""A node reads its rank from the cluster's environment, and detects that another node is lost."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import rlnb
from rlnb.node import peers as module
from rlnb.node.peers import Member, Peers, Stall, injected, newest_training
from rlnb.records.layout import JobDir, RunDir
from rlnb.storage import files

RUN = Path("/runs/r1")
DLC = {"MASTER_ADDR": "dlc-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": "2", "RANK": "1", "NPROC_PER_NODE": "8"}
"""Variables from Alibaba's documentation of PAI-DLC; WORLD_SIZE and RANK count nodes."""


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


def test_a_pod_finds_its_node_and_the_first_in_the_environment() -> None:
    assert injected(RUN, 2, 4, DLC) == Member(1, 2, "dlc-master-0:23456")


def test_torchruns_variables_override_those_that_may_count_processes() -> None:
    counts_processes = {**DLC, "WORLD_SIZE": "16", "RANK": "1", "PET_NNODES": "2", "PET_NODE_RANK": "1"}
    assert injected(RUN, 2, 4, counts_processes) == Member(1, 2, "dlc-master-0:23456")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"MASTER_ADDR": "", "RANK": ""}, "MASTER_ADDR, RANK are not set"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE='two'"),
        ({"WORLD_SIZE": "16"}, "of WORLD_SIZE=16 pods does not fit r1, which needs 2 nodes"),
        ({"RANK": "2"}, "RANK=2 of WORLD_SIZE=2 pods"),
        ({"NPROC_PER_NODE": "2"}, "NPROC_PER_NODE=2 is too small: r1 has 4 ranks on GPUs"),
    ],
)
def test_pods_that_do_not_fit_the_run_are_refused(changes: dict[str, str], expected: str) -> None:
    with pytest.raises(rlnb.RlnbError, match=expected):
        injected(RUN, 2, 4, {**DLC, **changes})


def test_the_newest_training_is_the_one_to_run(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for kind in ("train", "evaluate", "train", "export"):
        run.next_job(kind)
    assert newest_training(tmp_path).path.name == "2-train"
    with pytest.raises(rlnb.RlnbError, match="has no training to run"):
        newest_training(tmp_path / "nowhere")


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
