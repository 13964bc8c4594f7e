"""Costs of camera frames. Each number of envs gets an env with one camera per size; each camera renders alone."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from rlnb.tasks.requests import Budget, Cost, Costs
from rlnb.worker.acting import actions
from rlnb.worker.cameras.rig import ADDED, added_camera, aim, check_data_types, copied, own_cameras
from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.env import environment

Size = tuple[int, int]


def budget(request: Budget, tell: Callable[[Costs], None]) -> Costs:
    """Measure the time and memory of a camera's frames, for several sizes and numbers of envs.

    Args:
        request: The task, its camera, the sizes and the numbers of envs.
        tell: Called with the costs so far, after each number of envs.
    """
    costs = Costs()
    for num_envs in request.envs:
        costs = Costs(rows=(*costs.rows, *_measure(request, num_envs)))
        tell(costs)
    return costs


def _measure(request: Budget, num_envs: int) -> list[Cost]:
    added = False
    task = dataclasses.replace(request.task, num_envs=num_envs)

    def configure(env_cfg: Any) -> None:
        nonlocal added
        cameras = own_cameras(env_cfg)
        added = not cameras
        name = request.camera or next(iter(cameras), ADDED)
        for size in request.sizes:
            cfg = cameras[name] if cameras else added_camera(size, env_cfg)
            data_types = list(request.data_types or cfg.data_types or ["rgb"])
            check_data_types(name, cfg, data_types)
            copy = copied(cfg, data_types, _sensor(size))
            copy.width, copy.height = size
            setattr(env_cfg.scene, _sensor(size), copy)

    with environment(task, None, seed=0, device=request.device, configure=configure) as (env, _):
        env.reset()
        raw = isaaclab.task_env(env)
        for size in request.sizes if added else ():
            aim(raw, _sensor(size))
        return [_frames(raw, size, request.frames) for size in request.sizes]


def _sensor(size: Size) -> str:
    return f"rlnb_{size[0]}x{size[1]}_"


def _frames(env: Any, size: Size, frames: int) -> Cost:
    """Time frames of one size, each after a step of the env, so that the picture has to be rendered again."""
    import torch

    sensor = env.scene.sensors[_sensor(size)]
    wait = torch.cuda.synchronize if str(env.device).startswith("cuda") else lambda: None
    milliseconds = []
    for _ in range(frames + 1):  # the first frame loads kernels
        env.step(actions(env, "random"))
        wait()
        start_s = time.perf_counter()
        output = sensor.data.output  # cameras render when they are read
        images = [output[data_type].torch for data_type in sensor.cfg.data_types]
        wait()
        milliseconds.append(1000.0 * (time.perf_counter() - start_s))
    mib = sum(image.untyped_storage().nbytes() for image in images) / 2**20
    return Cost(size=size, num_envs=env.num_envs, times_ms=tuple(milliseconds[1:]), mib=mib)
