"""Camera frames of a task, while random actions or a policy move it."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb.spec import Task
from rlnb.worker.acting import acting, joint
from rlnb.worker.cameras.rig import Plan, missed_is_inf
from rlnb.worker.isaac import isaaclab


def preview(
    task: Task, request: Mapping[str, Any], *, tell: Callable[[Any], None], after: contextlib.ExitStack
) -> dict[str, Any]:
    """Step a task and photograph it: after the reset, after every so many steps, and after the last.

    Args:
        task: What to look at.
        request: ``cameras`` and ``data_types`` (None: all, and what each camera has), ``num_envs``, ``envs`` (which of
            them; None: all), ``steps``, ``every`` (steps between frames; None: none between first and last), ``seed``,
            ``actions`` (``"random"`` or ``"zero"``), ``policy`` (``run``, ``checkpoint`` and ``trust``; None: by
            ``actions``), ``size`` (width and height of an added camera, pixels), ``device``, ``asset_root``, ``out``
            (a folder).
        tell: Called with the answer that the first frame alone would be, as soon as there is one.
        after: Closes the env, once the answer is sent.

    Returns:
        ``frames`` (path of an npz with an array ``<camera>/<data type>`` of shape (times, envs, height, width,
        channels) and ``state``, the poses and joint positions, of shape (times, envs, values)), ``times_s``,
        ``labels`` (of each segmentation), ``ranges_m`` (near and far clip of each camera), ``added`` (whether the
        camera is ours) and ``seconds``.
    """
    import torch

    begun = time.monotonic()
    isaaclab.start(request.get("asset_root"))
    plan = Plan(request["cameras"], request["data_types"], tuple(request["size"]))
    task = dataclasses.replace(task, num_envs=int(request["num_envs"]))
    steps, every = int(request["steps"]), request["every"] or max(1, int(request["steps"]))
    env, act, policy_reset = after.enter_context(acting(task, request, plan.apply))
    seconds = {"make": time.monotonic() - begun}
    raw = isaaclab.task_env(env)
    shots: list[dict[str, Any]] = []
    times_s: list[float] = []

    def take(step: int, name: str) -> dict[str, Any]:
        shots.append(shoot(raw, plan, request["envs"]))
        times_s.append(step * raw.step_dt)
        return {
            "frames": _write(Path(request["out"]) / name, shots) if name else "",
            "times_s": times_s,
            "labels": _labels(raw, plan),
            "ranges_m": plan.ranges_m,
            "added": plan.added,
            "seconds": seconds,
        }

    obs, _ = env.reset(seed=int(request["seed"]))  # loading a policy may have seeded everything with its own
    plan.begin(raw)
    answer = take(0, "first.npz")
    seconds["first"] = time.monotonic() - begun
    if steps:
        tell(answer)
    with torch.inference_mode():
        for step in range(1, steps + 1):
            obs, *outcome, _ = env.step(act(obs))
            _, terminated, truncated = joint(*outcome)
            policy_reset(terminated | truncated)
            if step == steps or step % every == 0:
                answer = take(step, "frames.npz" if step == steps else "")
    seconds["total"] = time.monotonic() - begun
    return answer


def shoot(env: Any, plan: Plan, envs: Sequence[int] | None) -> dict[str, Any]:
    """Read every camera, and the state that it sees."""
    plan.follow(env)
    chosen = slice(None) if envs is None else list(envs)
    shot: dict[str, Any] = {"state": _state(env)[chosen]}
    for name, camera in plan.cameras.items():
        for data_type in camera.data_types:
            image = plan.read(env, name, data_type)[chosen].cpu().numpy().copy()
            shot[f"{name}/{data_type}"] = missed_is_inf(image, data_type, plan.sensor(env, name, data_type).cfg)
    return shot


def _write(path: Path, shots: Sequence[Mapping[str, Any]]) -> str:
    import numpy as np

    arrays: dict[str, Any] = {key: np.stack([shot[key] for shot in shots]) for key in shots[0]}
    np.savez(path, **arrays)
    return str(path)


def _labels(env: Any, plan: Plan) -> dict[str, dict[str, str]]:
    return {
        f"{name}/{data_type}": plan.labels(env, name, data_type)
        for name, camera in plan.cameras.items()
        for data_type in camera.data_types
        if data_type.endswith("segmentation")
    }


def _state(env: Any) -> Any:
    """Return what can be seen to move: poses and joint positions, shape (num_envs, values), metres and radians."""
    import numpy as np

    parts = [
        value.reshape(env.num_envs, -1).cpu().numpy().astype(np.float32)
        for assets in env.scene.get_state(is_relative=True).values()
        for state in assets.values()
        if isinstance(state, Mapping)
        for name, value in state.items()
        if not name.endswith("velocity")
    ]
    return np.concatenate(parts, axis=1) if parts else np.zeros((env.num_envs, 0), np.float32)
