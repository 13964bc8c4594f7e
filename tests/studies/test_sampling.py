"""The sampler of trials that are all chosen before the first one ends."""

import pytest

from rlnb.studies.trials import at_once_sampler

optuna = pytest.importorskip("optuna")


def proposed(space, count, study=None):
    """Return the values of trials none of which has ended."""
    study = study or optuna.create_study()
    study.sampler = at_once_sampler(space)
    return [study.ask(dict(space)).params for _ in range(count)]


def test_every_combination_of_choices_comes_once():
    space = {
        "seed": optuna.distributions.CategoricalDistribution([0, 1, 2]),
        "agent.size": optuna.distributions.CategoricalDistribution(["small", "large"]),
    }
    assert len({tuple(sorted(values.items())) for values in proposed(space, 6)}) == 6


def test_a_range_is_covered_evenly():
    space = {"agent.goal": optuna.distributions.FloatDistribution(0.0, 1.0)}
    values = [values["agent.goal"] for values in proposed(space, 33)[1:]]  # the first one is random
    counts = [sum(low <= value < low + 0.125 for value in values) for low in (0.125 * k for k in range(8))]
    assert counts == [4] * 8


def test_a_later_kernel_takes_the_next_points():
    space = {"agent.goal": optuna.distributions.FloatDistribution(0.0, 1.0)}
    study = optuna.create_study()
    values = [one["agent.goal"] for one in (*proposed(space, 5, study), *proposed(space, 5, study))]
    assert len(set(values)) == 10
