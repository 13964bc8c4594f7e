"""rlnb's conformance tests for RL libraries, run with the real skrl."""

import importlib.util

import pytest

from rlnb.testing import LibraryConformance

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


class TestSkrl(LibraryConformance):
    library = "skrl"


class TestSkrlMappo(LibraryConformance):
    library = "skrl_mappo"
    task = "Isaac-Pendulum-MARL-Direct"


class TestSkrlIppo(LibraryConformance):
    library = "skrl_ippo"
    task = "Isaac-Pendulum-MARL-Direct"


class TestSkrlSac(LibraryConformance):
    library = "skrl_sac"
    iterations = 12  # the time of an episode
    agent = {"agent.gradient_steps": 1}
    unlogged = frozenset({"value_loss"})


class TestSkrlTd3(LibraryConformance):
    library = "skrl_td3"
    iterations = 12  # the time of an episode
    agent = {"agent.gradient_steps": 1}
    unlogged = frozenset({"value_loss", "entropy", "action_std"})
