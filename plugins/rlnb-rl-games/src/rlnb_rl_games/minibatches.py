"""Sizes of minibatches for the envs that there are.

RL-Games wants sizes that divide the batch, the frames of one iteration. An agent config has them for the number of envs
that its task asks for by itself; with fewer, as on a CPU, RL-Games refuses to begin. What such a config means is into
how many minibatches a batch is cut: a small batch is learned from in as many updates as a large one, as in RSL-RL and
skrl, whose configs say the number.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

logger = logging.getLogger(__name__)

SIZE = "minibatch_size"


def fit(params: Mapping[str, Any], num_envs: int, own_num_envs: int, asked: Mapping[str, Any]) -> None:
    """Replace sizes that do not divide the batch, in place: the policy's, and those of a central value function.

    Args:
        params: An agent config's ``params``.
        num_envs: Envs of this rank.
        own_num_envs: Envs that the task asks for by itself.
        asked: Overrides of the agent config by dotted path. A size of a person's own choice is a size: the nearest
            smaller one is taken that divides the batch.
    """
    for path, config in _sized(params):
        horizon = params["config"]["horizon_length"]
        batch, wanted = horizon * num_envs, config[SIZE]
        if batch % wanted == 0:
            continue
        count = 1 if f"{path}.{SIZE}" in asked else max(1, horizon * own_num_envs // wanted)
        sequence = params["config"].get("seq_length", 4) if "rnn" in params["network"] else 1
        # No size at all: fewer frames than a sequence, which RL-Games refuses with a word of its own.
        sizes = [size for size in range(sequence, batch + 1, sequence) if batch % size == 0] or [batch]
        config[SIZE] = max((size for size in sizes if size <= min(wanted, batch // count)), default=sizes[0])
        logger.warning(
            "%s.%s=%d does not divide the batch of %d envs * %d steps: %d is used, %d minibatches",
            path,
            SIZE,
            wanted,
            num_envs,
            horizon,
            config[SIZE],
            batch // config[SIZE],
        )


def _sized(params: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    config = params["config"]
    for path, part in (
        ("params.config", config),
        ("params.config.central_value_config", config.get("central_value_config")),
    ):
        if part and SIZE in part:
            yield path, part
