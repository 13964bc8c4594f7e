"""Ranks that do not start, or cannot communicate, are named within a time limit."""

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
import sys
import torch.distributed as dist
from rlnb.worker.jobs.handshake import meet
rank, port = int(sys.argv[1]), int(sys.argv[2])
store = dist.TCPStore("127.0.0.1", port, 2, is_master=rank == 0, wait_for_workers=False)
if rank == 0:
    print(store.port, flush=True)
meet(store, rank, 2, 60.0)
print("met", flush=True)
dist.init_process_group("gloo", store=store, rank=rank, world_size=2)  # works after the handshake
dist.barrier()
"""


@pytest.fixture
def store() -> Any:
    import torch.distributed as dist

    return dist.TCPStore("127.0.0.1", 0, 4, is_master=True, wait_for_workers=False)


def test_ranks_that_have_all_started_pass_the_handshake_and_make_their_group() -> None:
    argv = [sys.executable, "-c", RANK]
    first = subprocess.Popen([*argv, "0", "0"], stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    port = first.stdout.readline().strip()  # a free port, which the first rank keeps
    ranks = [first, subprocess.Popen([*argv, "1", port], stdout=subprocess.PIPE, text=True)]
    assert [rank.communicate(timeout=100)[0] for rank in ranks] == ["met\n", "met\n"]
    assert [rank.returncode for rank in ranks] == [0, 0]


def test_a_rank_that_does_not_start_is_named_with_the_host_of_its_node(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlnb.worker.jobs.handshake import meet

    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    store.set("rlnb/here/1", "host-a")
    store.set("rlnb/here/2", "host-b")
    start_s = time.monotonic()
    with pytest.raises(RlnbError, match=r"Rank 3 of 4 did not answer within 2 s, probably on host-b"):
        meet(store, 0, 4, WITHIN_S)
    assert time.monotonic() - start_s < 3 * WITHIN_S


def test_the_error_of_ranks_that_cannot_communicate_has_a_fix_and_names_the_hosts(store: Any) -> None:
    from rlnb.worker.jobs.handshake import meet

    for rank in range(1, 4):
        store.set(f"rlnb/here/{rank}", f"host-{rank}")
    with pytest.raises(RlnbError, match=r"All 4 ranks have started.* interface=") as error:
        meet(store, 0, 4, WITHIN_S)
    assert "host-3" in str(error.value)


LATER = """
import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store
from rlnb.worker.jobs.ranks import process_group
with process_group("cpu"):
    dist.barrier()
    print(_get_default_store().timeout.total_seconds(), flush=True)
"""


def test_after_the_handshake_the_store_has_torchs_own_time_limit() -> None:
    """NCCL finds its peers through this store at the first all_reduce, which may be minutes later."""
    argv = [sys.executable, "-c", LATER]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "RLNB_MEET_S": "50"}
    ranks = [
        subprocess.Popen(argv, env={**place, "RANK": rank}, stdout=subprocess.PIPE, text=True) for rank in ("0", "1")
    ]
    assert [rank.communicate(timeout=100)[0] for rank in ranks] == ["1800.0\n"] * 2
