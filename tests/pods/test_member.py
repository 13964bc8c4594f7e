"""A pod reads its rank from the environment that the cluster has set."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import rlnb
from rlnb.node.peers import Member
from rlnb.pods import pod as module
from rlnb.pods.pod import check_master, member_of, node_of

RUN = Path("/runs/r1")
DLC = {"MASTER_ADDR": "dlc-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": "2", "RANK": "1", "NPROC_PER_NODE": "8"}
"""Variables from Alibaba's documentation of PAI-DLC; WORLD_SIZE and RANK count nodes."""
TRAINJOB = {
    "PET_NNODES": "2",
    "PET_NPROC_PER_NODE": "8",
    "PET_NODE_RANK": "1",
    "PET_MASTER_ADDR": "rlnb-x-node-0-0.rlnb-x",
    "PET_MASTER_PORT": "29400",
}
"""Variables that the runtime torch-distributed of Kubeflow Trainer sets (pkg/runtime/framework/plugins/torch)."""


def test_a_pod_finds_its_node_and_the_first_in_the_environment() -> None:
    assert member_of(RUN, 2, 4, DLC) == Member(1, 2, "dlc-master-0:23456")


def test_the_variables_of_a_trainjob_suffice() -> None:
    assert member_of(RUN, 2, 8, TRAINJOB) == Member(1, 2, "rlnb-x-node-0-0.rlnb-x:29400")


def test_torchruns_variables_override_those_that_may_count_processes() -> None:
    counts_processes = {**DLC, "WORLD_SIZE": "16", "RANK": "1", "PET_NNODES": "2", "PET_NODE_RANK": "1"}
    assert member_of(RUN, 2, 4, counts_processes) == Member(1, 2, "dlc-master-0:23456")


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
        member_of(RUN, 2, 4, {**DLC, **changes})


def test_a_pod_knows_its_number_even_if_other_variables_are_wrong() -> None:
    assert node_of(2, {"RANK": "1"}) == 1
    assert node_of(2, {"RANK": "7", "PET_NODE_RANK": "0"}) == 0
    assert node_of(2, {"RANK": "7"}) is None
    assert node_of(2, {}) is None
    assert node_of(1, {}) == 0


def test_a_name_that_does_not_resolve_is_said_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESOLVE_S", 0.1)
    with pytest.raises(rlnb.RlnbError, match=r"MASTER_ADDR=no-such-pod\.invalid does not resolve on node 1 \("):
        check_master(Member(1, 2, "no-such-pod.invalid:29500"), lambda: False)


def test_a_name_resolves_at_once_or_is_not_needed() -> None:
    start_s = time.monotonic()
    check_master(Member(1, 2, "127.0.0.1:29500"), lambda: False)
    check_master(Member(1, 2, "[::1]:29500"), lambda: False)
    check_master(Member(0, 1, "no-such-pod.invalid:29500"), lambda: False)
    check_master(Member(1, 2, "no-such-pod.invalid:29500"), lambda: True)
    assert time.monotonic() - start_s < 1
