"""Env configs of real Isaac Lab, as a training has them and after ``play_mode()``. No simulation is started."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.configs import tree

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

NOISY = """
from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

@configclass
class NoisyCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.observations.policy.enable_corruption = True
        params = {"velocity_range": {"x": (-1.0, 1.0)}}
        self.events.push = EventTermCfg(
            func=mdp.push_by_setting_velocity, mode="interval", interval_range_s=(1.0, 2.0), params=params
        )

    def play_mode(self):
        super().play_mode()
        self.episode_length_s = 1.0
        self.events.push = None
"""


def task_of(folder: Path, source: str = NOISY, **overrides: Any) -> rlnb.Task:
    path = folder / "noisy.py"
    path.write_text(source)
    return rlnb.Task(id="noisy", source=str(path), overrides=overrides)


def configs(task: rlnb.Task) -> tuple[Any, Any]:
    """Return the env config in each mode, as it reaches the env."""
    from rlnb.worker.isaac.env import configured

    return configured(task, None, mode="play")[1], configured(task, None)[1]


def notes(task: rlnb.Task) -> tuple[str, ...]:
    from rlnb.worker.isaac.env import play_notes

    assert play_notes(task, None, "train") == ()
    return play_notes(task, None, "play")


def test_play_mode_is_that_of_the_config_and_the_number_of_envs_is_the_requested_one(tmp_path: Path) -> None:
    task = rlnb.Task(id="noisy", source=task_of(tmp_path).source, num_envs=64)
    play, train = configs(task)
    assert (play.episode_length_s, play.events.push) == (1.0, None)
    assert train.episode_length_s == 5.0
    assert train.events.push is not None
    assert [cfg.observations.policy.enable_corruption for cfg in (play, train)] == [False, True]
    assert [cfg.scene.num_envs for cfg in (play, train)] == [64, 64], "play_mode() makes at most 50"
    assert notes(task) == ()


def test_an_override_is_stronger_than_play_mode_as_in_isaac_lab(tmp_path: Path) -> None:
    from isaaclab_tasks.utils import resolve_task_config

    from rlnb.worker.isaac import isaaclab

    task = task_of(tmp_path, **{"episode_length_s": 3.0, "observations.policy.enable_corruption": True})
    play, _ = configs(task)
    stock, _ = resolve_task_config(
        isaaclab.register(task).gym_id,
        None,
        play_mode=True,
        overrides=["env.episode_length_s=3.0", "env.observations.policy.enable_corruption=True"],
    )
    assert (play.episode_length_s, play.observations.policy.enable_corruption, play.events.push) == (3.0, True, None)
    ours, theirs = tree.snapshot(play), tree.snapshot(stock)
    assert {path for path in ours if ours[path] != theirs[path]} <= {"scene.num_envs", "sim.device", "seed"}
    length, corruption = notes(task)
    assert length.startswith("play_mode() sets episode_length_s=1.0, but the override episode_length_s=3.0")
    assert "observations.policy.enable_corruption=False, but" in corruption


def test_an_override_of_a_part_that_play_mode_removes_has_no_effect_and_is_named(tmp_path: Path) -> None:
    task = task_of(tmp_path, **{"events.push.interval_range_s": [5.0, 6.0], "decimation": 4})
    play, train = configs(task)
    assert (play.events.push, play.decimation) == (None, 4)
    assert train.events.push.interval_range_s == (5.0, 6.0)
    (removed,) = notes(task)
    assert removed.startswith("play_mode() removes events.push.interval_range_s, so the override")


def test_an_override_that_no_mode_has_is_refused(tmp_path: Path) -> None:
    task = task_of(tmp_path, **{"events.pushes.interval_range_s": [5.0, 6.0]})
    with pytest.raises(rlnb.RlnbError, match=r"'pushes' is not one of .*Did you mean 'push'\?"):
        configs(task)


def test_a_play_mode_that_fails_is_named_with_its_line_and_a_fix(tmp_path: Path) -> None:
    task = task_of(tmp_path, NOISY.replace("episode_length_s = 1.0", "terrain.generator.num_rows = 5"))
    wanted = r'Correct it, or use mode="train" for the env of the training\. .*noisy\.py, line \d+, in play_mode: Attr'
    with pytest.raises(rlnb.RlnbError, match=wanted):
        configs(task)
    from rlnb.worker.isaac.env import configured

    assert configured(task, None)[1].episode_length_s == 5.0


def test_a_config_without_play_mode_says_so(tmp_path: Path) -> None:
    from isaaclab.envs import ManagerBasedRLEnvCfg

    task = task_of(tmp_path, NOISY.replace("super().play_mode()", "").replace("    def play_mode", "    def other"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(ManagerBasedRLEnvCfg, "play_mode")
        play, train = configs(task)
        assert play.to_dict() == train.to_dict()
        (sentence,) = notes(task)
    assert sentence.startswith("NoisyCfg has no play_mode(), so the env is that of the training.")


def test_a_release_without_play_mode_is_refused_for_play_only() -> None:
    from rlnb.worker.isaac import release

    def resolve_task_config(task: str, overrides: list[str]) -> None: ...

    release.require_argument(resolve_task_config, "overrides", "rlnb")
    with pytest.raises(rlnb.RlnbError, match=r"resolve_task_config\(play_mode=\) is not in isaaclab .*, and mode="):
        release.require_argument(resolve_task_config, "play_mode", "mode='play'")
