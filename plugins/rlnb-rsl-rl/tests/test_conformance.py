"""The contract of an RL library, tested with the real library."""

import importlib.util

import pytest

from rlnb.testing import LibraryConformance

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


class TestRslRl(LibraryConformance):
    library = "rsl_rl"
    agent = {"save_interval": 2}
