"""The spaces that env configs of Isaac Lab describe. No simulation starts."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.contracts.libraries import Space
from rlnb.worker.isaac.spaces import UNKNOWN_SPACES, spaces_of_config

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

TWO = Space(kind="box", shape=(2,))


def direct(observation: Any, action: Any = 1, state: Any = 0) -> Any:
    from isaaclab.envs import DirectRLEnvCfg

    return DirectRLEnvCfg(observation_space=observation, action_space=action, state_space=state)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (4, Space(kind="box", shape=(4,))),
        ([64, 64, 3], Space(kind="box", shape=(64, 64, 3))),
        ({3}, Space(kind="discrete")),
        ([{3}, {2}], Space(kind="multi_discrete")),
        (
            {"a": 2, "b": {4}},
            Space(kind="dict", parts={"a": Space(kind="box", shape=(2,)), "b": Space(kind="discrete")}),
        ),
        ((2, {3}), Space(kind="tuple", parts={"0": TWO, "1": Space(kind="discrete")})),
    ],
)
def test_a_direct_config_names_its_spaces_as_isaac_lab_reads_them(spec: Any, expected: Space) -> None:
    assert spaces_of_config(direct(spec, spec)) == ({"policy": expected}, expected)


def test_a_gymnasium_space_and_a_state_are_known_too() -> None:
    from gymnasium import spaces

    cfg = direct(spaces.Box(-1.0, 1.0, (5,)), spaces.Discrete(3), 7)
    observations = {"policy": Space(kind="box", shape=(5,)), "critic": Space(kind="box", shape=(7,))}
    assert spaces_of_config(cfg) == (observations, Space(kind="discrete"))


@pytest.mark.parametrize("spec", ["four", None, -1, [-3, 2]])
def test_a_space_that_isaac_lab_refuses_is_left_to_isaac_lab(spec: Any) -> None:
    assert spaces_of_config(direct(spec)) == ({}, Space(kind="box", shape=(1,)))


def test_several_agents_have_no_common_space() -> None:
    from isaaclab.envs import DirectMARLEnvCfg

    assert spaces_of_config(DirectMARLEnvCfg()) == UNKNOWN_SPACES


def manager_based(**groups: Any) -> Any:
    from isaaclab.envs import ManagerBasedRLEnvCfg
    from isaaclab.scene import InteractiveSceneCfg
    from isaaclab.sensors import TiledCameraCfg

    scene = InteractiveSceneCfg(num_envs=1, env_spacing=1.0)
    scene.camera = TiledCameraCfg(prim_path="/World/camera", width=64, height=48, spawn=None)
    return ManagerBasedRLEnvCfg(scene=scene, observations=SimpleNamespace(**groups))


def group(*terms: Any, **options: Any) -> Any:
    from isaaclab.managers import ObservationGroupCfg

    cfg = ObservationGroupCfg(**options)
    for number, term in enumerate(terms):
        setattr(cfg, f"term_{number}", term)
    return cfg


def term(name: str, **params: Any) -> Any:
    from isaaclab.managers import ObservationTermCfg, SceneEntityCfg

    def function(env: Any) -> None: ...

    function.__name__ = name
    return ObservationTermCfg(func=function, params={"sensor_cfg": SceneEntityCfg("camera"), **params})


@pytest.mark.parametrize(
    ("terms", "shape"),
    [
        ([("image", {})], (48, 64, 3)),
        ([("image", {"data_type": "distance_to_camera"})], (48, 64, 1)),
        ([("image_rgb", {"channel_first": True, "frame_stack": 2})], (6, 48, 64)),
        ([("image_features", {})], None),
        ([("joint_pos_rel", {})], None),
        ([("image", {}), ("joint_pos_rel", {})], None),
    ],
)
def test_a_picture_alone_in_its_group_has_the_shape_of_its_camera(
    terms: list[tuple[str, dict[str, Any]]], shape: tuple[int, ...] | None
) -> None:
    cfg = manager_based(policy=group(*(term(name, **params) for name, params in terms)), critic=None)
    assert spaces_of_config(cfg) == ({"policy": Space(kind="box", shape=shape)}, Space(kind="box"))


def test_a_group_whose_terms_are_not_joined_is_a_dict() -> None:
    cfg = manager_based(policy=group(term("image"), term("joint_pos_rel"), concatenate_terms=False))
    parts = {"term_0": Space(kind="box", shape=(48, 64, 3)), "term_1": Space(kind="box")}
    assert spaces_of_config(cfg)[0] == {"policy": Space(kind="dict", parts=parts)}


def test_a_picture_of_a_camera_that_the_scene_lacks_has_no_shape() -> None:
    from isaaclab.managers import SceneEntityCfg

    cfg = manager_based(policy=group(term("image", sensor_cfg=SceneEntityCfg("other"))))
    assert spaces_of_config(cfg)[0] == {"policy": Space(kind="box")}
