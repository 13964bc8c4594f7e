"""The contract of an RL library, tested with skrl in JAX."""

import importlib.util

import pytest

from rlnb.testing import LibraryConformance

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed here"),
]


class TestSkrlJax(LibraryConformance):
    library = "skrl_jax"
