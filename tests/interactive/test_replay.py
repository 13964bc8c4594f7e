"""``run.replay()`` with real Isaac Lab on a CPU."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import rlnb
from rlnb import options
from rlnb.results import EnvStep
from rlnb.simulation.pool import pool
from rlnb.tasks import source

NUM_ENVS, ENV, STEP = 16, 5, 69
TASK = f"""
import torch
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

@configclass
class SlowCfg(CartpoleEnvCfg):
    def __post_init__(self):
        self.episode_length_s = 0.5

class SlowEnv(CartpoleEnv):
    clock = 0

    def _get_rewards(self):
        self.clock += 1
        reward = super()._get_rewards() + torch.rand(self.num_envs)
        if self.clock == {STEP + 1}:
            reward[{ENV}] = float("inf")
        return reward
"""


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[rlnb.Run]:
    monkeypatch.setattr(options, "warm", True)
    source.write_module(options.folders, "Slow", TASK, "test.ipynb")
    run = rlnb.train("Slow", library="rsl_rl", num_envs=NUM_ENVS, max_iterations=20, device="cpu")
    with pytest.raises(rlnb.RunError):
        run.wait(300)
    yield run
    pool.shut_down()


@pytest.mark.isaaclab
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_recorded_steps_are_repeated_bit_by_bit_through_resets_and_random_numbers(run: rlnb.Run) -> None:
    flight = run.flight
    assert flight is not None
    assert (flight.step, flight.replay_from) == (STEP, 32)
    replay = run.replay()
    step = replay.to()
    assert isinstance(step, EnvStep)
    assert np.isfinite(step["rewards"]).all()
    assert replay.next_step == STEP
    step = replay.step()
    assert isinstance(step, EnvStep)
    assert np.flatnonzero(np.isinf(step["rewards"])).tolist() == [ENV]
    np.testing.assert_array_equal(
        step["observations/policy"], flight.arrays["observation/policy"][STEP - flight.first_step]
    )
    assert replay.differences == {}
    assert replay.compared == 31
    assert "31 repeated steps were equal to the record" in repr(replay)
    assert replay.missing == ()
    replay.flight = dataclasses.replace(flight, what="<script>alert(1)</script>")
    assert "&lt;script&gt;" in replay._repr_html_()
    assert replay["clock"] == np.asarray(STEP + 1)
    picture = replay.picture([ENV])
    assert np.asarray(picture).std() > 1.0

    replay.to(40)
    replay.step(np.ones((NUM_ENVS, 1)))
    assert replay.differences == {}, "steps with other actions are not compared"
    replay.reset()
    replay.step(steps=40)
    assert replay.differences == {}
    with pytest.raises(rlnb.RlnbError, match="recorded steps that are left"):
        replay.step(steps=40)
    replay._values["reward"][2, ENV] += 1.0  # a record that the repeated steps do not equal
    replay.reset()
    replay.step(steps=40)
    assert replay.differences == {"rewards": (flight.first_step + 2, 1.0)}
    replay._values["reward"][2, ENV] = np.nan
    replay.differences.clear()
    replay.reset()
    replay.step(steps=40)
    assert replay.differences == {"rewards": (flight.first_step + 2, np.inf)}, "a nan does not differ by 0"
    replay.close()
