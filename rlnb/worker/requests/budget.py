"""Costs of camera frames.

With Newton's ray tracer, each number of envs gets an env with one camera per size, since each camera renders alone. RTX
renders all cameras of an env together, also those of the task. So each size gets an env of its own, and the cost of a
frame is the duration of a step with the camera minus that of a step without it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rlnb.protocol.requests import Budget, Cost, Costs
from rlnb.worker.actions import actions
from rlnb.worker.cameras import rig
from rlnb.worker.cameras.framing import Trail
from rlnb.worker.cameras.rig import ADDED, added_camera, check_data_types, copied
from rlnb.worker.isaac import isaaclab, kit
from rlnb.worker.isaac.env import configured, environment
from rlnb.worker.isaac.renderer import own_cameras, resolve_backends

Size = tuple[int, int]
LEAST_MS = 0.01
"""Least cost of a frame, for when steps with and without it take equally long."""


def budget(request: Budget, tell: Callable[[Costs], None]) -> Costs:
    """Measure the time and memory of a camera's frames, for several sizes and numbers of envs.

    Args:
        request: The task, its camera, the sizes and the numbers of envs.
        tell: Called with the costs so far, after each number of envs.
    """
    _, env_cfg, _ = configured(request.task, None, device=request.device)
    resolve_backends(env_cfg, kit.arguments_of(env_cfg.sim.device, own=request.task.launcher_args))
    measure = _of_longer_steps if rig.is_rtx(_camera(request, env_cfg, request.sizes[0])) else _of_frames
    costs = Costs()
    for num_envs in request.envs:
        costs = Costs(rows=(*costs.rows, *measure(request, num_envs)))
        tell(costs)
    return costs


def _of_frames(request: Budget, num_envs: int) -> list[Cost]:
    """Return the costs of all sizes in one env. Each frame follows a step, so that it has to be rendered again."""

    def frames(env: Any, size: Size) -> Cost:
        times_ms = []
        for _ in range(request.frames + 1):  # the first frame loads kernels
            env.step(actions(env, "random"))
            times_ms.append(_time_ms(env, lambda: _read(env, size)))
        return _cost(env, size, times_ms[1:])

    with _env(request, num_envs, request.sizes) as env:
        return [frames(env, size) for size in request.sizes]


def _of_longer_steps(request: Budget, num_envs: int) -> list[Cost]:
    """Return the costs of all sizes, each in an env of its own, by the time of steps with and without a frame."""

    def steps_ms(env: Any, *sizes: Size) -> list[float]:
        def step() -> None:
            env.step(actions(env, "random"))
            for size in sizes:
                _read(env, size)

        # the first frames compile shaders and load textures
        times_ms = [_time_ms(env, step) for _ in range(request.frames + rig.SETTLING_FRAMES)]
        return times_ms[rig.SETTLING_FRAMES :]

    costs = []
    for size in request.sizes:
        with _env(request, num_envs, [size]) as env:
            costs.append(_cost(env, size, steps_ms(env, size)))
    with _env(request, num_envs, ()) as env:  # last: Isaac Sim loads no renderer if its first env has no camera
        without_ms = statistics.median(steps_ms(env))
    return [
        dataclasses.replace(cost, times_ms=tuple(max(LEAST_MS, step_ms - without_ms) for step_ms in cost.times_ms))
        for cost in costs
    ]


@contextlib.contextmanager
def _env(request: Budget, num_envs: int, sizes: Sequence[Size]) -> Iterator[Any]:
    """Make the task's env with a copy of the camera for each size, or with an added camera; reset it."""
    added = False

    def configure(env_cfg: Any) -> None:
        nonlocal added
        added = not own_cameras(env_cfg)
        for size in sizes:
            setattr(env_cfg.scene, _sensor(size), _camera(request, env_cfg, size))

    task = dataclasses.replace(request.task, num_envs=num_envs)
    with environment(task, None, seed=0, device=request.device, configure=configure) as (env, _):
        env.reset()
        raw = isaaclab.task_env(env)
        for size in sizes if added else ():
            trail = Trail(raw, size)
            raw.scene.sensors[_sensor(size)].set_world_poses_from_view(trail.eyes, trail.targets)
        yield raw


def _camera(request: Budget, env_cfg: Any, size: Size) -> Any:
    """Return the config of a camera of a size: a copy of the task's camera, or an added one.

    Raises:
        RlnbError: The camera's renderer does not give the data types.
    """
    cameras = own_cameras(env_cfg)
    name = request.camera or next(iter(cameras), ADDED)
    cfg = cameras[name] if cameras else added_camera(size, env_cfg)
    data_types = list(request.data_types or cfg.data_types or ["rgb"])
    check_data_types(name, cfg, data_types)
    copy = copied(cfg, data_types, _sensor(size))
    copy.width, copy.height = size
    return copy


def _sensor(size: Size) -> str:
    return f"rlnb_{size[0]}x{size[1]}_"


def _read(env: Any, size: Size) -> list[Any]:
    """Return the pictures of a size, one tensor per data type. Cameras render when they are read."""
    sensor = env.scene.sensors[_sensor(size)]
    output = sensor.data.output
    return [output[data_type].torch for data_type in sensor.cfg.data_types]


def _time_ms(env: Any, work: Callable[[], object]) -> float:
    """Return the duration of some work, with all that it queues on a GPU."""
    rig.finish_gpu(env.device)
    start_s = time.perf_counter()
    work()
    rig.finish_gpu(env.device)
    return 1000.0 * (time.perf_counter() - start_s)


def _cost(env: Any, size: Size, times_ms: Sequence[float]) -> Cost:
    mib = sum(image.untyped_storage().nbytes() for image in _read(env, size)) / 2**20
    return Cost(size=size, num_envs=env.num_envs, times_ms=tuple(times_ms), mib=mib)
