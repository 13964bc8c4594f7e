"""The exported module acts like RL-Games: observations are clipped and normalised, means are clipped and scaled."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
import torch
from rlnb_rl_games.actor import Actor

from rlnb import RlnbError

LOW, HIGH = torch.tensor([-2.0, 0.0]), torch.tensor([2.0, 10.0])


class Network(torch.nn.Module):
    """A stand-in for RL-Games' network, whose mean actions are its first two inputs."""

    def forward(self, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
        return inputs["obs"][:, :2], torch.zeros(2)


class Model(torch.nn.Module):
    def __init__(self, normalises: bool) -> None:
        super().__init__()
        self.a2c_network, self.normalize_input = Network(), normalises
        moments = {"running_mean": torch.full((3,), 1.0), "running_var": torch.full((3,), 4.0)}
        self.running_mean_std = SimpleNamespace(epsilon=0.0, **moments)


def player(*, is_rnn: bool = False, normalises: bool = False, rescales: bool = True) -> SimpleNamespace:
    return SimpleNamespace(
        is_rnn=is_rnn,
        model=Model(normalises),
        clip_actions=rescales,
        actions_low=LOW,
        actions_high=HIGH,
        _preproc_obs=lambda obs: obs,
    )


def config(model: str = "continuous_a2c_logstd", **env: Any) -> Any:
    return {"params": {"algo": {"name": "a2c_continuous"}, "model": {"name": model}, "env": env}}


def test_means_are_clipped_and_scaled_to_the_range_of_the_actions() -> None:
    actions = Actor(player(), config())(torch.tensor([[0.0, 0.0, 9.0], [0.5, -3.0, 9.0]]))
    assert actions.tolist() == [[0.0, 5.0], [1.0, 0.0]]


def test_actions_that_are_not_rescaled_are_clipped_to_the_envs_limit() -> None:
    actions = Actor(player(rescales=False), config(clip_actions=3.0))(torch.tensor([[7.0, -7.0, 0.0]]))
    assert actions.tolist() == [[3.0, -3.0]]


def test_means_are_squashed_as_the_samples_are() -> None:
    actor = Actor(player(rescales=False), config("continuous_a2c_tanh", clip_actions=0.9))
    assert actor(torch.tensor([[0.5, 7.0, 0.0]])).tolist() == [[pytest.approx(math.tanh(0.5)), pytest.approx(0.9)]]


def test_observations_are_clipped_before_they_are_normalised() -> None:
    actor = Actor(player(normalises=True, rescales=False), config(clip_observations=5.0))
    assert actor(torch.tensor([[3.0, 100.0, 0.0]])).tolist() == [[1.0, 2.0]]


def test_the_actor_can_be_traced() -> None:
    obs = torch.rand(4, 3)
    actor = Actor(player(normalises=True), config())
    assert torch.equal(torch.jit.trace(actor, obs[:1])(obs), actor(obs))


@pytest.mark.parametrize(
    ("is_rnn", "env"), [(True, {}), (False, {"concate_obs_groups": False})], ids=["recurrent", "dict of observations"]
)
def test_a_policy_that_cannot_be_exported_is_refused(is_rnn: bool, env: dict[str, bool]) -> None:
    with pytest.raises(RlnbError, match="Only feed-forward policies"):
        Actor(player(is_rnn=is_rnn), config(**env))
