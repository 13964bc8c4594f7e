"""Sizes of Stable-Baselines3's agent config that do not start, each with a fix after which none is left."""

import re
from typing import Any

import pytest

from rlnb.hooks import plugins

USUAL: dict[str, Any] = {"n_steps": 16, "n_minibatches": 4, "n_epochs": 5}
RAW = {"normalize_advantage": False}


@pytest.mark.parametrize(
    ("chosen", "num_envs", "expected"),
    [
        ({}, 1, {}),
        ({"n_steps": 1}, 8, {}),
        ({"n_steps": 1}, 4, {"n_minibatches": 2}),
        ({"n_steps": 1}, 1, {"n_steps": 2, "n_minibatches": 1}),
        ({"n_steps": -1, "n_epochs": 0}, 2, {"n_steps": 16, "n_epochs": 5}),
        ({"n_minibatches": 0}, 2, {"n_minibatches": 1}),
        ({"n_minibatches": None, "batch_size": 1}, 2, {"batch_size": 32}),
        ({"n_minibatches": None, "batch_size": 100_000}, 2, {}),
        ({"n_minibatches": None, "batch_size": 1, **RAW}, 2, {}),
        ({"n_minibatches": None, "batch_size": 0, **RAW}, 2, {"batch_size": 32}),
        ({"n_steps": 1, "n_minibatches": 1, **RAW}, 1, {}),
        ({"n_minibatches": 32, **RAW}, 2, {}),
        ({"n_minibatches": 33, **RAW}, 2, {"n_minibatches": 32}),
    ],
)
def test_the_fix_is_the_nearest_size_that_fits(chosen: dict[str, Any], num_envs: int, expected: dict[str, int]) -> None:
    found = list(plugins.size_problems(plugins.library("sb3"), {**USUAL, **chosen}, USUAL, num_envs))
    fixed = {path: int(size) for one in found for path, size in re.findall(r"(\w+)=(\d+)", one.fix)}
    assert fixed == expected
    assert not list(plugins.size_problems(plugins.library("sb3"), {**USUAL, **chosen, **fixed}, USUAL, num_envs))
