"""Adapts minibatch sizes to the actual number of envs.

RL-Games requires minibatch sizes that divide the batch, the frames of one iteration. The sizes in an agent config fit
the task's default number of envs; with fewer envs, as on a CPU, RL-Games refuses to start. This module keeps the number
of minibatches instead of their size, so that a small batch gets as many updates as a large one. RSL-RL and skrl do the
same: their configs have the number of minibatches.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from rlnb_rl_games.config import CentralValue, Params, Settings
from rlnb_rl_games.sizes import fits, fitting

logger = logging.getLogger(__name__)

SIZE: Final = "minibatch_size"


def fit(params: Params, num_envs: int, task_num_envs: int) -> None:
    """Replace, in place, minibatch sizes that do not divide the batch: the policy's and the central value function's.

    Args:
        params: An agent config's ``params``.
        num_envs: Number of envs of this rank.
        task_num_envs: Default number of envs of the task.
    """
    for path, settings in _sized(params):
        horizon = params["config"]["horizon_length"]
        batch, size = horizon * num_envs, settings[SIZE]
        sequence = params["config"].get("seq_length", 4) if "rnn" in params["network"] else 1
        if fits(batch, size, sequence):
            continue
        count = max(1, horizon * task_num_envs // size)
        settings[SIZE] = fitting(batch, min(size, batch // count), sequence)
        logger.warning(
            "%s.%s=%d does not fit the batch of %d envs * %d steps; using %d (%d minibatches) instead",
            path,
            SIZE,
            size,
            num_envs,
            horizon,
            settings[SIZE],
            batch // settings[SIZE],
        )


def _sized(params: Params) -> Iterator[tuple[str, Settings | CentralValue]]:
    """Yield the path and the settings of each part that has a minibatch size."""
    settings = params["config"]
    if SIZE in settings:
        yield "params.config", settings
    central_value = settings.get("central_value_config")
    if central_value and SIZE in central_value:
        yield "params.config.central_value_config", central_value
