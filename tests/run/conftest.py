"""Fixtures for the tests of several runs."""

import pytest

import rlnb


@pytest.fixture(scope="module")
def three_once(echo_root):
    runs = []
    for seed, iteration_s in enumerate((0.01, 0.02, 0.01)):
        run = rlnb.train("Echo", library="echo", max_iterations=3, seed=seed, agent={"iteration_s": iteration_s})
        runs.append(run.wait())
    return runs


@pytest.fixture
def three(copied, three_once):
    """Three runs with different seeds; the second has slower iterations."""
    return copied(three_once)
