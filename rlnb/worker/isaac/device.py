"""The device of a simulation, and deterministic simulations.

``"auto"`` is a GPU if torch can use one, else the CPU. It is an error if there is an NVIDIA driver but torch cannot use
it, unless the user hides the GPUs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from rlnb.errors import RlnbError
from rlnb.machine.cuda import has_driver
from rlnb.spec import Json
from rlnb.worker.isaac import release

ANY_DEVICE = "any"
"""A GPU if torch can use one, else the CPU, for task cards, warm-up envs and copies of assets, which have no device
argument."""
HIDDEN = ("", "-1")
"""First names in ``CUDA_VISIBLE_DEVICES`` with which a user hides all GPUs."""


def torch_device(name: str, index: int | None = None) -> str:
    """Return ``"cpu"`` or ``"cuda:N"`` for ``"auto"``, ``"any"``, ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.

    Args:
        name: The device.
        index: Number of the GPU for ``"auto"``, ``"any"`` and ``"cuda"``; None is the number of this rank on its node.

    Raises:
        RlnbError: The device is ``"auto"``, and torch cannot use the GPU of a machine with an NVIDIA driver. A
            training on its CPU would be slower by orders of magnitude, and only its speed would show it.
    """
    import torch

    if name in ("auto", ANY_DEVICE):
        usable = torch.cuda.is_available()
        if name == "auto" and not usable and has_driver() and not _hides_gpus():
            raise RlnbError(_refusal())
        name = "cuda" if usable else "cpu"
    index = int(os.environ.get("LOCAL_RANK", "0")) if index is None else index
    return f"cuda:{index}" if name == "cuda" else name


def _hides_gpus() -> bool:
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    return variable is not None and variable.split(",")[0].strip() in HIDDEN


def _refusal() -> str:
    """Return why torch cannot use a GPU, in torch's own words, and what to do."""
    import torch

    reason = "torch.cuda.is_available() is False"
    try:
        torch.cuda.init()
    except Exception as exc:  # torch raises AssertionError for a CPU build, RuntimeError for a driver
        reason = str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
    fix = "a build of torch with CUDA (https://pytorch.org/get-started/locally)"
    if torch.version.cuda is not None:
        fix = f"a driver that supports CUDA {torch.version.cuda}, a container with its GPUs (--gpus all, --nv)"
    return (
        f"This machine has an NVIDIA driver, but torch {torch.__version__} is not able to use a GPU: "
        f'{reason.rstrip(".")}. Use {fix}, or device="cpu". CUDA_VISIBLE_DEVICES="" hides all GPUs, also from '
        "evaluations."
    )


# -- determinism -----------------------------------------------------------------------------------------------------


CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
"""Variable that makes the matrix products of CUDA deterministic. CUDA reads it at the first product of a process."""


@contextlib.contextmanager
def deterministic_simulation(env_cfg: Any, arguments: Mapping[str, Json]) -> Iterator[None]:
    """Make the physics of an env config and Warp's kernels deterministic, and restore Warp's setting at the end.

    The config and the environment variable of CUDA keep their change. Enter this before the env is made: a
    Warp module keeps the setting from its import on.

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
def deterministic_torch() -> Iterator[None]:
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
