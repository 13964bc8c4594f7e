"""The speed of a task with several physics engines."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from rlnb.tasks.card import Selectors
from rlnb.tasks.requests import Engines, EngineSpeeds
from rlnb.worker.acting import actions
from rlnb.worker.cameras import gpu
from rlnb.worker.isaac import isaaclab, ovphysx
from rlnb.worker.isaac.env import environment

WARM_UP_S = 2.0
"""Seconds of steps before each measurement, in which kernels are loaded and the first episodes end."""
MEASURE_S = 3.0
"""Seconds of steps that a measurement covers at least."""
NEWTON, PHYSX = "newton_mjwarp", "ovphysx"
"""The engines that run without Isaac Sim, by the names of their presets."""


def comparable(env_cfg: Any, selectors: Selectors) -> tuple[str, ...]:
    """Return the engines that can run a task in this interpreter without Isaac Sim, its default engine first.

    Args:
        env_cfg: Config of the env as the task defines it.
        selectors: Names that the task's selectors accept.

    Returns:
        Two names, or none if the task has only one such engine or its default engine is another.
    """
    from isaaclab_newton.physics import NewtonCfg
    from isaaclab_ov.physics import OvPhysxCfg

    names = {NewtonCfg: (NEWTON, PHYSX), OvPhysxCfg: (PHYSX, NEWTON)}.get(type(env_cfg.sim.physics), ())
    return names if {*names} <= {*selectors.physics} and not ovphysx.missing() else ()


def engines(request: Engines) -> EngineSpeeds:
    """Measure a task's env steps per second with each engine."""
    return EngineSpeeds(steps_per_s={name: _steps_per_s(request, name) for name in request.names})


def _steps_per_s(request: Engines, name: str) -> float:
    task = dataclasses.replace(request.task, physics=name)
    with environment(task, None, seed=0, device=request.device) as (env, _):
        raw = isaaclab.task_env(env)
        env.reset()
        _step(raw, WARM_UP_S)
        return _step(raw, MEASURE_S)


def _step(env: Any, duration_s: float) -> float:
    """Step an env with random actions for a while; return the env steps per second."""
    start_s, steps = time.perf_counter(), 0
    while (passed_s := time.perf_counter() - start_s) < duration_s:
        env.step(actions(env, "random"))
        gpu.finish(env.device)
        steps += env.num_envs
    return steps / passed_s
