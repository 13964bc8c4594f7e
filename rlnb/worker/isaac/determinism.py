"""Training runs whose numbers depend on their seed alone, also on a GPU, as Isaac Lab's ``--deterministic`` does it."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from rlnb.errors import RlnbError
from rlnb.spec import Json
from rlnb.worker.isaac import release

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
"""Variable that makes the matrix products of CUDA deterministic. CUDA reads it at the first product of a process."""


@contextlib.contextmanager
def of_simulation(env_cfg: Any, arguments: Mapping[str, Json]) -> Iterator[None]:
    """Make the physics of an env config and Warp's kernels deterministic, and restore Warp's setting at the end.

    The config keeps its change. Enter this before the env is made: a Warp module keeps the setting from its import on.

    Args:
        env_cfg: Config of the env.
        arguments: Arguments of Isaac Lab's launcher, which select the kind of PhysX.

    Raises:
        RlnbError: Something in the env or in its training cannot be deterministic.
    """
    import warp
    from isaaclab.app import scan

    request = release.required("isaaclab_rl.entrypoints.common", "request_determinism", "deterministic=True")
    scan(env_cfg, dict(arguments))  # PhysX that is chosen at the launch gets no request
    before = warp.config.deterministic
    request(argparse.Namespace(deterministic=True), env_cfg)
    os.environ.setdefault(CUBLAS, ":4096:8")
    try:
        yield
    except (RuntimeError, ValueError) as exc:  # of Isaac Lab's physics, and of torch's operators
        if "determinis" not in str(exc):
            raise
        raise RlnbError(
            f"This training run cannot be deterministic: {exc}. Leave out deterministic=True, or change that part."
        ) from exc
    finally:
        warp.config.deterministic = before


@contextlib.contextmanager
def of_torch() -> Iterator[None]:
    """Make torch deterministic, and restore its settings at the end.

    Enter this after the env is made, because Isaac Lab sets cuDNN's settings when it seeds an env.
    """
    import torch

    cudnn = torch.backends.cudnn
    before = torch.are_deterministic_algorithms_enabled(), cudnn.benchmark, cudnn.deterministic
    torch.use_deterministic_algorithms(True)
    cudnn.benchmark, cudnn.deterministic = False, True
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        cudnn.benchmark, cudnn.deterministic = before[1:]
