"""The process group of ranks on nccl, which one GPU can test with one rank."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import pytest

from rlnb.launch.command import TORCHRUN

pytestmark = [pytest.mark.gpu, pytest.mark.part(1), pytest.mark.timeout(120)]

RANK = """
import sys
import torch
import torch.distributed as dist
from rlnb.worker.jobs.ranks import process_group

device = sys.argv[1]
with process_group(device, alone=True):
    ones = torch.ones(3, device=device)
    dist.all_reduce(ones)
    store = dist.distributed_c10d._get_default_store()
    print("RANK", dist.get_backend(), dist.get_world_size(), ones.sum().item(), store.timeout.total_seconds())
"""


def test_a_rank_that_torchrun_starts_sums_with_the_backend_of_its_device(device: str, tmp_path: object) -> None:
    script = f"{tmp_path}/rank.py"
    with open(script, "w", encoding="utf-8") as file:
        file.write(RANK)
    argv = [sys.executable, "-m", TORCHRUN, "--nproc_per_node=1", "--master_port=29573", script, device]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 0, done.stderr[-4000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("RANK")]
    backend, world_size, total, timeout_s = line.split()[1:]
    assert (backend, world_size, total) == ("gloo" if device == "cpu" else "nccl", "1", "3.0")
    assert float(timeout_s) >= timedelta(minutes=10).total_seconds(), "nccl looks for its peers in this store"
