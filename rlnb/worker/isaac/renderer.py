"""The cameras of a task, and the renderer of one that is added, chosen so that the physics stays that of a training."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rlnb.machine.packages import isaacsim_folder

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


# -- configs that leave physics to Isaac Sim -------------------------------------------------------------------------


STOCK = "isaaclab_"
"""Beginning of the names of Isaac Lab's packages with tasks, whose authors name the physics that each was made for."""


def fill_kitless(env_cfg: Any) -> tuple[str, ...]:
    """Set what an env config leaves to Isaac Sim, if this interpreter has none: Newton, and a renderer that suits it.

    A config without ``sim.physics`` means Isaac Sim's PhysX, and a camera without ``renderer_cfg`` Isaac Sim's RTX.
    Isaac Lab's own configs, and those derived from them, stay as they are.

    Args:
        env_cfg: The env's config, with presets resolved.

    Returns:
        The settings as assignments, such as ``"sim.physics=NewtonCfg()"``; empty if nothing was set.
    """
    if isaacsim_folder() is not None or any(base.__module__.startswith(STOCK) for base in type(env_cfg).__mro__):
        return ()
    return tuple(_filled(env_cfg))


def _filled(env_cfg: Any) -> Iterator[str]:
    from isaaclab.sensors import CameraCfg
    from isaaclab_newton.physics import NewtonCfg

    if env_cfg.sim.physics is None:
        env_cfg.sim.physics = NewtonCfg()
        yield "sim.physics=NewtonCfg()"
    default = type(CameraCfg().renderer_cfg)
    for name, camera in own_cameras(env_cfg).items():
        if type(camera.renderer_cfg) is default and (renderer := renderer_for(env_cfg)) is not None:
            camera.renderer_cfg = renderer
            yield f"{name}.renderer_cfg={type(renderer).__name__}()"
