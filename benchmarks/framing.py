"""The framing of an added camera: whether the robots of stock tasks, and a puck on the floor, are whole in the picture.

    python benchmarks/framing.py [TASK ...] [--steps 30] [--num-envs 4] [--pictures FOLDER]

A second camera has the same pose and the same pixels per degree, but a picture three times as wide and as high. Its
segmentation also shows those parts of a robot that are outside of the normal picture.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from against_isaaclab import asset_root
from results import record

import rlnb
from rlnb.tasks import source

if TYPE_CHECKING:
    import numpy as np

TASKS = (
    "Isaac-Cartpole-Direct",
    "Isaac-Pendulum-MARL-Direct",
    "Isaac-Ant-Direct",
    "Isaac-Humanoid-Direct",
    "Isaac-Humanoid",
    "Isaac-Velocity-Flat-UnitreeGo2",
    "Isaac-Velocity-Rough-UnitreeGo2",
    "Isaac-Reach-Franka",
    "Isaac-Reorient-Cube-Shadow-Direct",
    "Isaac-Shadow-Handover-Direct",
)
PUCK = "Puck"
RAILS = {"Isaac-Cartpole-Direct": "cartpole", "Isaac-Pendulum-MARL-Direct": "robot"}
"""Tasks of robots on a rail, and the names of the robots in their scenes."""
SIZE = (160, 120)
WIDER = 3
LEAST_SHARE = 0.2
"""Least length of a robot in the picture, as a share of the picture's smaller side."""
KIND = "semantic_segmentation"
PUCK_MODULE = """
import isaaclab.sim as sim_utils
import torch
from isaaclab.assets import AssetBaseCfg, RigidObjectCfg
from isaaclab.envs import DirectRLEnv, DirectRLEnvCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.sim import SimulationCfg
from isaaclab.utils import configclass
from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg


@configclass
class PuckSceneCfg(InteractiveSceneCfg):
    ground = AssetBaseCfg(prim_path="/World/ground", spawn=sim_utils.GroundPlaneCfg())
    puck: RigidObjectCfg = RigidObjectCfg(
        prim_path="{ENV_REGEX_NS}/puck",
        spawn=sim_utils.CylinderCfg(
            radius=0.04,
            height=0.025,
            rigid_props=sim_utils.RigidBodyPropertiesCfg(),
            mass_props=sim_utils.MassPropertiesCfg(mass=0.2),
            collision_props=sim_utils.CollisionPropertiesCfg(),
            visual_material=sim_utils.PreviewSurfaceCfg(diffuse_color=(0.8, 0.2, 0.1)),
        ),
        init_state=RigidObjectCfg.InitialStateCfg(pos=(0.0, 0.0, 0.02)),
    )


@configclass
class PuckCfg(DirectRLEnvCfg):
    decimation = 2
    episode_length_s = 5.0
    action_space = 2
    observation_space = 4
    sim: SimulationCfg = SimulationCfg(dt=1 / 120, physics=NewtonCfg(solver_cfg=MJWarpSolverCfg()))
    scene: PuckSceneCfg = PuckSceneCfg(num_envs=4, env_spacing=2.0)


class PuckEnv(DirectRLEnv):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.puck = self.scene["puck"]

    def _pre_physics_step(self, actions):
        self.actions = actions

    def _apply_action(self):
        velocity = torch.zeros((self.num_envs, 6), device=self.device)
        velocity[:, :2] = 0.5 * self.actions
        self.puck.write_root_velocity_to_sim_index(root_velocity=velocity)

    def _get_observations(self):
        place = self.puck.data.root_pos_w.torch - self.scene.env_origins
        return {"policy": torch.cat([place[:, :2], self.puck.data.root_lin_vel_w.torch[:, :2]], dim=-1)}

    def _get_rewards(self):
        return -(self.puck.data.root_pos_w.torch - self.scene.env_origins)[:, :2].norm(dim=-1)

    def _get_dones(self):
        none = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        return none, self.episode_length_buf >= self.max_episode_length

    def _reset_idx(self, env_ids):
        super()._reset_idx(env_ids)
        puck = self.scene["puck"]
        pose = puck.data.default_root_pose.torch[env_ids].clone()
        pose[:, :3] += self.scene.env_origins[env_ids]
        pose[:, :2] += torch.rand((len(env_ids), 2), device=self.device) - 0.5
        puck.write_root_pose_to_sim_index(root_pose=pose, env_ids=env_ids)
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Framing:
    """The robots of one task in the pictures of all envs at all moments."""

    pictures: int
    cut: int
    """Pictures with a robot that touches the edge, or has a part outside."""
    least: float
    """Length of the smallest robot in a picture, as a share of the picture's smaller side."""
    median: float
    prepare_ms: float
    """Time that it took to aim the camera after the reset, milliseconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=[*TASKS, PUCK])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--num-envs", type=int, default=4)
    parser.add_argument("--pictures", type=Path, help="folder for a picture of each task")
    arguments = parser.parse_args()
    from rlnb.worker.isaac import isaaclab

    isaaclab.start(asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    source.write_module(rlnb.options.folders, PUCK, PUCK_MODULE, "benchmarks/framing.py")
    framings = {name: framing(rlnb.task(name), arguments) for name in arguments.tasks}
    whole = [name for name, one in framings.items() if not one.cut]
    least = min(one.least for one in framings.values())
    record(
        f"an added camera's picture of {len(framings)} tasks ({', '.join(framings)}), {arguments.num_envs} envs: "
        f"tasks whose robots are whole after the reset and every 5 of {arguments.steps} random steps",
        f"{len(whole)} of {len(framings)}; the smallest robot is {least:.0%} of the picture's smaller side long; "
        f"aiming took {max(one.prepare_ms for one in framings.values()):.0f} ms at most",
        f"all, >= {LEAST_SHARE:.0%}",
        len(whole) == len(framings) and least >= LEAST_SHARE,
    )


def framing(task: rlnb.Task, arguments: argparse.Namespace) -> Framing:
    """Step a task with an added camera and a wider one at the same place; return how its robots are framed."""
    import torch

    from rlnb.worker.actions import actions
    from rlnb.worker.cameras.rig import Plan
    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.isaac.env import environment

    plan = Plan(None, ["rgb", KIND], SIZE)

    def configure(env_cfg: Any) -> None:
        plan.apply(env_cfg)
        if task.id in RAILS:
            hide_rail(getattr(env_cfg.scene, RAILS[task.id]))
        env_cfg.scene.wider = wider(env_cfg.scene.rlnb_preview)

    shots: list[tuple[np.ndarray, np.ndarray]] = []
    task = dataclasses.replace(task, num_envs=arguments.num_envs)
    with environment(task, None, seed=42, device="cpu", configure=configure) as (env, _), torch.inference_mode():
        env.reset(seed=42)
        raw = isaaclab.task_env(env)
        begin_s = time.perf_counter()
        plan.begin(raw)
        prepare_ms = 1000 * (time.perf_counter() - begin_s)
        for step in range(arguments.steps + 1):
            if step:
                env.step(actions(raw, "random"))
            if step % 5 == 0:
                plan.follow(raw)
                shots.append(masks(raw, plan))
        if arguments.pictures:
            save(arguments.pictures / f"{task.id}.png", plan.read(raw, "preview", "rgb").cpu().numpy())
    cut = sum(bool(is_cut(*pair)) for near, wide in shots for pair in zip(near, wide, strict=True))
    lengths = [length(one) / min(SIZE) for near, _ in shots for one in near]
    found = Framing(
        pictures=len(lengths),
        cut=cut,
        least=min(lengths),
        median=statistics.median(lengths),
        prepare_ms=prepare_ms,
    )
    print(f"  {task.id}: {found}", flush=True)
    return found


def hide_rail(robot: Any) -> None:
    """Make the rail of a robot invisible. The pictures need not show all of it."""
    from pxr import UsdGeom

    spawn = robot.spawn.func

    def spawn_without_rail(*arguments: Any, **more: Any) -> Any:
        prim = spawn(*arguments, **more)
        UsdGeom.Imageable(prim.GetChild("slider")).MakeInvisible()
        return prim

    robot.spawn.func = spawn_without_rail


def wider(cfg: Any) -> Any:
    """Return the config of a camera with the same pixels per degree in the middle, and a larger picture around it."""
    import copy

    wide = copy.deepcopy(cfg)
    wide.prim_path, wide.data_types = f"{cfg.prim_path}_wider", [KIND]
    wide.width, wide.height = WIDER * cfg.width, WIDER * cfg.height
    wide.spawn.horizontal_aperture *= WIDER
    return wide


def masks(env: Any, plan: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels of robots in the normal and in the wider pictures, shapes (num_envs, height, width), bool."""
    import numpy as np

    near, wide = plan.sensor(env, "preview", KIND), env.scene.sensors["wider"]
    wide.set_world_poses(near.data.pos_w.torch, near.data.quat_w_ros.torch, convention="ros")
    assets = env.scene.articulations or env.scene.rigid_objects
    names = {label for asset in assets.values() for _, label in asset.cfg.spawn.semantic_tags or ()}

    def of(sensor: Any) -> np.ndarray:
        data = sensor.data
        ids = [int(number) for number, label in data.info[KIND]["idToLabels"].items() if names & {*label.values()}]
        return np.isin(data.output[KIND].torch[..., 0].cpu().numpy(), ids)

    return of(near), of(wide)


def is_cut(near: np.ndarray, wide: np.ndarray) -> bool:
    """Return whether a robot touches the edge of its picture, or has pixels outside of it."""
    height, width = near.shape
    outside = wide.copy()
    outside[height:-height, width:-width] = False
    edges = (near[0], near[-1], near[:, 0], near[:, -1])
    return bool(outside.any() or not near.any() or any(edge.any() for edge in edges))


def length(mask: np.ndarray) -> int:
    """Return the longer side of the rectangle around a mask, in pixels."""
    rows, columns = mask.any(axis=1).nonzero()[0], mask.any(axis=0).nonzero()[0]
    return int(max(rows[-1] - rows[0], columns[-1] - columns[0]) + 1) if rows.size else 0


def save(path: Path, frames: np.ndarray) -> None:
    from PIL import Image

    from rlnb.cameras.grid import tiles

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(tiles(frames, "rgb")).save(path)


if __name__ == "__main__":
    main()
