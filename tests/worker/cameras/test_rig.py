"""Cameras of real Isaac Lab on a CPU: their pictures, and findings about cameras that are really faulty."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rlnb
from rlnb.configs.cameras import CameraPose
from rlnb.protocol import requests
from rlnb.records.camera_files import Frame, FrameReader, FrameRequest
from rlnb.records.layout import RunDir
from rlnb.results import Preview
from rlnb.simulation.pool import pool
from rlnb.tasks import source
from rlnb.worker.cameras.rig import check_data_types, copied

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

STATE_TASK = "Isaac-Cartpole-Direct"
CAMERA_TASK = "Isaac-Cartpole-Camera-Direct"

MANY_CAMERAS = """
import torch
import isaaclab.sim as sim_utils
from isaaclab.sensors import TiledCamera, TiledCameraCfg
from isaaclab.utils import configclass
from isaaclab_newton.renderers import NewtonWarpRendererCfg
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg, CartpoleSceneCfg


def camera(name, rot=(0.0, 0.0, 0.0, 1.0), far=20.0, **more):
    return TiledCameraCfg(
        prim_path="{ENV_REGEX_NS}/" + name,
        offset=TiledCameraCfg.OffsetCfg(pos=(-4.0, 0.0, 2.0), rot=rot, convention="world"),
        renderer_cfg=NewtonWarpRendererCfg(),
        data_types=["rgb", "depth"],
        width=48,
        height=32,
        spawn=sim_utils.PinholeCameraCfg(focal_length=24.0, horizontal_aperture=20.955, clipping_range=(0.1, far)),
        **more,
    )


@configclass
class SceneCfg(CartpoleSceneCfg):
    good = camera("good")
    stale = camera("stale", update_period=1.0e6)
    sky = camera("sky", rot=(0.0, -0.7071, 0.0, 0.7071))
    short = camera("short", far=0.2)
    moved = camera("moved")


@configclass
class SeenCfg(CartpoleEnvCfg):
    scene: SceneCfg = SceneCfg(num_envs=4, env_spacing=4.0)


class SeenEnv(CartpoleEnv):
    def _reset_idx(self, env_ids):
        super()._reset_idx(env_ids)
        # Move the camera after it was made, as an event that randomises its pose would.
        eyes = self.scene.env_origins + torch.tensor([-1.5, -1.5, 2.0])
        self.scene.sensors["moved"].set_world_poses_from_view(eyes, self.scene.env_origins + torch.tensor([0, 0, 2.0]))
"""

RUNAWAY = """
from isaaclab.utils import configclass
from isaaclab_tasks.core.locomotion.ant.ant_direct_env import AntEnv
from isaaclab_tasks.core.locomotion.ant.ant_direct_env_cfg import AntEnvCfg


@configclass
class RunawayCfg(AntEnvCfg):
    pass


class RunawayEnv(AntEnv):
    def _pre_physics_step(self, actions):
        super()._pre_physics_step(actions)
        pose = self.robot.data.root_pose_w.torch.clone()
        pose[:, 0] += 0.5
        self.robot.write_root_pose_to_sim_index(root_pose=pose)
"""


def newton() -> Any:
    from isaaclab_newton.renderers import NewtonWarpRendererCfg

    return NewtonWarpRendererCfg()


def test_a_copy_has_ids_instead_of_colours() -> None:
    from isaaclab.sensors import CameraCfg
    from isaaclab_ov.renderers import OVRTXRendererCfg
    from isaaclab_physx.renderers import IsaacRtxRendererCfg

    kinds = ["semantic_segmentation", "instance_segmentation"]
    for renderer, data_types in (
        (IsaacRtxRendererCfg(), [*kinds, "instance_id_segmentation_fast"]),
        (OVRTXRendererCfg(), kinds),
        (newton(), kinds),
    ):
        cfg = CameraCfg(prim_path="/World/camera", width=4, height=4, renderer_cfg=renderer)
        layouts = copied(cfg, data_types, "copy_").renderer_cfg.supported_output_types()
        assert [layouts[kind].channels for kind in data_types] == [1] * len(data_types)
        assert cfg.renderer_cfg.colorize_semantic_segmentation, "the task's own camera keeps its colours"


def test_a_renderer_that_names_no_data_types_is_checked_by_isaac_lab() -> None:
    from isaaclab.renderers.renderer_cfg import RendererCfg

    check_data_types("wrist", SimpleNamespace(renderer_cfg=RendererCfg(renderer_type="custom")), ["smell"])
    with pytest.raises(rlnb.RlnbError, match="cannot give 'smell': NewtonWarpRenderer renders"):
        check_data_types("wrist", SimpleNamespace(renderer_cfg=newton()), ["smell"])


@pytest.fixture(scope="module")
def many(folder: Path) -> Preview:
    source.write_module(rlnb.options.folders, "Many-Cameras", MANY_CAMERAS, "test.ipynb")
    return rlnb.preview("Many-Cameras", steps=20, every=5, data_types=["rgb", "depth", "semantic_segmentation"])


def test_real_faults_are_found_and_no_others(many: Preview) -> None:
    assert {(finding.camera, finding.data_type, finding.fault) for finding in many.findings} == {
        ("stale", "rgb", "stale"),
        ("stale", "depth", "stale"),
        ("stale", "semantic_segmentation", "stale"),
        ("sky", "rgb", "blank"),
        ("sky", "depth", "blank"),
        ("short", "rgb", "blank"),
        ("short", "depth", "blank"),
    }
    assert {finding.envs for finding in many.findings} == {(0, 1, 2, 3)}


def test_a_clip_has_every_requested_frame_and_its_time(many: Preview) -> None:
    assert many.clip["good"]["rgb"].shape == (5, 4, 32, 48, 3)
    assert many.times_s == pytest.approx([0.0, 5 / 60, 10 / 60, 15 / 60, 20 / 60])
    assert many.state.shape[:2] == (5, 4)
    assert np.abs(many.state[-1] - many.state[0]).max() > 0.05


def test_a_copy_is_moved_along_with_a_camera_that_the_env_moves(many: Preview) -> None:
    """Depth is read from the task's own camera, ids from its copy: both have to show the same robot."""
    ids, depth = many.frames["moved"]["semantic_segmentation"][..., 0], many.frames["moved"]["depth"][..., 0]
    names = many.labels["moved/semantic_segmentation"]
    (robot,) = [number for number, name in names.items() if name == "cartpole"]
    seen = ids == robot
    assert seen.any(axis=(1, 2)).all()
    assert (depth[seen] < 3.5).all()  # the robot is 2 m from the moved camera, but 4 m from its pose in the config
    assert not np.array_equal(many.frames["moved"]["rgb"], many.frames["good"]["rgb"])


def test_only_the_requested_envs_are_shown(folder: Path, many: Preview) -> None:
    two = rlnb.preview("Many-Cameras", cameras=["good"], envs=[3, 1], steps=20, data_types=["rgb"])
    assert two.envs == (3, 1)
    assert (two.frames["good"]["rgb"] == many.frames["good"]["rgb"][[3, 1]]).all()


def test_an_added_camera_follows_robots_that_walk_away(folder: Path) -> None:
    source.write_module(rlnb.options.folders, "Runaway", RUNAWAY, "test.ipynb")
    shown = rlnb.preview("Runaway", num_envs=2, steps=40, every=10, data_types=["semantic_segmentation"])
    (camera,) = shown.clip
    names = shown.labels[f"{camera}/semantic_segmentation"]
    (robot,) = [number for number, name in names.items() if name == "robot"]
    seen = (shown.clip[camera]["semantic_segmentation"][..., 0] == robot).sum(axis=(2, 3))  # times, envs
    assert (seen > 0.5 * seen[0]).all(), "20 m away the robot is about as large as before"


def test_an_added_camera_shows_the_robots_whole_and_large(folder: Path) -> None:
    shown = rlnb.preview("Isaac-Ant-Direct", num_envs=2, steps=20, every=10, data_types=["semantic_segmentation"])
    names = shown.labels["preview/semantic_segmentation"]
    (robot,) = [number for number, name in names.items() if name == "robot"]
    masks = (shown.clip["preview"]["semantic_segmentation"][..., 0] == robot).reshape(-1, 120, 160)
    for mask in masks:
        rows, columns = mask.any(axis=1).nonzero()[0], mask.any(axis=0).nonzero()[0]
        assert min(rows[0], columns[0]) > 0
        assert rows[-1] < 119
        assert columns[-1] < 159
        assert max(rows[-1] - rows[0], columns[-1] - columns[0]) > 0.5 * 120


def test_an_added_camera_can_be_aimed_and_tells_its_place(folder: Path) -> None:
    eye, target = (3.0, 0.5, 1.5), (0.0, 0.0, 1.0)
    free = rlnb.preview(STATE_TASK, num_envs=2, steps=0)
    aimed = rlnb.preview(STATE_TASK, num_envs=2, steps=0, eye=eye, target=target)
    assert aimed.place == CameraPose(eye=eye, target=target)
    assert "eye=(3.0, 0.5, 1.5), target=(0.0, 0.0, 1.0)" in repr(aimed)
    assert free.place is not None
    again = rlnb.preview(STATE_TASK, num_envs=2, steps=0, eye=free.place.eye, target=free.place.target)
    assert not np.array_equal(free.frames["preview"]["rgb"], aimed.frames["preview"]["rgb"])
    first, second = (one.frames["preview"]["rgb"][0].astype(int) for one in (free, again))
    assert (np.abs(first - second) < 9).mean() > 0.95, "the first env's place leads to the same picture"
    with pytest.raises(rlnb.CheckError, match="eye= aims a camera that rlnb adds, but the task has its own"):
        rlnb.preview(CAMERA_TASK, eye=eye)


@pytest.mark.slow
def test_the_warm_simulator_gives_the_same_numbers_as_a_fresh_process(folder: Path) -> None:
    rlnb.preview(STATE_TASK, num_envs=2, steps=2)  # the warm simulator has handled another request before
    arguments = {"num_envs": 3, "steps": 10, "data_types": ["rgb", "depth", "normals", "semantic_segmentation"]}
    living, fresh = (rlnb.preview(CAMERA_TASK, warm=warm, **arguments) for warm in (True, False))  # type: ignore[arg-type]
    assert (living.state == fresh.state).all()
    for data_type, frames in living.clip["tiled_camera"].items():
        assert np.array_equal(frames, fresh.clip["tiled_camera"][data_type]), data_type


@pytest.mark.slow
def test_a_policy_acts_in_a_preview_of_its_run(folder: Path) -> None:
    run = rlnb.train(STATE_TASK, num_envs=16, max_iterations=2, device="cpu").wait(timeout_s=300)
    same = {"num_envs": 2, "steps": 10, "seed": 3}
    shown, again = rlnb.preview(run, **same), rlnb.preview(STATE_TASK, policy=run.id, **same)  # type: ignore[arg-type]
    random, zero = (rlnb.preview(STATE_TASK, actions=kind, **same) for kind in ("random", "zero"))  # type: ignore[arg-type]
    assert (shown.state == again.state).all()
    assert (shown.state[0] == zero.state[0]).all()
    assert not (shown.state[-1] == zero.state[-1]).all()
    assert not (shown.state[-1] == random.state[-1]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "camera", "data_type"),
    [(STATE_TASK, "preview", "rgb"), (CAMERA_TASK, "tiled_camera", "rgb")],
)
def test_a_training_shows_its_first_envs_while_it_runs(folder: Path, task: str, camera: str, data_type: str) -> None:
    run = rlnb.train(task, num_envs=8, max_iterations=10_000, device="cpu", warm=False)
    reader = FrameReader(RunDir(run.path))
    reader.want(FrameRequest(cameras=(), data_types=(), num_envs=3, size=(80, 60), share=0.5))
    seen: list[Frame] = []
    deadline = time.monotonic() + 240
    while len(seen) < 5 and time.monotonic() < deadline:
        reader.still_looking()
        frame = reader.newest()
        seen += [frame] if frame else []
        time.sleep(0.1)
    assert run.state in ("starting", "running"), run.logs()
    still = run.cameras(num_envs=2)  # as in a report
    run.cancel()
    assert [frame.error for frame in seen] == [""] * 5
    first, last = (frame.images[f"{camera}/{data_type}"] for frame in (seen[0], seen[-1]))
    assert len(first) == 3
    assert not np.array_equal(first, last), "robots move"
    assert first.std() > 1, "the robots are visible"
    assert not np.array_equal(last[0], last[1]), "the envs differ"
    assert still.width > 2 * 80  # type: ignore[union-attr]
    while run.state in ("starting", "running"):
        time.sleep(0.2)
    with pytest.raises(rlnb.RlnbError, match=r"has ended \(cancelled\)\. Use rlnb\.preview\(run\)"):
        run.cameras()


def test_requests_that_cannot_be_met_are_errors_and_the_simulator_lives_on(folder: Path, many: Preview) -> None:
    living = rlnb.simulator().wait()
    pid = living.pid
    with pytest.raises(rlnb.CheckError, match=r"No camera named 'moves'.*Did you mean 'moved'"):
        rlnb.preview("Many-Cameras", cameras=["moves"])
    with pytest.raises(rlnb.CheckError, match=r"\[4\] is not in 0 to 3"):
        rlnb.preview("Many-Cameras", envs=[0, 4])
    with pytest.raises(rlnb.RlnbError, match="cannot give 'motion_vectors': NewtonWarpRenderer renders"):
        rlnb.preview("Many-Cameras", cameras=["good"], data_types=["motion_vectors"])
    source.write_module(rlnb.options.folders, "Broken", "import nothing_of_the_kind\n", "test.ipynb")
    with pytest.raises(rlnb.RlnbError, match="nothing_of_the_kind"):
        rlnb.preview("Broken")
    assert (living.pid, living.state) == (pid, "idle")
    assert living.memory_gib > 0.5
    assert living.requests > 0


def test_kernels_are_compiled_ahead_and_assets_are_copied(folder: Path, tmp_path: Path) -> None:
    living = rlnb.simulator()
    assert living.compile(STATE_TASK) > 0
    task = rlnb.task(STATE_TASK)
    compilation = pool.request(requests.Compile(task=task), warm=True)
    assert list(Path(compilation.cache).rglob("*")), "the compiled kernels are there"
    mirrored = pool.request(requests.Mirror(tasks=(task,), folder=str(tmp_path)), warm=True)
    assert mirrored.missing == {}
    assert (tmp_path / "Isaac/IsaacLab/Robots/Classic/Cartpole/cartpole.usd").is_file()


@pytest.mark.parametrize(
    ("code", "end"),
    [("os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV"), ("os._exit(3)", "ended with status 3")],
)
def test_a_crash_of_the_simulator_is_reported_and_a_new_one_starts(folder: Path, code: str, end: str) -> None:
    source.write_module(rlnb.options.folders, "Crash", f"import os, signal\n{code}\n", "t")
    living = rlnb.simulator().wait()
    first = living.pid
    with pytest.raises(rlnb.WorkerError, match=rf"ended: the worker {end}, while it worked on '\w+'\. The end of its"):
        rlnb.preview("Crash")
    assert living.state == "none"
    assert rlnb.simulator().wait().pid != first
