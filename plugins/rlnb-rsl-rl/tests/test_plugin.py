"""The description of RSL-RL matches its own agent configs and checkpoint names."""

import importlib.util
import re

import pytest
from rlnb_rsl_rl.plugin import RSL_RL

from rlnb.hooks.plugins import agent_config


def test_the_name_of_a_checkpoint_has_its_iteration() -> None:
    match = re.search(RSL_RL.checkpoint_pattern, "model_149.pt")
    assert match is not None
    assert match[1] == "149"


@pytest.mark.isaaclab
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_the_default_agent_has_the_keys_rlnb_sets() -> None:
    config = agent_config(RSL_RL.default_agent)
    assert getattr(config, RSL_RL.horizon_key) == 24
    assert all(hasattr(config, path) or path.startswith("teacher.") for path in RSL_RL.overruled)
    assert config.actor.distribution_cfg is not None
    assert config.critic.distribution_cfg is None, "only the actor samples"
