"""The plugin's description of RL-Games matches its agent config and RL-Games' checkpoint names."""

import fnmatch
import re
from typing import Any

import pytest
from rlnb_rl_games.plugin import RL_GAMES, SAC

from rlnb.hooks.plugins import agent_config
from rlnb.plugin import Library


def value(config: dict[str, Any], path: str) -> Any:
    for key in path.split("."):
        config = config[key]
    return config


@pytest.mark.parametrize(("library", "horizon"), [(RL_GAMES, 24), (SAC, 32)])
def test_the_default_agent_has_all_keys_rlnb_sets(library: Library, horizon: int) -> None:
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
    assert RL_GAMES.checkpoint_iteration(60, 24) == 59
