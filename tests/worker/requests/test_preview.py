"""Data that a preview reads from an env. The env is a stand-in for Isaac Lab's; real ones: tests/worker/cameras."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rlnb.protocol.requests import Clip, Preview
from rlnb.spec import Task
from rlnb.worker.cameras.rig import Camera, Plan
from rlnb.worker.requests import preview as requests_preview
from rlnb.worker.requests.preview import _labels, _outside_the_pictures, _write, shoot

MakeEnv = Callable[..., Any]

NUM_ENVS = 3


def tensor(values: torch.Tensor) -> Any:
    return SimpleNamespace(torch=values)


def env_of(**output: torch.Tensor) -> Any:
    """Return an env with one camera."""
    state = {
        "articulation": {"robot": {"joint_position": torch.arange(6.0).reshape(3, 2), "joint_velocity": torch.ones(3)}},
        "gripper": {"none": None},
    }
    renderer = SimpleNamespace(renderer_type="newton_warp")
    cfg = SimpleNamespace(prim_path="/World/envs/env_.*/wrist", renderer_cfg=renderer, spawn=None)
    info = {"semantic_segmentation": {"idToLabels": {0: {"class": "BACKGROUND"}, 1: {"class": "cube"}}}}
    data = SimpleNamespace(output={name: tensor(values) for name, values in output.items()}, info=info)
    scene = SimpleNamespace(
        articulations={},
        rigid_objects={},
        env_regex_ns="/World/envs/env_.*",
        sensors={"wrist": SimpleNamespace(cfg=cfg, data=data)},
        get_state=lambda *, is_relative: state if is_relative else {},
    )
    return SimpleNamespace(num_envs=NUM_ENVS, device="cpu", scene=scene)


def plan_of(*data_types: str) -> Plan:
    plan = Plan(None, None, (4, 4))
    path = "{ENV_REGEX_NS}/wrist"
    plan.cameras["wrist"] = Camera(own_path=path, own_types=data_types, twin=None, twin_types=())
    return plan


def test_a_shot_has_the_requested_envs_and_the_state_without_velocities() -> None:
    rgb = torch.arange(NUM_ENVS, dtype=torch.uint8).reshape(3, 1, 1, 1).expand(3, 4, 4, 3)
    shot = shoot(env_of(rgb=rgb), plan_of("rgb"), [2, 0])
    assert shot["wrist/rgb"].shape == (2, 4, 4, 3)
    assert shot["wrist/rgb"][:, 0, 0, 0].tolist() == [2, 0]
    assert shot["state"].tolist() == [[4.0, 5.0], [0.0, 1.0]]


def test_depth_that_hit_nothing_is_inf_and_the_env_keeps_its_own_picture() -> None:
    depth = torch.zeros((NUM_ENVS, 2, 2, 1))
    depth[0] = 1.5
    shot = shoot(env_of(depth=depth), plan_of("depth"), None)
    assert np.isfinite(shot["wrist/depth"]).all(axis=(1, 2, 3)).tolist() == [True, False, False]
    assert depth[1].max() == 0.0


def test_shots_become_one_array_per_output_with_time_first(tmp_path: Path) -> None:
    shots = [{"state": np.zeros((2, 1)), "wrist/rgb": np.full((2, 4, 4, 3), n, np.uint8)} for n in range(5)]
    with np.load(_write(tmp_path / "frames.npz", shots)) as arrays:
        assert arrays["wrist/rgb"].shape == (5, 2, 4, 4, 3)
        assert arrays["wrist/rgb"][:, 0, 0, 0, 0].tolist() == [0, 1, 2, 3, 4]


def test_only_segmentations_have_labels() -> None:
    ids = torch.zeros((NUM_ENVS, 2, 2, 1), dtype=torch.int32)
    env = env_of(rgb=ids, semantic_segmentation=ids)
    labels = _labels(env, plan_of("rgb", "semantic_segmentation"))
    assert labels == {"wrist/semantic_segmentation": {"0": "BACKGROUND", "1": "cube"}}


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An env whose picture is as bright as the number of its steps, with a camera that the plan finds."""
    env = env_of(rgb=torch.zeros((NUM_ENVS, 4, 4, 3), dtype=torch.uint8))
    env.step_dt, env.resets = 0.1, []
    none = torch.zeros(NUM_ENVS, dtype=torch.bool)

    def step(action: str) -> tuple[Any, ...]:
        assert action == "action of obs"
        env.scene.sensors["wrist"].data.output["rgb"].torch += 1
        return "obs", torch.zeros(NUM_ENVS), none, none, {}

    @contextlib.contextmanager
    def acting(request: Preview, configure: Callable[[Any], None]) -> Iterator[Any]:
        yield env, lambda obs: f"action of {obs}", lambda ended: None
        env.resets.append("closed")

    env.step, env.reset = step, lambda *, seed=None: (env.resets.append(seed), ("obs", {}))[1]
    monkeypatch.setattr(requests_preview, "acting", acting)
    monkeypatch.setattr(requests_preview.isaaclab, "task_env", lambda env: env)
    monkeypatch.setattr(requests_preview, "Plan", lambda *_: plan_of("rgb"))
    return env


@pytest.mark.parametrize(("steps", "every", "moments"), [(6, None, [0, 6]), (6, 2, [0, 2, 4, 6]), (5, 2, [0, 2, 4, 5])])
def test_the_first_frame_is_sent_before_the_clip_of_all_frames(
    env: Any, tmp_path: Path, steps: int, every: int | None, moments: list[int]
) -> None:
    request = Preview(
        task=Task(id="Demo"), num_envs=3, steps=steps, every=every, size=(4, 4), seed=7, out=str(tmp_path)
    )
    firsts: list[Clip] = []
    with contextlib.ExitStack() as after:
        clip = requests_preview.preview(request, tell=firsts.append, after=after)
        assert env.resets == [7, None], "the env is reset once more, and closed after the answer"
    assert env.resets == [7, None, "closed"]
    (first,) = firsts
    assert (first.times_s, [*first.seconds]) == ((0.0,), ["make", "first"])
    assert clip.times_s == tuple(step * 0.1 for step in moments)
    assert [*clip.seconds] == ["make", "first", "total"]
    with np.load(clip.file) as arrays:
        assert arrays["wrist/rgb"][:, 0, 0, 0, 0].tolist() == moments


def test_without_steps_the_first_frame_is_the_answer(env: Any, tmp_path: Path) -> None:
    request = Preview(task=Task(id="Demo"), num_envs=3, steps=0, size=(4, 4), out=str(tmp_path))
    firsts: list[Clip] = []
    with contextlib.ExitStack() as after:
        clip = requests_preview.preview(request, tell=firsts.append, after=after)
    assert firsts == []
    assert clip.times_s == (0.0,)
    assert clip.seconds["total"] == clip.seconds["first"]


def copies(env: Any, own: tuple[str, ...], twin: tuple[str, ...]) -> Plan:
    """Return a plan of a camera ``own`` and its copy."""
    plan = Plan(None, None, (4, 4))
    path = "{ENV_REGEX_NS}/own"
    plan.cameras["own"] = Camera(own_path=path, own_types=own, twin="rlnb_own", twin_types=twin)
    return plan


def test_rtx_settles_after_a_reset(rtx_env: MakeEnv) -> None:
    env = rtx_env(observed=("own",), own=["rgb"], rlnb_own=["normals"])
    plan = copies(env, ("rgb",), ("normals",))
    env.reset()
    assert env.scene.sensors["own"].data.output["rgb"].torch[0, 0, 0, 2] == 0, "the first picture is noisy"
    plan.begin(env)
    shot = shoot(env, plan, None)
    assert shot["own/rgb"][0, 0, 0].tolist() == [0, 0, 3]
    assert shot["own/normals"][0, 0, 0].tolist() == [0, 0, 3]
    assert plan.noisy(env) == ("own",)


@pytest.mark.parametrize("renderer_type", ["isaac_rtx", "newton_warp"])
def test_the_copy_of_a_camera_that_the_env_moves_shows_the_pose_of_the_same_step(
    rtx_env: MakeEnv, renderer_type: str
) -> None:
    env = rtx_env(renderer_type, ("own",), own=["rgb"], rlnb_own=["normals"])
    plan = copies(env, ("rgb",), ("normals",))
    env.reset()
    plan.begin(env)
    shoot(env, plan, None)
    pose = torch.ones((2, 4))
    env.scene.sensors["own"].set_world_poses(pose[:, :3], pose, "ros")
    env.step("action")
    assert shoot(env, plan, None)["own/normals"][0, 0, 0, :2].tolist() == [1, 1]


@pytest.mark.parametrize(("frames", "noise"), [(1, 1), (8, 3)])
def test_a_picture_after_many_steps_takes_several_frames_but_that_of_the_policy_stays(
    rtx_env: MakeEnv, frames: int, noise: int
) -> None:
    env = rtx_env(observed=("own",), own=["rgb"], rlnb_own=["normals"])
    plan = copies(env, ("rgb",), ("normals",))
    env.reset()
    plan.begin(env)
    for _ in range(5):
        env.step("action")
    shot = shoot(env, plan, None, frames)
    assert shot["own/rgb"][0, 0, 0].tolist() == [5, 0, 0], "the frame that the observations of this step were made of"
    assert shot["own/normals"][0, 0, 0].tolist() == [5, 0, noise]


def test_newton_renders_once_when_it_is_read(rtx_env: MakeEnv) -> None:
    env = rtx_env("newton_warp", own=["rgb"], rlnb_own=["normals"])
    plan = copies(env, ("rgb",), ("normals",))
    env.reset()
    plan.begin(env)
    shoot(env, plan, None, frames=8)
    env.step("action")
    shoot(env, plan, None, frames=8)
    assert env.sim.generation == 0
    assert {tuple(sensor.frame.torch.tolist()) for sensor in env.scene.sensors.values()} == {(2, 2)}
    assert plan.noisy(env) == ()


@pytest.mark.parametrize(("every", "settled"), [(1, False), (2, True), (None, True)])
def test_a_preview_lets_rtx_settle_for_pictures_that_are_steps_apart(
    rtx_env: MakeEnv, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, every: int | None, settled: bool
) -> None:
    env = rtx_env(observed=("own",), own=["rgb"], rlnb_own=["normals"])

    @contextlib.contextmanager
    def acting(request: Preview, configure: Callable[[Any], None]) -> Iterator[Any]:
        yield env, lambda obs: f"action of {obs}", lambda ended: None

    monkeypatch.setattr(requests_preview, "acting", acting)
    monkeypatch.setattr(requests_preview.isaaclab, "task_env", lambda env: env)
    monkeypatch.setattr(requests_preview, "Plan", lambda *_: copies(env, ("rgb",), ("normals",)))
    request = Preview(task=Task(id="Demo"), num_envs=2, steps=4, every=every, size=(4, 4), out=str(tmp_path))
    with contextlib.ExitStack() as after:
        clip = requests_preview.preview(request, tell=lambda first: None, after=after)
    assert clip.noisy == ("own",)
    with np.load(clip.file) as arrays:
        pixels = arrays["own/normals"][:, 0, 0, 0]
    assert pixels[0].tolist() == [0, 0, 3]
    assert pixels[-1, 0] == 4
    assert (pixels[1:, 2] == 3).all() == settled


@pytest.mark.parametrize(
    ("first", "last", "count"),
    [([0, 1, 2], [0, 1], 2), ([0, 1], [1, 2], 0), ([0, 1, 2, 3], [], 0), ([0, 1], [0, 1], 2), ([0], [0], 0)],
)
def test_a_camera_that_shows_nothing_at_both_moments_in_half_of_the_envs_is_a_finding(
    first: list[int], last: list[int], count: int
) -> None:
    found = list(_outside_the_pictures({"front": first}, {"front": last}, 4))
    expected = f"The camera 'front' shows no body of a robot or object in {count} of 4 envs."
    assert [finding.what for finding in found] == ([expected] if count else [])
