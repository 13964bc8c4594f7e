"""Camera frames of a task: its own cameras, or one that is added to its scene."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb.errors import NotFoundError, RlnbError, did_you_mean, unknown
from rlnb.spec import Task
from rlnb.worker import sim
from rlnb.worker.train import environment

ADDED = "preview"
"""Name of the camera that is added to a task without one."""
_TWIN = "rlnb_"
"""Prefix of a preview's copy of a camera. The task's own is left as it is: tasks count its data types."""
_LEAST_DISTANCE_M = 3.5


def preview(task: Task, request: Mapping[str, Any]) -> dict[str, Any]:
    """Step a task and photograph it.

    Args:
        task: What to look at.
        request: ``cameras`` and ``data_types`` (None: all, and what each camera has), ``num_envs``,
            ``steps``, ``seed``, ``actions`` (``"random"`` or ``"zero"``), ``size`` (width and height of
            an added camera, pixels), ``device``, ``asset_root``, ``out`` (a folder).

    Returns:
        ``frames`` (path of an npz with arrays ``<camera>/<data type>``), ``labels`` (of each segmentation),
        ``ranges_m`` (near and far clip of each camera), ``added`` (whether the camera is ours) and ``seconds``.
    """
    import numpy as np
    import torch

    begun = time.monotonic()
    sim.start(request.get("asset_root"))
    plan = Plan(request["cameras"], request["data_types"], tuple(request["size"]))
    import dataclasses

    task = dataclasses.replace(task, num_envs=int(request["num_envs"]))
    with environment(task, None, seed=int(request["seed"]), device=request["device"], configure=plan.apply) as (env, _):
        made = time.monotonic()
        raw = env.unwrapped
        env.reset()
        if plan.added:
            aim(raw)
        with torch.inference_mode():
            for _ in range(int(request["steps"])):
                env.step(_actions(raw, request["actions"]))
            frames, labels = _shoot(raw, plan)
    path = Path(request["out"]) / "frames.npz"
    np.savez(path, **frames)
    return {
        "frames": str(path),
        "labels": labels,
        "ranges_m": plan.ranges_m,
        "added": plan.added,
        "seconds": {"make": made - begun, "total": time.monotonic() - begun},
    }


class Plan:
    """Which sensors to read for which camera."""

    def __init__(self, cameras: Sequence[str] | None, data_types: Sequence[str] | None, size: tuple[int, ...]) -> None:
        self._cameras, self._data_types, self._size = cameras, data_types, size
        self.sensors: dict[str, tuple[str, list[str]]] = {}
        """Camera name to the sensor that stands in for it, and its data types."""
        self.ranges_m: dict[str, list[float]] = {}
        self.added = False

    def apply(self, env_cfg: Any) -> None:
        """Add to the scene what the task's own cameras do not give."""
        from isaaclab.sensors import CameraCfg

        _label(env_cfg)
        own = {
            name: value
            for holder in (env_cfg.scene, env_cfg)
            for name, value in vars(holder).items()
            if isinstance(value, CameraCfg)
        }
        if not own:
            if self._cameras and list(self._cameras) != [ADDED]:
                raise NotFoundError(
                    f"No camera named {self._cameras[0]!r}: this task has none. Leave cameras out and one is added."
                )
            own = {ADDED: _added_camera(self._size, env_cfg)}
            self.added = True
        for name in self._cameras or own:
            if name not in own:
                raise unknown("camera", name, own, has="The task has")
            self._stand_in(env_cfg, name, own[name])

    def _stand_in(self, env_cfg: Any, name: str, cfg: Any) -> None:
        data_types = list(self._data_types or (cfg.data_types or ["rgb"]))
        twin = copy.deepcopy(cfg)
        twin.data_types = data_types
        # A copy needs a prim of its own, unless the camera is part of the robot's own file.
        if twin.spawn is not None:
            parent, _, leaf = twin.prim_path.rpartition("/")
            twin.prim_path = f"{parent}/{_TWIN}{leaf}"
            self.ranges_m[name] = [float(value) for value in twin.spawn.clipping_range]
        for field in ("colorize_semantic_segmentation", "colorize_instance_segmentation"):
            if hasattr(twin.renderer_cfg, field):
                setattr(twin.renderer_cfg, field, False)
        known = sorted(getattr(kind, "value", str(kind)) for kind in twin.renderer_cfg.supported_output_types())
        for data_type in data_types:
            if data_type not in known:
                renderer = type(twin.renderer_cfg).__name__.removesuffix("Cfg")
                raise RlnbError(
                    f"Camera {name!r} cannot give {data_type!r}: {renderer} renders {', '.join(known)}."
                    f"{did_you_mean(data_type, known)}"
                )
        setattr(env_cfg.scene, _TWIN + name, twin)
        self.sensors[name] = (_TWIN + name, data_types)


def _label(env_cfg: Any) -> None:
    """Name every asset that has no semantic label after its own key, so that segmentation shows something."""
    for holder in (env_cfg.scene, env_cfg):
        for name, value in vars(holder).items():
            spawn: Any = getattr(value, "spawn", None)
            if hasattr(spawn, "semantic_tags") and not spawn.semantic_tags:
                spawn.semantic_tags = [("class", name)]


def _added_camera(size: tuple[int, ...], env_cfg: Any) -> Any:
    import isaaclab.sim as sim_utils
    from isaaclab.sensors import CameraCfg

    renderer = sim.renderer_for(env_cfg)
    return CameraCfg(
        **({"renderer_cfg": renderer} if renderer is not None else {}),
        prim_path=f"{{ENV_REGEX_NS}}/{ADDED}",
        data_types=["rgb"],
        width=size[0],
        height=size[1],
        spawn=sim_utils.PinholeCameraCfg(focal_length=24.0, horizontal_aperture=20.955, clipping_range=(0.05, 50.0)),
    )


def aim(env: Any) -> None:
    """Point the added camera of each env at the middle of its bodies, from where all of them fit in."""
    import torch

    robots = list(env.scene.articulations.values())
    centres, radius = env.scene.env_origins.clone(), 0.0
    if robots:
        bodies = torch.cat([robot.data.body_pos_w.torch for robot in robots], dim=1)
        centres = bodies.mean(dim=1)
        radius = float((bodies - centres[:, None]).norm(dim=-1).max())
    away = torch.tensor([0.75, -0.55, 0.35], device=centres.device)
    eyes = centres + away / away.norm() * max(_LEAST_DISTANCE_M, 3.0 * radius)
    env.scene.sensors[_TWIN + ADDED].set_world_poses_from_view(eyes, centres)


def _actions(env: Any, kind: str) -> Any:
    import torch

    spaces = getattr(env, "action_spaces", None)
    if isinstance(spaces, Mapping):  # multi-agent
        shapes = {agent: (env.num_envs, space.shape[-1]) for agent, space in spaces.items()}
        return {agent: _sample(torch, shape, kind, env.device) for agent, shape in shapes.items()}
    return _sample(torch, (env.num_envs, env.action_space.shape[-1]), kind, env.device)


def _sample(torch: Any, shape: tuple[int, int], kind: str, device: str) -> Any:
    return torch.rand(shape, device=device) * 2.0 - 1.0 if kind == "random" else torch.zeros(shape, device=device)


def _shoot(env: Any, plan: Plan) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """Read every camera; depth that hit nothing becomes inf, whatever the renderer wrote."""
    import numpy as np

    frames: dict[str, Any] = {}
    labels: dict[str, dict[str, str]] = {}
    for name, (sensor, data_types) in plan.sensors.items():
        data = env.scene.sensors[sensor].data
        for data_type in data_types:
            key = f"{name}/{data_type}"
            image = data.output[data_type].torch.cpu().numpy().copy()
            if data_type in ("depth", "distance_to_image_plane", "distance_to_camera"):
                image[image <= 0.0] = np.inf
            frames[key] = image
            info = (data.info or {}).get(data_type) or {}
            if "idToLabels" in info:
                labels[key] = {str(number): _text(label) for number, label in info["idToLabels"].items()}
    return frames, labels


def _text(label: Any) -> str:
    if isinstance(label, Mapping):
        return ", ".join(str(value) for value in label.values())
    return label if isinstance(label, str) else json.dumps(label)
