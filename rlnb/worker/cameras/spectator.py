"""A camera for a living env that has none: pictures of some of its envs, by Newton's ray tracer.

The simulation's own model may have no visual shapes: Isaac Lab leaves them out if the scene has no camera. So these
envs are read from the stage again, into a model for drawing only, whose bodies follow those of the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from rlnb.configs.cameras import FREE, CameraPose
from rlnb.worker.cameras.framing import Lens, Trail

BACKGROUND = 0xFFEEEEEE
"""Light grey, as in Isaac Lab's renderers; ABGR."""


class Spectator:
    """Draws some envs; the camera of each follows its robots.

    Args:
        env: The env, which is not changed. All of its envs are assumed to be alike.
        envs: Numbers of the envs to draw.
        size: Width and height of a picture, in pixels.
        aim: Place of the cameras; :data:`FREE` follows the robots.
    """

    def __init__(self, env: Any, envs: Sequence[int], size: tuple[int, int], aim: CameraPose = FREE) -> None:
        import newton
        import warp as wp
        from isaaclab.sim import SimulationContext

        self._envs, self.trail = list(envs), Trail(env, size, aim, envs)
        """The poses of the cameras."""
        simulation = SimulationContext.instance()
        self._provider = simulation.get_scene_data_provider()
        origins = env.scene.env_origins[self._envs].cpu().numpy()
        self._model = drawn(simulation.stage, env.scene.env_ns, self._envs, origins, env.device)
        self._mapping = self._provider.create_mapping(list(self._model.body_label))
        self._state = self._model.state()
        self._sensor = cast(Any, newton.sensors.SensorTiledCamera(self._model))
        self._sensor.utils.create_default_light()
        width, height = size
        field_of_view = 2.0 * math.atan(Lens.of(size).y)
        self._rays = self._sensor.utils.compute_camera_rays_pinhole(width, height, camera_fovs=field_of_view)
        self._image = wp.zeros((len(self._envs), 1, height, width), dtype=wp.uint32, device=self._model.device)

    def picture(self) -> Any:
        """Return the current picture of each env, shape (count, height, width, 3), uint8."""
        import newton
        import numpy as np
        from isaaclab.scene_data import SceneDataFormat

        poses = SceneDataFormat.Transform()
        if self._provider.get_transforms(poses, mapping=self._mapping, count=self._model.body_count):
            self._state.body_q = poses.transforms
        self._model.bvh_refit_shapes(self._state)
        self._sensor.update(
            self._state,
            self._transforms(),
            self._rays,
            color_image=self._image,
            clear_data=newton.sensors.SensorTiledCamera.ClearData(clear_color=BACKGROUND),
        )
        count, _, height, width = self._image.shape
        return self._image.numpy().view(np.uint8).reshape(count, height, width, 4)[..., :3].copy()

    def _transforms(self) -> Any:
        """Return the pose of each camera, shape (1, count): from camera to world, looking along -z with y up."""
        import torch
        import warp as wp
        from isaaclab.utils.math import create_rotation_matrix_from_view, quat_from_matrix

        self.trail.follow()
        eyes = self.trail.eyes
        rotation = create_rotation_matrix_from_view(eyes, self.trail.targets, "Z", device=str(eyes.device))
        pose = torch.cat([eyes, quat_from_matrix(rotation)], dim=-1).contiguous()  # quaternions as x, y, z, w
        return wp.from_torch(pose, dtype=wp.transformf).reshape((1, len(self._envs)))


def drawn(stage: Any, env_ns: str, envs: Sequence[int], origins: Any, device: str) -> Any:
    """Return a Newton model for drawing some envs: visual shapes, and colliders of parts that have none.

    Args:
        stage: The simulation's stage. The first env's prims are used for all envs.
        env_ns: Path of the prim that is the parent of all envs.
        envs: Numbers of the envs.
        origins: Positions of the envs, shape (count, 3), metres. Shapes without a body stay there.
        device: Device to draw on.
    """
    import newton
    import warp as wp

    first = f"{env_ns}/env_0"
    one, whole = newton.ModelBuilder(up_axis="Z"), newton.ModelBuilder(up_axis="Z")
    one.add_usd(stage, root_path=first, hide_collision_shapes=True, skip_mesh_approximation=True)
    whole.add_usd(stage, ignore_paths=[env_ns], hide_collision_shapes=True, skip_mesh_approximation=True)
    of_one = list(one.body_label)
    for origin in origins:
        whole.add_world(one, xform=wp.transform(wp.vec3(*(origin - origins[0])), wp.quat(0.0, 0.0, 0.0, 1.0)))
    model = whole.finalize(device=device)
    offset = len(model.body_label) - len(envs) * len(of_one)
    for place, number in enumerate(envs):
        for index, label in enumerate(of_one):
            below = str(label).removeprefix(first)
            model.body_label[offset + place * len(of_one) + index] = f"{env_ns}/env_{number}{below}"
    return model
