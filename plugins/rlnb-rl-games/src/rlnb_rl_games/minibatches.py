"""Sizes of minibatches for the envs that there are.

RL-Games wants sizes that divide the batch, the frames of one iteration. An agent config has them for the number of envs
that its task asks for by itself; with fewer, as on a CPU, RL-Games refuses to begin. Such a config means a number of
minibatches: a small batch is learned from in as many updates as a large one, as in RSL-RL and skrl, whose configs state
that number.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from typing import Final

from rlnb_rl_games.config import CentralValue, Params, Settings

logger = logging.getLogger(__name__)

SIZE: Final = "minibatch_size"


def fit(params: Params, num_envs: int, task_num_envs: int, overrides: Collection[str]) -> None:
    """Replace sizes that do not divide the batch, in place: the policy's, and those of a central value function.

    Args:
        params: An agent config's ``params``.
        num_envs: Envs of this rank.
        task_num_envs: Envs that the task asks for by itself.
        overrides: Dotted paths that the user has set in the agent config. A size of the user's own choice is a size:
            the nearest smaller one that divides the batch replaces it.
    """
    for path, settings in _sized(params):
        horizon = params["config"]["horizon_length"]
        batch, size = horizon * num_envs, settings[SIZE]
        if batch % size == 0:
            continue
        count = 1 if f"{path}.{SIZE}" in overrides else max(1, horizon * task_num_envs // size)
        sequence = params["config"].get("seq_length", 4) if "rnn" in params["network"] else 1
        # No size at all: fewer frames than a sequence, which RL-Games refuses with a message of its own.
        sizes = [other for other in range(sequence, batch + 1, sequence) if batch % other == 0] or [batch]
        settings[SIZE] = max((other for other in sizes if other <= min(size, batch // count)), default=sizes[0])
        logger.warning(
            "%s.%s=%d does not divide the batch of %d envs * %d steps: %d is used, %d minibatches",
            path,
            SIZE,
            size,
            num_envs,
            horizon,
            settings[SIZE],
            batch // settings[SIZE],
        )


def _sized(params: Params) -> Iterator[tuple[str, Settings | CentralValue]]:
    """Yield the path and the value of each part that has a size of minibatches."""
    settings = params["config"]
    if SIZE in settings:
        yield "params.config", settings
    central_value = settings.get("central_value_config")
    if central_value and SIZE in central_value:
        yield "params.config.central_value_config", central_value
