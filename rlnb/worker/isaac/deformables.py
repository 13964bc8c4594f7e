"""What the soft bodies of a task need beside Isaac Lab."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import Any

EXTRA = 'extra == "tetrahedralization"'
"""Mark of the requirements of Isaac Lab with which it cuts a surface into tetrahedra, as ``pytetwild``."""
MODULE = "pytetwild"


def missing_for(env_cfg: Any) -> tuple[str, ...]:
    """Return the requirements for the soft bodies of an env config that this interpreter does not have.

    A volume that is made of a shape is cut into tetrahedra when the env is made. A file may bring its own.

    Args:
        env_cfg: The env's config, with presets resolved.

    Returns:
        pip requirements; empty if none is missing.
    """
    from isaaclab.assets import DeformableObjectCfg

    holders = (vars(holder).values() for holder in (env_cfg.scene, env_cfg))
    bodies = [value for values in holders for value in values if isinstance(value, DeformableObjectCfg)]
    if not any(map(_is_cut, bodies)) or importlib.util.find_spec(MODULE) is not None:
        return ()
    every = importlib.metadata.requires("isaaclab") or ()
    return tuple(line.partition(";")[0].strip() for line in every if EXTRA in line)


def _is_cut(body: Any) -> bool:
    """Return whether a soft body is a volume that is made of a shape."""
    from isaaclab.sim.spawners.meshes import MeshCfg

    material = type(getattr(body.spawn, "physics_material", None)).__name__
    return isinstance(body.spawn, MeshCfg) and "Surface" not in material
