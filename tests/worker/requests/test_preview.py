"""What is read of an env for a preview. The env is a stand-in for Isaac Lab's; real ones: tests/worker/cameras."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from rlnb.worker.cameras.rig import Camera, Plan
from rlnb.worker.requests.preview import _labels, _write, shoot

NUM_ENVS = 3


def tensor(values: torch.Tensor) -> Any:
    return SimpleNamespace(torch=values)


def env_of(**output: torch.Tensor) -> Any:
    """Return an env with one camera."""
    state = {
        "articulation": {"robot": {"joint_position": torch.arange(6.0).reshape(3, 2), "joint_velocity": torch.ones(3)}},
        "gripper": {"none": None},
    }
    renderer = SimpleNamespace()
    cfg = SimpleNamespace(prim_path="/World/envs/env_.*/wrist", renderer_cfg=renderer, spawn=None)
    info = {"semantic_segmentation": {"idToLabels": {0: {"class": "BACKGROUND"}, 1: {"class": "cube"}}}}
    data = SimpleNamespace(output={name: tensor(values) for name, values in output.items()}, info=info)
    scene = SimpleNamespace(
        env_regex_ns="/World/envs/env_.*",
        sensors={"wrist": SimpleNamespace(cfg=cfg, data=data)},
        get_state=lambda *, is_relative: state if is_relative else {},
    )
    return SimpleNamespace(num_envs=NUM_ENVS, scene=scene)


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
