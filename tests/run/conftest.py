"""Fixtures for the tests of several runs."""

import pytest

import rlnb


@pytest.fixture
def three(root):
    """Three runs with different seeds; the second has slower iterations."""
    runs = []
    for seed, iteration_s in enumerate((0.01, 0.02, 0.01)):
        run = rlnb.train("Echo", library="echo", max_iterations=3, seed=seed, agent={"iteration_s": iteration_s})
        runs.append(run.wait())
    return runs
