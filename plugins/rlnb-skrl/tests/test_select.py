"""The most likely action of each kind of policy of skrl, in rollouts and in the module for export."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("skrl")
import gymnasium
import torch
from rlnb_skrl.actor import Actor
from rlnb_skrl.part import Part
from rlnb_skrl.select import Selection

ROWS, OBS = 64, 3
NETWORK = [{"name": "net", "input": "OBSERVATIONS", "layers": [8], "activations": "elu"}]
SPACES = {
    "gaussian": gymnasium.spaces.Box(-0.1, 0.1, (2,)),
    "multivariate_gaussian": gymnasium.spaces.Box(-0.1, 0.1, (2,)),
    "categorical": gymnasium.spaces.Discrete(3),
    "multicategorical": gymnasium.spaces.MultiDiscrete([3, 2]),
    "deterministic": gymnasium.spaces.Box(-0.1, 0.1, (2,)),
}


def policy(kind: str, **arguments: Any) -> Any:
    """Return a policy of skrl with random weights, built like in skrl's runner."""
    from skrl.utils.model_instantiators import torch as model_instantiators

    torch.manual_seed(0)
    spaces = {"observation_space": gymnasium.spaces.Box(-1, 1, (OBS,)), "state_space": None}
    build = getattr(model_instantiators, f"{kind}_model")
    made = build(**spaces, action_space=SPACES[kind], device="cpu", network=NETWORK, output="ACTIONS", **arguments)
    made.init_state_dict(role="policy")
    return made


def selection(kind: str, noise: str | None = None, **settings: bool) -> Selection:
    agent = SimpleNamespace(cfg=SimpleNamespace(exploration_noise=noise))
    return Selection.of(agent, {"models": {"policy": settings}}, SPACES[kind], "cpu")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("gaussian", {}),
        ("gaussian", {"clip_actions": True}),
        ("gaussian", {"clip_mean_actions": True}),
        ("multivariate_gaussian", {"clip_actions": True}),
        ("categorical", {}),
        ("multicategorical", {}),
        ("categorical", {"unnormalized_log_prob": False}),
        ("deterministic", {}),
    ],
)
def test_a_rollout_and_an_export_take_the_most_likely_action(kind: str, settings: dict[str, bool]) -> None:
    output = "softmax(ACTIONS)" if settings.get("unnormalized_log_prob") is False else "ACTIONS"
    model, select = policy(kind, **settings), selection(kind, **settings)
    if output != "ACTIONS":
        compute = model.compute
        model.compute = lambda *inputs: (compute(*inputs)[0].softmax(dim=-1), {})
    obs = torch.randn(ROWS, OBS)
    with torch.no_grad():
        rollouts = [select.of_rollout(*model.act({"observations": obs}, role="policy")) for _ in range(2)]
        sampled = [model.act({"observations": obs}, role="policy")[0] for _ in range(2)]
        exported = Actor(Part(name="", policy=model, modules={}, scheduler=None), select)(obs)
    assert torch.equal(*rollouts)
    assert torch.equal(exported, rollouts[0])
    assert torch.equal(*sampled) == (kind == "deterministic"), "the policy itself still samples"
    assert exported.shape == sampled[0].shape
    if settings.get("clip_actions") or settings.get("clip_mean_actions"):
        assert exported.abs().max() == pytest.approx(0.1), "some means are out of bounds"
    if isinstance(SPACES[kind], gymnasium.spaces.Box):
        return
    assert exported.dtype == torch.int64
    for column, count in enumerate(select.sizes):
        taken = []
        for choice in range(count):
            other = exported.clone()
            other[:, column] = choice
            with torch.no_grad():
                taken.append(model.act({"observations": obs, "taken_actions": other}, role="policy")[1]["log_prob"])
        assert torch.equal(torch.cat(taken, dim=-1).argmax(dim=-1), exported[:, column]), "no action is more likely"


def test_an_agent_with_exploration_noise_clips_its_actions() -> None:
    bounds = selection("deterministic", noise="GaussianNoise").bounds
    assert bounds is not None
    assert [bound.tolist() for bound in bounds] == [pytest.approx([-0.1, -0.1]), pytest.approx([0.1, 0.1])]
    assert selection("deterministic").bounds is None
