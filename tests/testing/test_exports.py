"""The comparison of exports with a recorded policy: sound exports pass, and each fault is found with its fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlnb.backend import export_module
from rlnb.testing.exports import assert_exported

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

import torch

STEPS, ENVS = 130, 8
FORMATS = ("torchscript", "onnx")
EVAL_MODE = "Export the policy in eval mode with its normaliser, and with the scale and clip of its actions"
ENDED = np.zeros((STEPS, ENVS), bool)
ENDED[50, 2:5] = ENDED[51, 0] = True


class Actor(torch.nn.Module):
    """A policy with a normaliser, which clips its actions."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 2)
        self.dropout = torch.nn.Dropout(0.5)
        self.register_buffer("mean", torch.ones(4))

    def forward(self, obs: Any, *state: Any) -> Any:
        return self.dropout(self.linear(obs - self.mean)).clamp(-0.5, 0.5)


class NotNormalised(Actor):
    def forward(self, obs: Any, *state: Any) -> Any:
        return self.dropout(self.linear(obs)).clamp(-0.5, 0.5)


class NotClipped(Actor):
    def forward(self, obs: Any, *state: Any) -> Any:
        return self.dropout(self.linear(obs - self.mean))


class OneRow(Actor):
    def forward(self, obs: Any, *state: Any) -> Any:
        return super().forward(obs[:1])


class Recurrent(Actor):
    """A policy whose state is the sum of its observations in the episode."""

    def forward(self, obs: Any, *state: Any) -> Any:
        total = state[0] + obs
        return super().forward(total[0]), total


class Forgetful(Recurrent):
    def forward(self, obs: Any, *state: Any) -> Any:
        actions, _ = super().forward(obs, *state)
        return actions, state[0]


def observations() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(STEPS, ENVS, 4)).astype(np.float32)


def expected_of(act: Callable[[Any], Any]) -> np.ndarray:
    with torch.no_grad():
        return np.stack([act(torch.from_numpy(row)).numpy() for row in observations()])


@pytest.mark.parametrize("name", FORMATS)
def test_a_sound_export_passes(tmp_path: Path, name: str) -> None:
    actor = Actor().eval()
    path = export_module(actor, torch.zeros(2, 4), tmp_path, [name])[name]
    assert_exported(name, path, {"obs": observations()}, expected_of(actor), ENDED)


@pytest.mark.parametrize(
    ("name", "exported", "fault"),
    [
        *((name, NotNormalised().eval(), EVAL_MODE) for name in FORMATS),
        *((name, NotClipped().eval(), EVAL_MODE) for name in FORMATS),
        *((name, OneRow().eval(), r"shape \(1, 2\) instead of \(64, 2\). Keep the number of rows") for name in FORMATS),
        ("torchscript", Actor().train(), EVAL_MODE),  # torch's ONNX export always uses eval mode
    ],
)
def test_an_export_that_acts_differently_is_found(tmp_path: Path, name: str, exported: Any, fault: str) -> None:
    path = export_module(exported, torch.zeros(2, 4), tmp_path, [name])[name]
    with pytest.raises(AssertionError, match=fault):
        assert_exported(name, path, {"obs": observations()}, expected_of(Actor().eval()), ENDED)


@pytest.mark.parametrize("name", FORMATS)
def test_large_actions_may_differ_in_their_last_bits(tmp_path: Path, name: str) -> None:
    class Large(Actor):
        def forward(self, obs: Any, *state: Any) -> Any:
            return 100.0 * super().forward(obs)

    actor = Large().eval()
    path = export_module(actor, torch.zeros(2, 4), tmp_path, [name])[name]
    actions = expected_of(actor)
    assert_exported(name, path, {"obs": observations()}, actions * np.float32(1.000005), ENDED)
    with pytest.raises(AssertionError, match=EVAL_MODE):
        assert_exported(name, path, {"obs": observations()}, actions * np.float32(1.00005), ENDED)


def acts_in_order(resets: bool = True) -> np.ndarray:
    """Return the actions of the recurrent policy, whose state is cleared where an episode ends."""
    actor, state, rows = Recurrent().eval(), torch.zeros(1, ENVS, 4), []
    with torch.no_grad():
        for row, ended in zip(observations(), ENDED, strict=True):
            actions, state = actor(torch.from_numpy(row), state)
            rows.append(actions.numpy())
            if resets:
                state = state * ~torch.from_numpy(ended)[:, None]
    return np.stack(rows)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("exported", "policy_resets", "fault"),
    [
        (Recurrent, True, ""),
        (Forgetful, True, "The first 1 steps are equal: pass the recurrent state on"),
        (Recurrent, False, "The first 52 steps are equal: .* reset it where an episode ends"),
    ],
)
def test_a_recurrent_export_is_compared_over_whole_episodes(
    tmp_path: Path, name: str, exported: Any, policy_resets: bool, fault: str
) -> None:
    state = {"sum": torch.zeros(1, 2, 4)}
    path = export_module(exported().eval(), torch.zeros(2, 4), tmp_path, [name], state=state)[name]
    arguments = (name, path, {"obs": observations()}, acts_in_order(policy_resets), ENDED)
    if fault:
        with pytest.raises(AssertionError, match=fault):
            assert_exported(*arguments)
    else:
        assert_exported(*arguments)
