"""The cameras of a task, and the renderer of one that is added, chosen so that the physics stays that of a training."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isaaclab.sensors import CameraCfg


def resolve_backends(env_cfg: Any, arguments: Mapping[str, Any]) -> None:
    """Replace automatic physics and automatic RTX renderers in an env config by those that Isaac Lab would launch.

    Isaac Lab's choice depends on the scene's cameras, among other things. If that happened after a camera is added, a
    preview could show another physics than the training run.

    Args:
        env_cfg: The env's config.
        arguments: Arguments of Isaac Lab's launcher. Some of them need Isaac Sim.
    """
    from isaaclab.app import scan

    scan(env_cfg, dict(arguments))


def renderer_for(env_cfg: Any) -> Any:
    """Return the renderer config that suits the physics of an env config; None keeps Isaac Lab's default.

    The default is RTX in Isaac Sim. It would start Isaac Sim in addition to Newton, and Isaac Lab refuses it for
    OvPhysX. OvPhysX is drawn by RTX outside of Isaac Sim (ovrtx) if that is installed and the simulation has a GPU,
    and otherwise by Newton's ray tracer, which runs anywhere.

    Args:
        env_cfg: The env's config, after :func:`resolve_backends`.
    """
    from isaaclab_newton.physics import NewtonCfg
    from isaaclab_newton.renderers import NewtonWarpRendererCfg
    from isaaclab_ov.physics import OvPhysxCfg
    from isaaclab_ov.renderers import OVRTXRendererCfg

    physics = env_cfg.sim.physics
    if not isinstance(physics, NewtonCfg | OvPhysxCfg):
        return None
    has_ovrtx = importlib.util.find_spec("ovrtx") is not None and str(env_cfg.sim.device).startswith("cuda")
    return OVRTXRendererCfg() if isinstance(physics, OvPhysxCfg) and has_ovrtx else NewtonWarpRendererCfg()


def own_cameras(env_cfg: Any) -> dict[str, CameraCfg]:
    """Return the camera configs of a task by name. They are in its scene's config, or in a direct env's own config."""
    from isaaclab.sensors import CameraCfg

    return {
        name: value
        for holder in (env_cfg.scene, env_cfg)
        for name, value in vars(holder).items()
        if isinstance(value, CameraCfg)
    }
