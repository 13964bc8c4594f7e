"""Tests of rlnb.worker.flight.recorder."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from rlnb.worker.flight import recorder as rewind_module
from rlnb.worker.flight.recorder import Rewind, random_state, set_random_state
from tests.worker.flight.test_snapshot import NUM_ENVS, Env

torch = pytest.importorskip("torch")
pytest.importorskip("isaaclab")


@pytest.mark.parametrize(("count", "first"), [(0, None), (1, 0), (8, 0), (16, 0), (17, 8), (24, 8), (25, 16)])
def test_between_one_and_two_periods_can_be_repeated(count: int, first: int | None) -> None:
    env = Env()
    rewind, actions = Rewind(env), torch.zeros(NUM_ENVS, 2)
    for step in range(count):
        env.clock = step
        rewind.before_step(actions.fill_(step), every=8)  # a library may reuse the memory of its actions
    begin, arrays = rewind.arrays()
    assert begin == first
    if first is not None:
        assert arrays["variable/.clock"] == first
        assert arrays["action/"].shape == (count - first, NUM_ENVS, 2)
        assert arrays["action/"][:, 0, 0].tolist() == [*range(first, count)]
        assert len(arrays["random"]) == count - first


def test_actions_of_several_agents_are_kept_by_agent() -> None:
    rewind = Rewind(Env())
    rewind.before_step({"cart": torch.zeros(NUM_ENVS, 1), "pole": torch.ones(NUM_ENVS, 3)}, every=8)
    arrays = rewind.arrays()[1]
    assert arrays["action/cart"].shape == (1, NUM_ENVS, 1)
    assert arrays["action/pole"].shape == (1, NUM_ENVS, 3)


def test_random_numbers_are_repeated() -> None:
    state = random_state("cpu").numpy()
    first = torch.rand(3)
    set_random_state(state, "cpu")
    np.testing.assert_array_equal(first, torch.rand(3))


def test_an_env_with_a_large_state_is_recorded_without_a_snapshot(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rewind_module, "MOST_REWIND_BYTES", 40)
    rewind = Rewind(Env())
    with caplog.at_level(logging.INFO):
        rewind.before_step(torch.zeros(NUM_ENVS, 2), every=8)
    assert rewind.arrays() == (None, {})
    assert "A snapshot of the env has 0 MiB" in caplog.text


def test_an_env_without_a_readable_state_is_recorded_without_a_snapshot(caplog: pytest.LogCaptureFixture) -> None:
    env = Env()
    del env.sim
    rewind = Rewind(env)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            rewind.before_step(torch.zeros(NUM_ENVS, 2), every=8)
    assert rewind.arrays() == (None, {})
    assert len(caplog.records) == 1
    assert "cannot be replayed" in caplog.text
