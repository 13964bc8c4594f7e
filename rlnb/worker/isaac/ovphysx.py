"""OvPhysX, which is PhysX outside of Isaac Sim: the packages it needs, and its memory on a machine without CUDA."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from typing import Any, cast

from rlnb.errors import RlnbError
from rlnb.machine.packages import install_line

EXTRA = "rlnb[physx]"
"""The requirement of rlnb that installs OvPhysX."""
PACKAGES = ("ovphysx", "ovstage")
"""Packages that Isaac Lab imports for OvPhysX."""
WARP = "1.17."
"""Release line of Warp whose allocators :func:`prepare` knows. Isaac Lab 3.0.0 requires Warp 1.17.0."""


def missing_for(env_cfg: Any, own: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the packages that the physics of a task needs and this interpreter lacks.

    Args:
        env_cfg: The env's config, whose automatic physics is resolved in place.
        own: Launcher arguments of the task.
    """
    from isaaclab.app import scan

    if not scan(env_cfg, dict(own)).has_ovphysx_physics:
        return ()
    return missing()


def missing() -> tuple[str, ...]:
    """Return the packages of OvPhysX that this interpreter lacks."""
    return tuple(name for name in PACKAGES if importlib.util.find_spec(name) is None)


def prepare(env_cfg: Any) -> None:
    """Make OvPhysX ready for an env that uses it.

    Args:
        env_cfg: The env's config, whose automatic physics is resolved.

    Raises:
        RlnbError: A package is missing, or Warp cannot allocate the memory that Isaac Lab requests.
    """
    from isaaclab_ov.physics import OvPhysxCfg

    if not isinstance(env_cfg.sim.physics, OvPhysxCfg):
        return
    if lacking := missing():
        raise RlnbError(
            f"The env uses OvPhysX, which needs {' and '.join(lacking)} in {sys.executable}. "
            f'Use {install_line(EXTRA)}, or other physics, such as physics="newton_mjwarp".'
        )
    provide_pinned_memory()


def provide_pinned_memory() -> None:
    """Make ordinary memory serve as pinned memory, if there is no CUDA that could pin any.

    Isaac Lab writes masses, gains and limits to OvPhysX through arrays in pinned memory, also if the simulation runs on
    the CPU. Warp allocates pinned memory through CUDA only. Memory is pinned to speed up copies to a GPU, so without
    one, ordinary memory is equivalent. The allocators of a device are no public part of Warp.

    Raises:
        RlnbError: This version of Warp is unknown to rlnb and cannot allocate pinned memory.
    """
    import warp

    warp.init()
    if warp.is_cuda_available():
        return
    if warp.__version__.startswith(WARP):
        cpu = warp.get_device("cpu")
        cpu.pinned_allocator = cast(Any, cpu.default_allocator)
        return
    try:
        warp.zeros(1, device="cpu", pinned=True)
    except RuntimeError as exc:
        raise RlnbError(
            f"OvPhysX needs pinned memory, which Warp {warp.__version__} allocates only on a machine with CUDA. "
            f"Use a GPU, Warp {WARP}0, or other physics, such as physics='newton_mjwarp'."
        ) from exc
