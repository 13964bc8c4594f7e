"""What camera frames cost: one env per number of envs, a camera per size in it, each rendered alone."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlnb.spec import Task
from rlnb.worker.acting import actions
from rlnb.worker.cameras.rig import ADDED, added_camera, aim, check_data_types, copied, own_cameras
from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.env import environment

Size = tuple[int, int]


def budget(task: Task, request: Mapping[str, Any], tell: Callable[[Any], None]) -> list[dict[str, Any]]:
    """Measure the frames of a camera for several sizes and numbers of envs.

    Args:
        task: Whose camera.
        request: ``camera`` (None: the task's first, or one that is added), ``data_types`` (None: its own), ``sizes``
            (width and height, pixels), ``envs`` (how many, ascending), ``frames`` (timed, of each), ``device``,
            ``asset_root``.
        tell: Called with what was measured so far, after each number of envs.

    Returns:
        For each size and number of envs ``width``, ``height``, ``num_envs``, ``ms`` (the time of each frame of all
        envs, milliseconds) and ``mib`` (what its pictures take, MiB).
    """
    isaaclab.start(request.get("asset_root"))
    sizes: list[Size] = [(int(width), int(height)) for width, height in request["sizes"]]
    rows: list[dict[str, Any]] = []
    for num_envs in request["envs"]:
        rows += _measure(dataclasses.replace(task, num_envs=num_envs), request, sizes)
        tell(rows)
    return rows


def _measure(task: Task, request: Mapping[str, Any], sizes: Sequence[Size]) -> list[dict[str, Any]]:
    added = False

    def configure(env_cfg: Any) -> None:
        nonlocal added
        own = own_cameras(env_cfg)
        added = not own
        name = request["camera"] or next(iter(own), ADDED)
        for size in sizes:
            cfg = own[name] if own else added_camera(size, env_cfg)
            data_types = list(request["data_types"] or cfg.data_types or ["rgb"])
            check_data_types(name, cfg, data_types)
            copy = copied(cfg, data_types, _sensor(size))
            copy.width, copy.height = size
            setattr(env_cfg.scene, _sensor(size), copy)

    with environment(task, None, seed=0, device=request["device"], configure=configure) as (env, _):
        env.reset()
        raw = isaaclab.task_env(env)
        for size in sizes if added else ():
            aim(raw, _sensor(size))
        return [_frames(raw, size, int(request["frames"])) for size in sizes]


def _sensor(size: Size) -> str:
    return f"rlnb_{size[0]}x{size[1]}_"


def _frames(env: Any, size: Size, frames: int) -> dict[str, Any]:
    """Time frames of one size, each after a step of the env, so that there is something new to draw."""
    import torch

    sensor = env.scene.sensors[_sensor(size)]
    wait = torch.cuda.synchronize if str(env.device).startswith("cuda") else lambda: None
    milliseconds = []
    for _ in range(frames + 1):  # the first loads kernels
        env.step(actions(env, "random"))
        wait()
        begun = time.perf_counter()
        output = sensor.data.output  # cameras render when they are read
        images = [output[data_type].torch for data_type in sensor.cfg.data_types]
        wait()
        milliseconds.append(1000.0 * (time.perf_counter() - begun))
    taken = sum(image.untyped_storage().nbytes() for image in images) / 2**20
    width, height = size
    return {"width": width, "height": height, "num_envs": env.num_envs, "ms": milliseconds[1:], "mib": taken}
