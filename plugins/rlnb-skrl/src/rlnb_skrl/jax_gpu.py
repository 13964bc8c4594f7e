"""JAX on a GPU beside torch. This module does not import JAX, which may be missing or without a GPU."""

from __future__ import annotations

import torch

from rlnb import RlnbError


def package() -> str:
    """Return the requirement of JAX with GPU support.

    Its major version of CUDA has to be that of torch, because the cuDNN of each CUDA is installed into one and the same
    folder.
    """
    return f"jax[cuda{str(torch.version.cuda).partition('.')[0]}]"


def check(device: str, default_backend: str) -> None:
    """Check that JAX uses a GPU if the env does.

    Args:
        device: ``"cpu"`` or ``"cuda:N"``.
        default_backend: What ``jax.default_backend()`` returns.

    Raises:
        RlnbError: JAX would run the networks on the CPU.
    """
    if device.startswith("cuda") and default_backend == "cpu":
        raise RlnbError(
            "The env is on a GPU, but JAX in the worker's interpreter sees none, so the networks would run on the CPU. "
            f"Install '{package()}' there, or use device=\"cpu\"."
        )
