"""The sampler of a sweep whose trials are all chosen before the first one ends."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import optuna

SEED = 0
"""Seed of every kernel, so that a sweep that is continued takes the next points of the same sequence."""


def at_once_sampler(space: Mapping[str, optuna.distributions.BaseDistribution]) -> optuna.samplers.BaseSampler:
    """Return a sampler that needs no result of a trial.

    A grid covers a space of choices: no combination comes twice before each came once. Any other space is covered by a
    scrambled Sobol sequence, more evenly than by random values (Bergstra and Bengio, JMLR 2012, section 5).

    Args:
        space: Distribution of each parameter, by name.
    """
    import optuna

    choices = {
        name: list(one.choices)
        for name, one in space.items()
        if isinstance(one, optuna.distributions.CategoricalDistribution)
    }
    if len(choices) == len(space):
        return optuna.samplers.GridSampler(choices, seed=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.QMCSampler(scramble=True, seed=SEED, warn_independent_sampling=False)
