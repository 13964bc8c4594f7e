"""The guard of evaluations on a stand-in for Isaac Lab's env; with the real one: test_isaaclab."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.errors import NotFiniteError
from rlnb.worker.flight.guard import Guard
from rlnb.worker.flight.snapshot import WIDEST

torch = pytest.importorskip("torch")
pytest.importorskip("isaaclab")
NUM_ENVS = 4


class Step:
    """The values of an env after a step: a robot with two joints, two reward terms, vectors and depth pictures."""

    def __init__(self) -> None:
        self.joints, self.terms = torch.ones(NUM_ENVS, 2), torch.ones(NUM_ENVS, 2)
        self.policy, self.actions = torch.ones(NUM_ENVS, 3), torch.ones(NUM_ENVS, 2)
        self.depth = torch.full((NUM_ENVS, WIDEST + 1), math.inf)
        self.reward = torch.full((NUM_ENVS,), 3e38)
        joints = SimpleNamespace(torch=self.joints)
        robot = SimpleNamespace(
            is_fixed_base=True,
            joint_names=["slider", "pole"],
            data=SimpleNamespace(joint_pos=joints, joint_vel=SimpleNamespace(torch=torch.zeros(NUM_ENVS, 2))),
        )
        self.env: Any = SimpleNamespace(
            num_envs=NUM_ENVS,
            device="cpu",
            scene=SimpleNamespace(articulations={"robot": robot}, rigid_objects={}),
            reward_manager=SimpleNamespace(active_terms=["alive", "effort"], _step_reward=self.terms),
            observation_manager=SimpleNamespace(
                active_terms={"policy": ["joints", "clock"]}, group_obs_term_dim={"policy": [(2,), (1,)]}
            ),
        )
        self.env.unwrapped = self.env

    def look(self) -> None:
        """Show a guard the reset, one sound step and this one."""
        guard = Guard(self.env, "the policy of model_3.pt")
        numbers = {"counts": torch.ones(NUM_ENVS, dtype=torch.long)}
        sound = {"policy": torch.ones(NUM_ENVS, 3), "depth": self.depth.clone()}
        joints, self.joints[:] = self.joints.clone(), 0.0
        guard.reset(sound)
        guard.acted({"cart": torch.ones(NUM_ENVS, 2)})
        guard.stepped(sound, {"cart": torch.ones(NUM_ENVS)})
        self.joints[:] = joints
        guard.acted(self.actions)
        guard.stepped({"policy": self.policy, "depth": self.depth, **numbers}, self.reward)


@pytest.mark.parametrize("shape", [(WIDEST + 1,), (8, 8, 1)])
def test_finite_values_and_pictures_with_infinite_depths_pass(shape: tuple[int, ...]) -> None:
    step = Step()
    step.depth = torch.full((NUM_ENVS, *shape), math.inf)
    step.look()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("name", "index", "text"),
    [
        ("actions", 1, "The action (index 1) is {} in env 2 in env step 1"),
        ("joints", 1, "The state 'robot.joint_pos' of 'pole' is {} in env 2 after env step 1"),
        ("policy", 2, "The observation 'policy' of 'clock' is {} in env 2 after env step 1"),
        ("reward", None, "The reward is {} in env 2 after env step 1"),
    ],
)
def test_the_first_value_that_is_not_finite_is_named(name: str, index: int | None, text: str, value: float) -> None:
    step = Step()
    getattr(step, name)[2 if index is None else (2, index)] = value
    with pytest.raises(NotFiniteError) as raised:
        step.look()
    assert str(raised.value) == f"{text.format(value)}, with the policy of model_3.pt. There is no result."


@pytest.mark.parametrize(
    ("joint", "text"),
    [(0.0, "The reward term 'effort' is nan in env 1"), (math.nan, "'robot.joint_pos' of 'slider' is nan in env 1")],
)
def test_the_cause_is_named_before_its_effects(joint: float, text: str) -> None:
    step = Step()
    step.depth[:] = 0.0
    step.joints[1, 0] = joint
    step.terms[1, 1] = step.reward[1] = step.policy[1, 0] = math.nan
    with pytest.raises(NotFiniteError, match=text):
        step.look()


def test_a_nan_in_a_picture_is_found() -> None:
    step = Step()
    step.depth[3, 7] = math.nan
    with pytest.raises(NotFiniteError, match=r"The observation 'depth' \(index 7\) is nan in env 3"):
        step.look()


def test_an_error_of_a_distribution_names_the_policy_and_the_step() -> None:
    guard = Guard(Step().env, "the policy of model_3.pt")
    with (
        pytest.raises(NotFiniteError, match=r"in env step 0, with the policy of model_3\.pt: normal expects"),
        guard.acting(),
    ):
        torch.normal(torch.zeros(2), torch.full((2,), math.nan))
    with pytest.raises(ValueError, match="another"), guard.acting():
        raise ValueError("another")
