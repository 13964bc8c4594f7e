"""Physics and renderers for the env configs of users that leave them to Isaac Sim, where there is no Isaac Sim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlnb.machine.packages import isaacsim_folder
from rlnb.worker.isaac.renderer import own_cameras, renderer_for

STOCK = "isaaclab_"
"""Beginning of the names of Isaac Lab's packages with tasks, whose authors name the physics that each was made for."""


def fill(env_cfg: Any) -> tuple[str, ...]:
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
