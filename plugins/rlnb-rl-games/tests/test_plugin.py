"""The plugin's description of RL-Games matches its agent config and RL-Games' checkpoint names."""

import re
from typing import Any

from rlnb_rl_games.plugin import RL_GAMES

from rlnb.worker.isaac.isaaclab import default_agent


def value(config: dict[str, Any], path: str) -> Any:
    for key in path.split("."):
        config = config[key]
    return config


def test_the_default_agent_has_all_keys_rlnb_sets() -> None:
    config = default_agent(RL_GAMES)
    for path in RL_GAMES.overruled:
        assert value(config, path) is not None
    assert value(config, f"params.config.{RL_GAMES.horizon_key}") == 24


def test_numbers_of_the_default_agent_are_numbers() -> None:
    """YAML 1.1 reads 5e-4, without a decimal point, as text."""
    settings = default_agent(RL_GAMES)["params"]["config"]
    assert settings["learning_rate"] == 5e-4
    assert settings["bounds_loss_coef"] == 1e-4


def test_the_name_of_a_checkpoint_has_its_epoch() -> None:
    match = re.search(RL_GAMES.checkpoint_pattern, "last_cartpole_direct_ep_60_rew__-0.51_.pth")
    assert match is not None
    assert match[1] == "60"
