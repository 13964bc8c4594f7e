"""The ranks of a training in JAX: it has a world of its own beside torch's, which skrl enters when it is imported."""

from __future__ import annotations

import os
import socket


def join() -> None:
    """Name this process's place in JAX's world, before skrl is imported.

    torchrun says it in one way, ``skrl.utils.distributed.jax`` in another, which is the one that skrl reads.
    """
    # JAX takes most of a GPU for itself otherwise, and the simulator is on the same.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "JAX_WORLD_SIZE" in os.environ:
        return
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        os.environ[f"JAX_{name}"] = os.environ[name]
    os.environ["JAX_COORDINATOR_ADDR"] = os.environ["MASTER_ADDR"]
    os.environ["JAX_COORDINATOR_PORT"] = _agreed_port()


def _agreed_port() -> str:
    """Return a port that is free on the host of rank 0, where the ranks of JAX meet; the same on every rank."""
    import torch.distributed as dist

    agreed = [""]
    if os.environ["RANK"] == "0":
        with socket.socket() as free:
            free.bind(("", 0))
            agreed[0] = str(free.getsockname()[1])
    dist.broadcast_object_list(agreed, src=0)
    return agreed[0]
