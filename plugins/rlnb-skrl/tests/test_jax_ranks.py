"""The environment variables of a JAX rank, which skrl reads."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")
import torch.distributed as dist
from rlnb_skrl import jax_ranks

TORCHRUN = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}
GPU_MEMORY = "XLA_PYTHON_CLIENT_PREALLOCATE"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [*TORCHRUN, GPU_MEMORY, *(name for name in os.environ if name.startswith("JAX_"))]:
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]


def in_jax() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("JAX_")}


def test_a_single_process_joins_no_group_and_does_not_preallocate_the_gpu() -> None:
    jax_ranks.join()
    assert in_jax() == {}
    assert os.environ[GPU_MEMORY] == "false"


def test_a_rank_of_torchrun_is_the_same_rank_in_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        jax_ranks.join()
    finally:
        dist.destroy_process_group()
    names = in_jax()
    port = int(names.pop("JAX_COORDINATOR_PORT"))
    assert 0 < port != int(TORCHRUN["MASTER_PORT"])
    assert names == {
        "JAX_RANK": "0",
        "JAX_LOCAL_RANK": "0",
        "JAX_WORLD_SIZE": "2",
        "JAX_COORDINATOR_ADDR": "node1",
    }
