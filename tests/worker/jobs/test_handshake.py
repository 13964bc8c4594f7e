"""Ranks that do not start, differ in their devices, or cannot communicate, are named within a time limit."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from typing import Any

import pytest

from rlnb.errors import RlnbError

pytestmark = [
    pytest.mark.isaaclab,  # for torch
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here"),
]

WITHIN_S = 2.0
RANK = """
import os, sys
import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store
from rlnb.errors import RlnbError
from rlnb.worker.jobs.ranks import process_group
try:
    with process_group("cpu"):
        dist.barrier()
        print(_get_default_store().timeout.total_seconds(), flush=True)
except RlnbError as exc:
    print(exc, flush=True)
    os._exit(1)  # as a worker does
"""
STALLS = """
import sys, time
import torch, torch.distributed as dist
print("up", flush=True)
store, rank, world_size = next(dist.rendezvous("env://"))
store.set(f"rlnb/here/{rank}", "cpu host-b")
if sys.argv[1] == "sum":
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
time.sleep(100)
"""
"""A rank that starts, but stops before it connects to the others, or before the sum."""


def start(code: str, rank: int, port: int, within_s: float, *argv: str) -> subprocess.Popen[str]:
    """Start one of two ranks, as torchrun does."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "RANK": str(rank)}
    env = {**os.environ, **place, "RLNB_MEET_S": str(within_s)}
    return subprocess.Popen([sys.executable, "-c", code, *argv], env=env, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def store() -> Any:
    import torch.distributed as dist

    return dist.TCPStore("127.0.0.1", 0, 4, is_master=True, wait_for_workers=False)


def test_after_the_handshake_the_ranks_have_a_group_with_torchs_own_time_limits(port: int) -> None:
    """A rank may wait in this group while rank 0 saves."""
    ranks = [start(RANK, rank, port, 50.0) for rank in (0, 1)]
    assert [rank.communicate(timeout=100)[0] for rank in ranks] == ["1800.0\n"] * 2
    assert [rank.returncode for rank in ranks] == [0, 0]


@pytest.mark.parametrize("before", ["connection", "sum"])
def test_a_rank_that_stalls_ends_the_others_with_host_interface_and_variable(port: int, before: str) -> None:
    peer, first = start(STALLS, 1, port, 50.0, before), None
    try:
        assert peer.stdout is not None
        peer.stdout.readline()
        first = start(RANK, 0, port, 4.0)
        output, _ = first.communicate(timeout=60)
    finally:
        for rank in filter(None, (peer, first)):
            rank.kill()
        peer.communicate()
    assert first.returncode == 1
    assert "rank 0 could not communicate with the others over gloo: no answer within 4 s" in output
    assert f"It is on {socket.gethostname()} and uses interface " in output
    assert "host-b" in output
    assert "Use GLOO_SOCKET_IFNAME=eth0, or interface=" in output


def test_a_rank_that_does_not_start_is_named_with_the_host_of_its_node(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlnb.worker.jobs.handshake import meet

    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    store.set("rlnb/here/1", "cpu host-a")
    store.set("rlnb/here/2", "cpu host-b")
    start_s = time.monotonic()
    with pytest.raises(RlnbError, match=r"Rank 3 of 4 did not answer within 2 s, probably on host-b"):
        meet(store, 0, 4, "cpu", WITHIN_S)
    assert time.monotonic() - start_s < 3 * WITHIN_S


def test_ranks_without_a_gpu_are_named_if_the_others_have_one(store: Any) -> None:
    from rlnb.worker.jobs.handshake import meet

    for rank, entry in {1: "cuda host-a", 2: "cpu host-b", 3: "cpu host-b"}.items():
        store.set(f"rlnb/here/{rank}", entry)
    with pytest.raises(RlnbError, match=r"Ranks 2, 3 of 4 on host-b cannot use a GPU, but the other ranks can\. Use"):
        meet(store, 0, 4, "cuda:0", WITHIN_S)


def test_ranks_with_the_same_kind_of_device_get_their_hosts(store: Any) -> None:
    from rlnb.worker.jobs.handshake import meet

    store.set("rlnb/here/1", "cuda host-b")
    entries = meet(store, 0, 2, "cuda:0", WITHIN_S)
    assert [entry.host for entry in entries] == [socket.gethostname(), "host-b"]


def test_only_ranks_of_one_role_must_have_the_same_kind_of_device(store: Any) -> None:
    from rlnb.worker.jobs.handshake import meet

    for rank, entry in {1: "cpu host-b actor", 2: "cpu host-b actor"}.items():
        store.set(f"rlnb/here/{rank}", entry)
    entries = meet(store, 0, 3, "cuda:0", WITHIN_S, role="learner")
    assert [(entry.kind, entry.role) for entry in entries] == [("cuda", "learner"), ("cpu", "actor"), ("cpu", "actor")]
    store.set("rlnb/here/2", "cuda host-c actor")
    with pytest.raises(
        RlnbError, match=r"Rank 1 of 3 on host-b cannot use a GPU, but the other ranks of the role actor"
    ):
        meet(store, 0, 3, "cuda:0", WITHIN_S, role="learner")
