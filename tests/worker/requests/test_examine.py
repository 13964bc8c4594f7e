"""Twelve mistakes of a task, each named by its preview or its deep check. Real Isaac Lab, on a CPU."""

from __future__ import annotations

import importlib.util
import re
import signal
import threading
import time
from pathlib import Path

import pytest

import rlnb
from rlnb.tasks import source

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

DIRECT = """
import time
import torch
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

@configclass
class Cfg(CartpoleEnvCfg):
    {cfg}

class Env(CartpoleEnv):
    {env}
"""
MANAGER_BASED = """
import torch
from isaaclab.managers import RewardTermCfg
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

def nothing(env):
    return torch.zeros(env.num_envs, device=env.device)

@configclass
class Cfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.rewards.bonus = RewardTermCfg(func=nothing, weight=2.0)
"""
CAMERA = """
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_camera_env import CartpoleCameraEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_camera_env_cfg import CartpoleCameraEnvCfg

@configclass
class Cfg(CartpoleCameraEnvCfg.BaseCartpoleCameraEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.scene.tiled_camera.default.offset.pos = (-5.0, 40.0, 2.0)

class Env(CartpoleCameraEnv):
    pass
"""


def direct(env: str = "pass", cfg: str = "pass") -> str:
    return DIRECT.format(env=env.replace("\n", "\n    "), cfg=cfg)


MISTAKES = {
    "observation": (
        direct("def _get_observations(self):\n    return {'policy': super()._get_observations()['policy'][:, :3]}"),
        r"The observation 'policy' has the shape \(4, 3\), but its space says \(4, 4\)",
    ),
    "state": (
        direct(
            "def _get_observations(self):\n    return {**super()._get_observations(), 'critic': self.joint_pos}",
            "state_space = 7",
        ),
        r"The observation 'critic' has the shape \(4, 2\), but its space says \(4, 7\)",
    ),
    "action": (direct(cfg="action_space = 3"), r"action\.py, line \d+.*|.*(4, 3).*!= .*(4, 1)"),
    "nan": (
        direct(
            "def _get_rewards(self):\n    odd = torch.arange(self.num_envs) == 2\n"
            "    return torch.where(odd, float('nan'), super()._get_rewards())"
        ),
        r"The reward is nan in step 1 \(env 2; 1 of 4 envs\)",
    ),
    "frozen": (
        direct(
            "def _get_observations(self):\n    if not hasattr(self, 'first'):\n"
            "        self.first = super()._get_observations()['policy'].clone()\n    return {'policy': self.first}"
        ),
        r"The observation 'policy' never changed, although bodies or joints moved",
    ),
    "done": (
        direct("def _get_dones(self):\n    ended, cut = super()._get_dones()\n    return torch.ones_like(ended), cut"),
        r"4 of 4 episodes ended in their first step",
    ),
    "memory": (
        direct(
            "def _get_rewards(self):\n    self.kept = [*getattr(self, 'kept', []), torch.rand(1_000_000)]\n"
            "    return super()._get_rewards()"
        ),
        r"The memory grew by [34]\.\d MiB in each of 20 steps",
    ),
    "device": (
        direct(
            "def _get_rewards(self):\n    return super()._get_rewards() + torch.zeros(self.num_envs, device='cuda')"
        ),
        r"device\.py, line \d+, in _get_rewards: \w+Error: .*(NVIDIA|CUDA|cuda)",
    ),
    "reset": (
        direct("def _reset_idx(self, env_ids):\n    while True:\n        time.sleep(0.01)"),
        r"is in .*reset\.py, line \d+, in _reset_idx\. Look for an endless loop",
    ),
    "step": (
        direct("def _get_rewards(self):\n    while True:\n        pass"),
        r"is in .*step\.py, line \d+, in _get_rewards\. Look for an endless loop",
    ),
    "picture": (CAMERA, r"The camera 'tiled_camera' shows no body of a robot or object in 4 of 4 envs"),
}
"""Modules of tasks, and what their preview says."""


def preview_of(folder: Path, name: str, module: str) -> str:
    """Return what a preview of a task says, as a person reads it."""
    source.write_module(rlnb.options.folders, name, module, "test.ipynb")
    try:
        return repr(rlnb.preview(name, num_envs=4, device="cpu"))
    except rlnb.RlnbError as exc:
        return str(exc)


def test_a_sound_task_has_no_findings(folder: Path) -> None:
    source.write_module(rlnb.options.folders, "Sound", direct(), "test.ipynb")
    assert rlnb.preview("Sound", num_envs=4, device="cpu").task_findings == ()
    assert rlnb.check("Sound", deep=True, device="cpu") == []


@pytest.mark.parametrize("name", ["nan", "device"])
def test_a_mistake_is_named_by_the_preview(folder: Path, name: str) -> None:
    module, said = MISTAKES[name]
    assert re.search(said, preview_of(folder, name, module))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MISTAKES if name not in ("nan", "device")])
def test_each_of_twelve_mistakes_is_named_by_the_preview(folder: Path, name: str) -> None:
    module, said = MISTAKES[name]
    assert re.search(said, preview_of(folder, name, module))


@pytest.mark.slow
def test_a_term_without_effect_is_a_note_of_the_deep_check(folder: Path) -> None:
    source.write_module(rlnb.options.folders, "Term", MANAGER_BASED, "test.ipynb")
    (found,) = rlnb.check("Term", deep=True, device="cpu")
    assert found.note
    assert found.what.startswith("The reward term 'bonus' was 0 in all envs and steps")


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.7, 5.0])
def test_after_an_interrupted_endless_loop_a_sound_task_is_shown(folder: Path, after_s: float) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # importing dask_jobqueue.runner changes it
    source.write_module(rlnb.options.folders, "Sound", direct(), "test.ipynb")
    source.write_module(rlnb.options.folders, "Loop", MISTAKES["step"][0], "test.ipynb")
    rlnb.preview("Sound", num_envs=4, device="cpu")
    threading.Timer(after_s, signal.raise_signal, (signal.SIGINT,)).start()
    begin_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        rlnb.preview("Loop", num_envs=4, device="cpu")
    assert time.monotonic() - begin_s < after_s + 2.0
    begin_s = time.monotonic()
    assert rlnb.preview("Sound", num_envs=4, device="cpu").task_findings == ()
    assert time.monotonic() - begin_s < 20.0
