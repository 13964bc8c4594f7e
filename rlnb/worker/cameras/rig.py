"""The sensors behind a task's cameras: the task's own, copies of them, or one that is added to its scene."""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlnb.configs.cameras import FREE, CameraPose, kind_of
from rlnb.errors import NotFoundError, RlnbError, did_you_mean
from rlnb.errors import unknown as unknown_name
from rlnb.worker.cameras.framing import APERTURE, CLIP_M, FOCAL_LENGTH, Trail
from rlnb.worker.isaac import release
from rlnb.worker.isaac.renderer import own_cameras, renderer_for

if TYPE_CHECKING:
    import torch

ADDED = "preview"
"""Name of the camera that is added to a task without one."""
_TWIN = "rlnb_"
"""Prefix of the name of a camera's copy. The copy gives the data types that the task's own camera is not set to give.
The own camera is left alone, since some tasks count its data types."""
COLORING = ("colorize_semantic_segmentation", "colorize_instance_segmentation", "colorize_instance_id_segmentation")
"""Settings of renderers that replace the ids of a segmentation by colours."""


@dataclass(kw_only=True, slots=True)
class Camera:
    """A camera, and the sensor that each of its data types is read from."""

    own_path: str | None
    """Prim path of the task's own camera; None for the one that is added."""
    own_types: tuple[str, ...]
    """Data types read from the task's own camera: exactly what its policy sees."""
    twin: str | None
    """Name, in the scene, of the copy that gives the other data types; None without a copy."""
    twin_types: tuple[str, ...]

    @property
    def data_types(self) -> tuple[str, ...]:
        return self.own_types + self.twin_types


class Plan:
    """Reads the cameras of an env, with the requested data types.

    Args:
        cameras: Names of the task's cameras; None is all of them.
        data_types: Isaac Lab's names; None is the data types that each camera is set to.
        size: Width and height of an added camera, in pixels.
        aim: Place of an added camera; :data:`FREE` is one that shows and follows the robots.
    """

    def __init__(
        self,
        cameras: Sequence[str] | None,
        data_types: Sequence[str] | None,
        size: tuple[int, ...],
        aim: CameraPose = FREE,
    ) -> None:
        self._wanted, self._data_types, self._size, self._aim = cameras, data_types, size, aim
        self.cameras: dict[str, Camera] = {}
        self.ranges_m: dict[str, tuple[float, float]] = {}
        """Near and far clip of each camera."""
        self._poses: dict[str, torch.Tensor] = {}
        """Newest pose of each camera that has a copy, shape (num_envs, 7)."""
        self._trail: Trail | None = None

    @property
    def added(self) -> bool:
        """Whether the task has no camera, so that one is added."""
        return ADDED in self.cameras and self.cameras[ADDED].own_path is None

    def apply(self, env_cfg: Any) -> None:
        """Add cameras to the scene's config for the data types that the task's own cameras do not give.

        Args:
            env_cfg: The env's config, whose automatic backends are resolved.

        Raises:
            RlnbError: There is no such camera, or its renderer has no such data type.
        """
        cameras = own_cameras(env_cfg)
        if not any(kind_of(kind) == "label" for cfg in cameras.values() for kind in cfg.data_types):
            _label(env_cfg)  # with segmentation, the labels are part of the task's observations and stay
        if not cameras:
            if self._wanted and list(self._wanted) != [ADDED]:
                raise NotFoundError(
                    f"No camera named {self._wanted[0]!r}: this task has none. Leave cameras out and one is added."
                )
            self._add(env_cfg, ADDED, added_camera(self._size, env_cfg), own_path=None)
            return
        for name in self._wanted or cameras:
            if name not in cameras:
                raise unknown_name("camera", name, cameras, has="The task has")
            self._add(env_cfg, name, cameras[name], own_path=cameras[name].prim_path)

    def _add(self, env_cfg: Any, name: str, cfg: Any, own_path: str | None) -> None:
        data_types = list(self._data_types or cfg.data_types or ["rgb"])
        check_data_types(name, cfg, data_types)
        if cfg.spawn is not None:
            near, far = cfg.spawn.clipping_range
            self.ranges_m[name] = float(near), float(far)
        # Segmentation of the task's own camera may be in colours; the copy gives ids.
        own_types = [kind for kind in data_types if own_path and kind in cfg.data_types and kind_of(kind) != "label"]
        other = [kind for kind in data_types if kind not in own_types]
        self.cameras[name] = Camera(
            own_path=own_path, own_types=(*own_types,), twin=_TWIN + name if other else None, twin_types=(*other,)
        )
        if other:
            setattr(env_cfg.scene, _TWIN + name, copied(cfg, other, _TWIN))

    def begin(self, env: Any) -> None:
        """Set up the cameras in an env that was just reset, and let an RTX renderer settle."""
        if self.added:
            self._trail = Trail(env, self._size, self._aim)
            self._move_added(env, self._trail)
        self._move_copies(env)
        render_rtx(env, self._sensors(env), SETTLING_FRAMES)

    def follow(self, env: Any, frames: int = 1) -> None:
        """Bring the cameras up to date. Call it before reading pictures.

        An added camera moves along with robots that walk away, and a copy with the task's own camera. Cameras that the
        task's observations were read from keep their pictures, which are those of the policy.

        Args:
            env: The env.
            frames: Number of frames for an RTX renderer. It needs several if its last picture is many steps old.
        """
        if self._trail is not None and self._trail.follow():
            self._move_added(env, self._trail)
        self._move_copies(env)
        render_rtx(env, unread_pictures(self._sensors(env)), frames)

    @property
    def place(self) -> CameraPose | None:
        """Current place of an added camera in the frame of the first env; None without an added camera."""
        return self._trail.place() if self._trail is not None else None

    def noisy(self, env: Any) -> tuple[str, ...]:
        """Return the names of the cameras with an RTX renderer, whose pictures of one scene are never the same."""
        sensors = {**self._own(env), **self._twins(env)}
        return tuple(name for name in self.cameras if name in sensors and is_rtx(sensors[name].cfg))

    def unseen(self, env: Any) -> dict[str, list[int]]:
        """Return the envs in whose picture there is no body, by the name of a camera that stands still."""
        found = {}
        for name, sensor in {**self._twins(env), **self._own(env)}.items():
            shown = shows_bodies(env, sensor) if stands_still(sensor.cfg.prim_path) else None
            if shown is not None:
                found[name] = (~shown).nonzero().flatten().tolist()
        return found

    def _sensors(self, env: Any) -> list[Any]:
        return [*self._own(env).values(), *self._twins(env).values()]

    def _own(self, env: Any) -> dict[str, Any]:
        """Return the env's sensors of the task's own cameras, by the camera's name."""
        sensors = {name: _sensor_at(env, camera.own_path) for name, camera in self.cameras.items() if camera.own_path}
        return {name: sensor for name, sensor in sensors.items() if sensor is not None}

    def _twins(self, env: Any) -> dict[str, Any]:
        """Return the env's sensors of copies and of an added camera, by the camera's name."""
        return {name: env.scene.sensors[camera.twin] for name, camera in self.cameras.items() if camera.twin}

    def read(self, env: Any, name: str, data_type: str) -> Any:
        """Return a camera's current picture of all envs, a tensor of shape (num_envs, height, width, channels).

        The values are those of the renderer: depth that hit nothing may be 0 (see :func:`missed_is_inf`).
        """
        return self.sensor(env, name, data_type).data.output[data_type].torch

    def labels(self, env: Any, name: str, data_type: str) -> dict[str, str]:
        """Return the label of each id of a segmentation; an empty dict for other data types."""
        info = (self.sensor(env, name, data_type).data.info or {}).get(data_type) or {}
        return {str(number): _text(label) for number, label in info.get("idToLabels", {}).items()}

    def sensor(self, env: Any, name: str, data_type: str) -> Any:
        """Return Isaac Lab's sensor that gives a data type of a camera."""
        camera = self.cameras[name]
        if data_type not in camera.own_types:
            return env.scene.sensors[camera.twin]
        sensor = _sensor_at(env, camera.own_path) if camera.own_path else None
        if sensor is None:
            raise RlnbError(
                f"The env has no sensor for its config's camera {name!r}: env.scene.sensors has "
                f"{', '.join(env.scene.sensors) or 'none'}."
            )
        return sensor

    def _move_added(self, env: Any, trail: Trail) -> None:
        env.scene.sensors[_TWIN + ADDED].set_world_poses_from_view(trail.eyes, trail.targets)

    def _move_copies(self, env: Any) -> None:
        """Move the copies of cameras that the env's code has moved. A camera on a link moves with the link anyway."""
        twins = self._twins(env)
        for name, sensor in self._own(env).items():
            if name in twins:
                self._follow(name, sensor, twins[name])

    def _follow(self, name: str, sensor: Any, twin: Any) -> None:
        import torch

        pose = torch.cat([sensor.data.pos_w.torch, sensor.data.quat_w_ros.torch], dim=-1)
        before = self._poses.get(name)
        self._poses[name] = pose.clone()
        if before is not None and torch.equal(before, pose):
            return
        if not torch.equal(pose, torch.cat([twin.data.pos_w.torch, twin.data.quat_w_ros.torch], dim=-1)):
            twin.set_world_poses(pose[:, :3], pose[:, 3:], convention="ros")
            twin.update(0.0)  # reading its pose has rendered it where it was


def missed_is_inf(image: Any, data_type: str, cfg: Any) -> Any:
    """Return an array of camera output with inf where depth hit nothing, whatever the renderer wrote there.

    Args:
        image: Shape (..., 1), float32; changed in place if it is depth.
        data_type: Isaac Lab's name.
        cfg: The camera's config. Its renderer may be set to write the far clip where depth hit nothing.
    """
    if kind_of(data_type) == "depth":
        image[image <= 0.0] = float("inf")
        if getattr(cfg.renderer_cfg, "depth_clipping_behavior", "none") == "max" and cfg.spawn is not None:
            image[image >= cfg.spawn.clipping_range[1]] = float("inf")
    return image


def check_data_types(name: str, cfg: Any, data_types: Sequence[str]) -> None:
    """Check that a camera's renderer gives the data types.

    A config whose data types are unknown until the renderer exists passes this check. Isaac Lab checks it then.

    Raises:
        RlnbError: The renderer does not give one of them. The error lists those that it gives.
    """
    kinds = cfg.renderer_cfg.supported_output_types()
    if kinds is None:
        return
    names = sorted(getattr(kind, "value", str(kind)) for kind in kinds)
    for data_type in data_types:
        if data_type not in names:
            renderer = type(cfg.renderer_cfg).__name__.removesuffix("Cfg")
            raise RlnbError(
                f"Camera {name!r} cannot give {data_type!r}: {renderer} renders {', '.join(names)}."
                f"{did_you_mean(data_type, names)}"
            )


def copied(cfg: Any, data_types: list[str], prefix: str) -> Any:
    """Return a copy of a camera's config, with a prim of its own and with ids instead of coloured labels.

    Args:
        cfg: The camera's config, which is not changed.
        data_types: Data types of the copy.
        prefix: Prefix of the name of the copy's prim.
    """
    twin = copy.deepcopy(cfg)
    twin.data_types = data_types
    # A copy needs a prim of its own, unless the camera is part of the robot's own file.
    if twin.spawn is not None:
        parent, _, leaf = twin.prim_path.rpartition("/")
        twin.prim_path = f"{parent}/{prefix}{leaf}"
    for field in COLORING:
        if hasattr(twin.renderer_cfg, field):
            setattr(twin.renderer_cfg, field, False)
    return twin


def _sensor_at(env: Any, prim_path: str) -> Any | None:
    path = prim_path.replace("{ENV_REGEX_NS}", env.scene.env_regex_ns)
    return next((sensor for sensor in env.scene.sensors.values() if sensor.cfg.prim_path == path), None)


def _label(env_cfg: Any) -> None:
    """Name every asset that has no semantic label after its own key, so that segmentation shows something."""
    for holder in (env_cfg.scene, env_cfg):
        for name, value in vars(holder).items():
            # Other attribute access may import a class by name. That import loads USD, after which Kit cannot start.
            spawn: Any = vars(value).get("spawn") if hasattr(type(value), "__dataclass_fields__") else None
            if hasattr(spawn, "semantic_tags") and not spawn.semantic_tags:
                spawn.semantic_tags = [("class", name)]


def added_camera(size: tuple[int, ...], env_cfg: Any) -> Any:
    """Return the config of a camera for a task that has none. A :class:`Trail` points it.

    Args:
        size: Width and height, in pixels.
        env_cfg: The task's config, whose physics determines the renderer.
    """
    import isaaclab.sim as sim_utils
    from isaaclab.sensors import CameraCfg

    renderer = renderer_for(env_cfg)
    return CameraCfg(
        **({"renderer_cfg": renderer} if renderer is not None else {}),
        prim_path=f"{{ENV_REGEX_NS}}/{ADDED}",
        data_types=["rgb"],
        width=size[0],
        height=size[1],
        spawn=sim_utils.PinholeCameraCfg(
            focal_length=FOCAL_LENGTH, horizontal_aperture=APERTURE, clipping_range=CLIP_M
        ),
    )


def _text(label: Any) -> str:
    if isinstance(label, Mapping):
        return ", ".join(str(value) for value in label.values())
    return label if isinstance(label, str) else json.dumps(label)


# -- RTX renderers ---------------------------------------------------------------------------------------------------
# Isaac Sim renders all cameras together, and only once for each physics step and call of ``sim.render()``. A camera
# that is moved after that keeps its picture. Both renderers build a picture up over several frames: the first one of a
# new camera may be empty, and the first ones after a jump are noisy or still show what was there before.


RENDERER_TYPES = ("isaac_rtx", "ovrtx")
SETTLING_FRAMES = 8
"""Frames until a picture shows the current state alone. Isaac Lab's own tasks render 1 to 3 of them after a reset."""


def is_rtx(camera_cfg: Any) -> bool:
    """Return whether an RTX renderer takes the pictures of a camera with this config."""
    return release.required(camera_cfg.renderer_cfg, "renderer_type", "a camera") in RENDERER_TYPES


def render_rtx(env: Any, sensors: Iterable[Any], frames: int) -> None:
    """Render the current state with those cameras that have an RTX renderer. Others render when they are read.

    A camera with an ``update_period`` keeps its picture until the period is over, as in a training run.

    Args:
        env: The task's env.
        sensors: Isaac Lab's sensors, whose poses are set.
        frames: Number of frames to render. The last one is the picture.
    """
    cameras = [sensor for sensor in sensors if is_rtx(sensor.cfg)]
    for _ in range(frames if cameras else 0):
        env.sim.render()
        for camera in cameras:
            camera.update(0.0, force_recompute=True)


def unread_pictures(sensors: Iterable[Any]) -> list[Any]:
    """Return those cameras with an RTX renderer whose current picture is not part of the task's observations.

    Only these may be rendered again: observations may be views of a camera's data, which then change.
    """
    return [sensor for sensor in sensors if is_rtx(sensor.cfg) and _renders_when_read(sensor)]


def _renders_when_read(sensor: Any) -> bool:
    """Read a camera; return whether the read rendered a new picture."""
    import torch

    before = sensor.frame.torch.clone()
    _ = sensor.data
    return not torch.equal(before, sensor.frame.torch)


# -- what a camera sees ----------------------------------------------------------------------------------------------


_ON_A_LINK = re.compile(r"/env_[^/]+/[^/]+/.+")
"""Prim path of a camera below another prim of its env, with which it may move. Its newest pose may be unknown."""


def stands_still(prim_path: str) -> bool:
    """Return whether a camera belongs to no body that could move it, from its prim path."""
    return _ON_A_LINK.search(prim_path.replace("[^/]+", "*")) is None


def shows_bodies(env: Any, sensor: Any) -> torch.Tensor | None:
    """Return whether the origin of any body is within a camera's picture. Shape (num_envs,), bool.

    A body may still be hidden by another one. The projection is that of a pinhole camera, with the optical axis along
    z, x to the right and y down (the convention of ROS, which Isaac Lab names so).

    Args:
        env: The task's own env.
        sensor: Isaac Lab's camera.

    Returns:
        None if the env has no bodies, or has objects of other kinds, whose positions are not looked at.
    """
    import torch
    from isaaclab.utils.math import quat_apply_inverse

    others = ("rigid_object_collections", "deformable_objects", "cable_objects")
    if any(getattr(env.scene, name, None) for name in others):
        return None
    assets = itertools.chain(env.scene.articulations.values(), env.scene.rigid_objects.values())
    positions = [asset.data.body_pos_w.torch for asset in assets]
    if not positions:
        return None
    bodies = torch.cat(positions, dim=1)
    data = sensor.data
    count = bodies.shape[1]
    towards = bodies - data.pos_w.torch[:, None]
    rotation = data.quat_w_ros.torch[:, None].expand(-1, count, -1)
    x, y, z = quat_apply_inverse(rotation.reshape(-1, 4), towards.reshape(-1, 3)).reshape(-1, count, 3).unbind(-1)
    matrix = data.intrinsic_matrices.torch[:, None]
    height, width = data.image_shape
    column, row = matrix[..., 0, 0] * x / z + matrix[..., 0, 2], matrix[..., 1, 1] * y / z + matrix[..., 1, 2]
    inside = (z > 0) & (column >= 0) & (column < width) & (row >= 0) & (row < height)
    return inside.any(dim=1)


# -- gpu -------------------------------------------------------------------------------------------------------------


def finish_gpu(device: Any) -> None:
    """Wait until the work that is queued on a GPU is done, so that a measured time covers all of its own work.

    Args:
        device: ``"cpu"``, which has no queue, or ``"cuda:N"``.
    """
    import torch

    if str(device).startswith("cuda"):
        torch.cuda.synchronize(device)
