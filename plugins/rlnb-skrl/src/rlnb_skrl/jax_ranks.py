"""The ranks of a JAX training. JAX has its own process group in addition to torch's, and importing skrl joins it."""

from __future__ import annotations

import os
import socket


def join() -> None:
    """Set the environment variables of this process's JAX rank; call this before importing skrl.

    ``skrl.utils.distributed.jax`` reads variables with other names than torchrun's.
    """
    # By default, JAX preallocates most of a GPU's memory, and the simulator runs on the same GPU.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "JAX_WORLD_SIZE" in os.environ:
        return
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        os.environ[f"JAX_{name}"] = os.environ[name]
    os.environ["JAX_COORDINATOR_ADDR"] = os.environ["MASTER_ADDR"]
    os.environ["JAX_COORDINATOR_PORT"] = _agreed_port()


def _agreed_port() -> str:
    """Return the port of JAX's coordinator, a free port on rank 0's host; the same on all ranks."""
    import torch.distributed as dist

    agreed = [""]
    if os.environ["RANK"] == "0":
        with socket.socket() as free:
            free.bind(("", 0))
            agreed[0] = str(free.getsockname()[1])
    dist.broadcast_object_list(agreed, src=0)
    return agreed[0]
