"""The policy of RL-Games' SAC for rollouts and export acts as in RL-Games' own training."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.hooks import plugins
from rlnb.hooks.plugins import agent_config

pytestmark = pytest.mark.skipif(importlib.util.find_spec("rl_games") is None, reason="RL-Games is not installed here")


def network(normalises: bool, seed: int) -> Any:
    """Return RL-Games' own module of SAC, with random weights and statistics."""
    import torch
    from rl_games.algos_torch.model_builder import ModelBuilder

    torch.manual_seed(seed)
    params = agent_config(plugins.library("rl_games_sac").default_agent)["params"]
    sizes = {"obs_dim": 3, "action_dim": 2, "actions_num": 2, "input_shape": (3,), "normalize_input": normalises}
    module = ModelBuilder().load(params).build(sizes)
    for parameter in module.sac_network.actor.parameters():
        torch.nn.init.normal_(parameter)
    if normalises:
        module.train()
        module.norm_obs(torch.randn(100, 3) * 3 + 1)
    return module.eval()


@pytest.mark.parametrize("normalises", [True, False])
def test_actions_are_those_of_the_training(normalises: bool, tmp_path: Path) -> None:
    import torch
    from gym.spaces import Box
    from rlnb_rl_games.sac_actor import SacActor, SacPolicy

    trained = network(normalises, seed=1)
    state = {"actor": trained.sac_network.actor.state_dict()}
    if normalises:
        state["running_mean_std"] = trained.running_mean_std.state_dict()
    torch.save(state, tmp_path / "of_ep_1_.pth")
    player: Any = SimpleNamespace(model=network(normalises, seed=2), action_space=Box(-2.0, 2.0, (2,)))
    agent_cfg: Any = {"params": {"env": {"clip_observations": 5.0}}}
    actor = SacActor(player, agent_cfg, tmp_path / "of_ep_1_.pth", "cpu")
    obs = torch.linspace(-7.0, 7.0, 300).reshape(100, 3)
    with torch.no_grad():
        inside = trained.norm_obs(obs.clamp(-5.0, 5.0))
        expected = 2.0 * trained.actor(inside).mean
        actions = actor(obs)
        assert torch.allclose(actions, expected, atol=1e-6)
        assert actions.abs().max() > 1.0, "the actions are scaled to their range"
        sampling = SacPolicy(actor, lambda groups: groups["policy"], deterministic=False)
        one, other = sampling({"policy": obs}), sampling({"policy": obs})
        assert not torch.equal(one, other)
        assert torch.equal(
            SacPolicy(actor, lambda groups: groups["policy"], deterministic=True)({"policy": obs}), actions
        )
