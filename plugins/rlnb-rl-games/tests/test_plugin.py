"""The plugin's description of RL-Games matches its agent config and RL-Games' checkpoint names."""

import fnmatch
import re
from typing import Any

import pytest
from rlnb_rl_games.plugin import RL_GAMES, SAC, rlnb_check

import rlnb
from rlnb.plugins import agent_config
from rlnb.tasks.card import AgentCard, ConfigField, TaskCard


def value(config: dict[str, Any], path: str) -> Any:
    for key in path.split("."):
        config = config[key]
    return config


@pytest.mark.parametrize(("library", "horizon"), [(RL_GAMES, 24), (SAC, 32)])
def test_the_default_agent_has_all_keys_rlnb_sets(library: rlnb.Library, horizon: int) -> None:
    config = agent_config(library.default_agent)
    for path, argument in library.overruled.items():
        assert not argument or value(config, path) is not None, path
    assert value(config, f"params.config.{library.horizon_key}") == horizon


def test_sac_has_its_own_agent_config_and_a_replay_buffer() -> None:
    assert SAC.agent_key == "rl_games_sac_cfg_entry_point"
    assert SAC.checkpoint_companions == ("{stem}.replay_buffer.npz",)
    names = ["nn/last_rlnb_ep_40_rew_12.5.pth", "nn/rlnb.pth"]  # the second, of the best reward, has no buffer
    assert fnmatch.filter(names, SAC.checkpoint_glob) == names[:1]
    assert not SAC.distributed
    assert {"critic_loss", "temperature", "buffer_size"} <= SAC.metrics.keys()
    assert agent_config(SAC.default_agent)["params"]["algo"]["name"] == "sac"


def test_numbers_of_the_default_agent_are_numbers() -> None:
    """YAML 1.1 reads 5e-4, without a decimal point, as text."""
    settings = agent_config(RL_GAMES.default_agent)["params"]["config"]
    assert settings["learning_rate"] == 5e-4
    assert settings["bounds_loss_coef"] == 1e-4


def test_the_name_of_a_checkpoint_has_its_epoch() -> None:
    match = re.search(RL_GAMES.checkpoint_pattern, "last_cartpole_direct_ep_60_rew__-0.51_.pth")
    assert match is not None
    assert match[1] == "60"


@pytest.mark.parametrize(
    ("size", "num_envs", "ranks", "fix"),
    [
        (64, None, 1, None),
        (100, None, 1, 96),
        (100, 25, 1, None),
        (96, None, 2, None),
        (128, None, 2, 96),
        (10_000, 1, 1, 24),
        (16_384, None, 1, None),
        (100, -5, 1, None),
    ],
)
def test_a_minibatch_size_that_does_not_divide_the_frames_is_refused(
    size: int, num_envs: int | None, ranks: int, fix: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "params.config.minibatch_size"
    values = {"params.config.horizon_length": 24, path: 16_384}
    agent = AgentCard(fields={name: ConfigField(type="int", value=value) for name, value in values.items()})
    card = TaskCard(task="Demo", num_envs=16, agents={"rl_games": agent})
    monkeypatch.setattr(rlnb, "task_card", lambda *_, **__: card)
    monkeypatch.setattr("rlnb.simulation.agent.card_of", lambda *_: card)
    task, resources = rlnb.Task(id="Demo", num_envs=num_envs), rlnb.Resources(nproc_per_node=ranks)
    manifest = rlnb.Manifest(
        run_id="r", created="", task=task, library="rl_games", agent={path: size}, resources=resources
    )
    assert [problem.fix for problem in rlnb_check(manifest)] == ([f"Use {path}={fix}."] if fix else [])
