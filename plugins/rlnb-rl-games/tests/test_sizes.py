"""Sizes of RL-Games' agent config that do not fit each other, each with a fix after which none is left."""

import re
from typing import Any

import pytest

from rlnb.hooks import plugins

HORIZON, SIZE, SEQUENCE = (f"params.config.{name}" for name in ("horizon_length", "minibatch_size", "seq_length"))
CENTRAL = "params.config.central_value_config.minibatch_size"
USUAL: dict[str, Any] = {HORIZON: 16, SIZE: 16_384, "params.config.mini_epochs": 8}
RECURRENT = {"params.network.rnn.name": "lstm"}


@pytest.mark.parametrize(
    ("chosen", "num_envs", "expected"),
    [
        ({}, 1, {}),
        ({HORIZON: 1}, 1, {HORIZON: 2}),
        ({HORIZON: 0, "params.config.mini_epochs": 0}, 2, {HORIZON: 16, "params.config.mini_epochs": 8}),
        ({SIZE: 0}, 2, {SIZE: 16_384}),
        ({SIZE: 1}, 2, {}),
        ({HORIZON: 1, SIZE: 1, "params.config.normalize_advantage": False}, 1, {}),
        ({f"{SIZE}_per_env": 0}, 2, {}),
        ({f"{CENTRAL}_per_env": 0}, 2, {f"{CENTRAL}_per_env": 1}),
        ({f"{CENTRAL}_per_env": 0, CENTRAL: 8}, 2, {}),
        ({SIZE: 64}, 16, {}),
        ({SIZE: 100}, 16, {SIZE: 64}),
        ({SIZE: 10_000}, 1, {SIZE: 16}),
        ({SIZE: 16, HORIZON: 17}, 1, {SIZE: 17}),
        ({**RECURRENT, HORIZON: 10}, 2, {HORIZON: 8}),
        ({**RECURRENT, SIZE: 6}, 3, {SIZE: 4}),
        ({**RECURRENT, SIZE: 8, SEQUENCE: 8}, 3, {}),
    ],
)
def test_the_fix_is_the_nearest_size_that_fits(chosen: dict[str, Any], num_envs: int, expected: dict[str, int]) -> None:
    found = list(plugins.size_problems(plugins.library("rl_games"), {**USUAL, **chosen}, USUAL, num_envs))
    fixed = {path: int(size) for one in found for path, size in re.findall(r"([\w.]+)=(\d+)", one.fix)}
    assert fixed == expected
    assert not list(plugins.size_problems(plugins.library("rl_games"), {**USUAL, **chosen, **fixed}, USUAL, num_envs))
