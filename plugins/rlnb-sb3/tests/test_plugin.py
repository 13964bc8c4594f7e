"""The description of Stable-Baselines3 matches its own agent configs and checkpoint names."""

import re

from rlnb_sb3.plugin import SB3

from rlnb.hooks.plugins import agent_config


def test_the_default_agent_has_all_keys_rlnb_sets() -> None:
    config = agent_config(SB3.default_agent)
    assert config.keys() >= SB3.overruled.keys()
    assert config[SB3.horizon_key] == 24


def test_the_name_of_a_checkpoint_has_its_iteration() -> None:
    match = re.search(SB3.checkpoint_pattern, "model_6.pt")
    assert match is not None
    assert match[1] == "6"
    assert SB3.checkpoint_iteration(6, 24) == 5
