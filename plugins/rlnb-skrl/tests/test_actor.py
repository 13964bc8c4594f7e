"""The exported module acts like skrl: it preprocesses observations and returns the most likely actions."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
import torch
from rlnb_skrl.actor import Actor
from rlnb_skrl.part import Part
from rlnb_skrl.select import Selection

from rlnb import RlnbError


class Policy(torch.nn.Module):
    """A policy of skrl whose mean actions are ten times its observations."""

    def compute(self, inputs: dict[str, Any], role: str) -> tuple[torch.Tensor, dict[str, Any]]:
        assert role == "policy"
        return 10.0 * inputs["observations"], {}


class Halved(torch.nn.Module):
    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return obs / 2.0


def part(policy: Any, **modules: torch.nn.Module) -> Part:
    return Part(name="", policy=policy, modules=modules, scheduler=None)


def test_observations_are_preprocessed_if_the_agent_preprocesses_them() -> None:
    obs = torch.tensor([[1.0, 2.0]])
    assert Actor(part(Policy(), observation_preprocessor=Halved()), Selection())(obs).tolist() == [[5.0, 10.0]]
    assert Actor(part(Policy()), Selection())(obs).tolist() == [[10.0, 20.0]]


def test_actions_are_clipped_to_bounds() -> None:
    bounds = torch.tensor([-15.0]), torch.tensor([15.0])
    assert Actor(part(Policy()), Selection(bounds=bounds))(torch.tensor([[1.0, 2.0]])).tolist() == [[10.0, 15.0]]


def test_an_agent_without_a_policy_is_refused() -> None:
    with pytest.raises(RlnbError, match="no policy to export"):
        Actor(part(None), Selection())
