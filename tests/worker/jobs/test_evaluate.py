"""The joint outcome of a step of several agents, and the episodes that an evaluation counts."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.plugin import Library, Manifest
from rlnb.worker.actions import joint
from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.isaaclab import Registered
from rlnb.worker.isaac.success import Successes
from rlnb.worker.jobs import evaluate, export

torch = pytest.importorskip("torch")


def test_rewards_of_several_agents_add_up_and_an_episode_ends_when_all_end() -> None:
    reward = {"cart": torch.tensor([1.0, 2.0, 3.0]), "pole": torch.tensor([0.5, 0.5, 0.5])}
    terminated = {"cart": torch.tensor([True, True, False]), "pole": torch.tensor([True, False, False])}
    truncated = {"cart": torch.tensor([False, True, True]), "pole": torch.tensor([False, True, False])}
    total, ended, timed_out = joint(reward, terminated, truncated)
    assert total.tolist() == [1.5, 2.5, 3.5]
    assert ended.tolist() == [True, False, False]
    assert timed_out.tolist() == [False, True, False]
    assert (ended | timed_out).dtype == torch.bool


def test_a_step_of_one_agent_is_unchanged() -> None:
    outcome = torch.tensor([1.0]), torch.tensor([True]), torch.tensor([False])
    assert all(ours is theirs for ours, theirs in zip(joint(*outcome), outcome, strict=True))


def test_observations_whose_terms_are_not_joined_are_recorded_by_their_names(tmp_path: Path) -> None:
    tape = evaluate._Tape(4)
    observations = {"policy": {"joints": torch.ones(2, 3), "clock": torch.zeros(2, 1)}, "critic": torch.ones(2, 5)}
    for _ in range(3):
        tape.keep(observations, lambda obs: (obs["policy"]["joints"][:, :1], obs["critic"][:, :1]))
    tape.write(tmp_path / "rollout.npz")
    with np.load(tmp_path / "rollout.npz") as rows:
        shapes = {name: rows[name].shape for name in rows.files}
    assert shapes == {
        "obs.policy.joints": (4, 3),
        "obs.policy.clock": (4, 1),
        "obs.critic": (4, 5),
        "actions.0": (4, 1),
        "actions.1": (4, 1),
    }


def test_an_env_that_ends_episodes_without_its_reset_method_is_an_error_instead_of_an_endless_evaluation() -> None:
    env = SimpleNamespace(num_envs=2, device="cpu", episode_length_buf=torch.tensor([7, 3]), extras={})
    successes = Successes(env, Registered(gym_id="Demo", success=None, agents={}))
    episodes, none = evaluate.Episodes(env, 1, successes), torch.tensor([False, False])
    one, reward = torch.tensor([True, False]), torch.ones(2)
    episodes.stepped(reward, none, none)
    with episodes.ending(torch.tensor([0])):
        pass
    episodes.stepped(reward, one, none)
    assert (episodes.returns, episodes.lengths) == ([2.0], [7])
    with pytest.raises(rlnb.RlnbError, match=r"SimpleNamespace.step does not call SimpleNamespace\._reset_idx"):
        episodes.stepped(reward, one, none)


CELL = """
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

played = []

@configclass
class OnceCfg(CartpoleEnvCfg):
    def play_mode(self):
        played.append(1)
        if len(played) > 1:
            raise ValueError("play_mode() works once")

TASK, ENV = OnceCfg, CartpoleEnv
"""


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_a_config_that_does_not_resolve_is_an_error_before_the_episodes(root: Path) -> None:
    task = rlnb.define("Once", CELL)
    run = rlnb.train(task, num_envs=4, max_iterations=1, device="cpu").wait(300)
    with pytest.raises(rlnb.RunError, match=r"play_mode\(\) works once"):
        run.evaluate(episodes=4, num_envs=4, mode="play", record=4)
    assert not run.jobs[-1].folder.rollout.exists(), "no episode was played for nothing"


@pytest.mark.parametrize("job", [evaluate.evaluate, export.export])
def test_the_asset_root_is_set_before_a_backend_imports_isaac_lab(
    job: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def stop(library: Library) -> None:
        order.append("backend")
        raise InterruptedError

    manifest = Manifest(run_id="r", created="", task=rlnb.Task(id="Demo"), library="rl_games")
    run, folder = SimpleNamespace(path=tmp_path), SimpleNamespace(path=tmp_path)
    for module in (evaluate, export):
        monkeypatch.setattr(module, "open_job", lambda _: SimpleNamespace(run=run, manifest=manifest, folder=folder))
        monkeypatch.setattr(module, "options_of", lambda *_: SimpleNamespace(checkpoint="model.pt", mode="play"))
        monkeypatch.setattr(module, "refuse_not_finite", lambda _: None)
    monkeypatch.setattr(plugins, "new_backend", stop)
    monkeypatch.setattr(isaaclab, "start", lambda root: order.append("root"))
    with pytest.raises(InterruptedError):
        job(tmp_path)
    assert order == ["root", "backend"]
