"""Mistakes of a task, in the steps of a stand-in for Isaac Lab's env. Real envs: tests/worker/requests/test_examine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from rlnb.protocol.requests import TaskFinding
from rlnb.worker.requests import sanity as module
from rlnb.worker.requests.sanity import Sanity

NUM_ENVS = 4
SOLVER = {"overflow": [0, 1, 0, 0], "nefc": [0, 14, 3, 0], "nacon": [4], "ncollision": [4]}
"""What MuJoCo Warp's data hold after a step in which one env needed more constraints than it has."""


def box(*shape: int) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(-np.inf, np.inf, shape)


class Env:
    """An env whose joint moves, as Isaac Lab's envs show it."""

    num_envs, device, step_dt = NUM_ENVS, "cpu", 0.1

    def __init__(self, **spaces: Any) -> None:
        self.joint = torch.zeros(NUM_ENVS, 1)
        self.single_observation_space = gymnasium.spaces.Dict(spaces or {"policy": box(2)})
        self.scene = SimpleNamespace(get_state=self._get_state)
        self.terms: dict[str, torch.Tensor] = {}

    def _get_state(self, is_relative: bool) -> Any:
        return {"articulation": {"robot": {"joint_position": self.joint, "joint_velocity": torch.ones(NUM_ENVS, 1)}}}

    @property
    def reward_manager(self) -> Any:
        if not self.terms:
            raise AttributeError("a direct env has none")
        values = torch.stack([*self.terms.values()], dim=1)
        weight = SimpleNamespace(weight=1.0)
        return SimpleNamespace(active_terms=[*self.terms], _step_reward=values, get_term_cfg=lambda name: weight)


def findings(env: Env, steps: int = 30, last: bool = False, **changed: Any) -> list[TaskFinding]:
    """Step an env; functions of the step replace what it returns. A last reset may follow, which moves no joint."""
    sanity = Sanity(env)
    generator = torch.Generator().manual_seed(0)
    none = torch.zeros(NUM_ENVS, dtype=torch.bool)

    def observe(step: int) -> Any:
        values = torch.rand(NUM_ENVS, 2, generator=generator)
        return changed["obs"](step, values) if "obs" in changed else {"policy": values}

    sanity.after_reset(observe(0))
    for step in range(1, steps + 1):
        env.joint += 0.1
        reward = torch.rand(NUM_ENVS, generator=generator)
        reward = changed["reward"](step, reward) if "reward" in changed else reward
        ended = changed["ended"](step) if "ended" in changed else none
        cut = changed["cut"](step) if "cut" in changed else none
        sanity.after_step(observe(step), reward, ended, cut, extras=changed.get("extras"))
    if last:
        sanity.after_last_reset()
        env.joint += 0.1
        sanity.after_last_step()
    return sanity.findings()


def texts(found: list[TaskFinding]) -> list[str]:
    return [f"{finding.level}: {finding.what}" for finding in found]


@pytest.mark.parametrize("steps", [0, 1, 30, 200])
def test_a_sound_env_has_no_findings(steps: int) -> None:
    assert findings(Env(), steps) == []


def test_the_shape_of_each_group_is_compared_with_its_space() -> None:
    env = Env(policy=box(3), critic=box(2), images=gymnasium.spaces.Dict({"rgb": box(4, 4, 3)}))
    found = findings(env, obs=lambda step, values: {"policy": values, "images": {"rgb": torch.rand(NUM_ENVS, 4, 4, 1)}})
    assert texts(found) == [
        "warning: The env has a space for the observation 'critic', but does not return it.",
        "warning: The observation 'policy' has the shape (4, 2), but its space says (4, 3).",
        "warning: The observation 'images/rgb' has the shape (4, 4, 4, 1), but its space says (4, 4, 4, 3).",
    ]


def test_the_parts_of_a_tuple_are_compared_with_their_spaces() -> None:
    env = Env(policy=gymnasium.spaces.Tuple((box(2), box(3))))
    assert findings(env, obs=lambda step, values: {"policy": (values, values.repeat(1, 2)[:, :3])}) == []
    found = findings(env, obs=lambda step, values: {"policy": (values, values)})
    assert texts(found) == ["warning: The observation 'policy/1' has the shape (4, 2), but its space says (4, 3)."]
    found = findings(Env(), obs=lambda step, values: {"policy": (values, {})})
    assert texts(found) == ["warning: The observation 'policy' is tuple, not a tensor."], "a step's whole outcome"


def test_a_tensor_on_another_device_is_named() -> None:
    env = Env()
    env.device, env.joint = "meta", env.joint.to("meta")
    sanity = Sanity(env)
    sanity.after_reset({"policy": torch.rand(NUM_ENVS, 2)})
    assert texts(sanity.findings()) == ["warning: The observation 'policy' is on cpu, but the simulation is on meta."]


@pytest.mark.parametrize(("value", "text"), [(float("nan"), "nan"), (float("inf"), "inf"), (-float("inf"), "-inf")])
def test_the_first_value_that_is_not_finite_is_named_with_env_and_step(value: float, text: str) -> None:
    def obs(step: int, values: torch.Tensor) -> Any:
        if step >= 7:
            values[2:, 1] = value
        return {"policy": values}

    assert texts(findings(Env(), obs=obs)) == [
        f"warning: The observation 'policy' is {text} in step 7 (index 1, env 2; 2 of 4 envs)."
    ]
    reward = lambda step, values: torch.where(torch.arange(NUM_ENVS) == 3, value, values)  # noqa: E731
    assert f"warning: The reward is {text} in step 1 (env 3; 1 of 4 envs)." in texts(findings(Env(), reward=reward))


def test_an_observation_that_never_changes_is_named_if_the_robot_moves() -> None:
    frozen = torch.rand(NUM_ENVS, 2)
    found = findings(Env(), obs=lambda step, values: {"policy": frozen})
    assert texts(found) == [
        "warning: The observation 'policy' never changed, although bodies or joints moved by 3.00 m or rad."
    ]


def test_a_value_that_is_always_the_same_is_a_note_after_many_steps() -> None:
    def obs(step: int, values: torch.Tensor) -> Any:
        values[:, 1] = 1.0
        return {"policy": values}

    assert findings(Env(), 30, obs=obs) == []
    assert texts(findings(Env(), 200, obs=obs)) == [
        "note: The observation 'policy' has the same value in all envs and steps at index 1."
    ]


def test_a_reward_of_a_wrong_shape_is_named_with_the_right_one() -> None:
    found = texts(findings(Env(), reward=lambda step, values: values.unsqueeze(-1)))
    assert "warning: The reward has the shape (4, 1), but it needs one value for each env: (4,)." in found


def test_a_reward_without_variation_or_bound_is_named() -> None:
    half = lambda step, values: torch.full((NUM_ENVS,), 0.5)  # noqa: E731
    assert findings(Env(), 30, reward=half) == [], "it may be sparse"
    assert texts(findings(Env(), 200, reward=half)) == ["note: The reward was 0.5 in all envs and steps."]
    growing = findings(Env(), reward=lambda step, values: values + 2.0**step)
    assert texts(growing) == ["warning: The reward grew from 2.63 to 1.07e+09 within 30 steps."]


def test_a_reward_term_without_effect_is_a_note_and_an_invalid_one_a_mistake() -> None:
    env = Env()
    values = {"alive": 1.0, "bonus": 0.0, "root": torch.nan}
    env.terms = {name: torch.full((NUM_ENVS,), value) for name, value in values.items()}
    found = texts(findings(env, 200))
    assert found == [
        "warning: The reward term 'root' is nan in step 1 (env 0; 4 of 4 envs).",
        "note: The reward term 'bonus' was 0 in all envs and steps, so it had no effect.",
    ]


def test_episodes_that_end_in_their_first_step_are_named_with_the_cause() -> None:
    ones = lambda step: torch.ones(NUM_ENVS, dtype=torch.bool)  # noqa: E731
    assert texts(findings(Env(), ended=ones)) == ["warning: 4 of 4 episodes ended in their first step."]
    assert texts(findings(Env(), cut=ones)) == [
        "warning: 4 of 4 episodes ended in their first step because their time was up."
    ]
    one = lambda step: torch.arange(NUM_ENVS) == step - 1  # noqa: E731
    assert findings(Env(), ended=one) == [], "one env may start badly"


@pytest.mark.parametrize(("per_step", "found"), [(5.0, True), (0.1, False)])
def test_growing_memory_is_named(monkeypatch: pytest.MonkeyPatch, per_step: float, found: bool) -> None:
    sizes = iter(range(1000))
    monkeypatch.setattr(module, "_memory_mib", lambda: 500.0 + per_step * next(sizes))
    assert bool(findings(Env())) is found


def test_memory_that_grows_in_one_piece_is_no_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter(range(1000))
    monkeypatch.setattr(module, "_memory_mib", lambda: 500.0 if next(sizes) < 25 else 700.0)
    assert findings(Env()) == []


def test_what_a_caller_keeps_is_no_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter(range(1000))
    monkeypatch.setattr(module, "_memory_mib", lambda: 500.0 + 5.0 * next(sizes))
    kept = iter(range(1000))
    sanity = Sanity(Env(), lambda: 5.0 * next(kept))
    none = torch.zeros(NUM_ENVS, dtype=torch.bool)
    sanity.after_reset({"policy": torch.rand(NUM_ENVS, 2)})
    for _ in range(30):
        sanity.after_step({"policy": torch.rand(NUM_ENVS, 2)}, torch.rand(NUM_ENVS), none, none)
    assert sanity.findings() == []


def test_a_missing_return_is_named() -> None:
    none = torch.zeros(NUM_ENVS, dtype=torch.bool)
    sanity = Sanity(Env())
    sanity.after_reset(None)
    (found,) = texts(sanity.findings())
    assert found == 'warning: What the env observes is NoneType, not a dict of tensors, such as {"policy": tensor}.'
    sanity = Sanity(Env())
    sanity.after_reset({"policy": torch.rand(NUM_ENVS, 2), "critic": None})
    sanity.after_step({"policy": torch.rand(NUM_ENVS, 2)}, None, none, none)
    assert texts(sanity.findings()) == [
        "warning: The observation 'critic' is NoneType, not a tensor.",
        "warning: The reward is NoneType, not a tensor.",
    ]


def test_a_constant_part_of_a_group_that_changes_is_no_mistake() -> None:
    goal = torch.rand(NUM_ENVS, 3)
    env = Env(policy=gymnasium.spaces.Dict({"goal": box(3), "joint": box(2)}))
    assert findings(env, obs=lambda step, values: {"policy": {"goal": goal, "joint": values}}) == []


def test_contacts_that_the_solver_drops_are_a_finding() -> None:
    warp = pytest.importorskip("warp")
    env: Any = Env()
    counts = {name: warp.array(values, dtype=int, device="cpu") for name, values in SOLVER.items()}
    data = SimpleNamespace(njmax=10, naconmax=20, **counts)
    env.sim = SimpleNamespace(physics_manager=SimpleNamespace(_solver=SimpleNamespace(mjw_data=data)))
    (finding,) = findings(env)
    assert finding.level == "warning"
    assert finding.what.startswith(
        "The physics solver dropped constraints in 1 of 4 envs, because an env needed at least 14"
    )
    assert "sim.physics.solver_cfg.njmax" in finding.fix


def test_what_no_curve_can_show_is_named_once() -> None:
    (found,) = findings(Env(), extras={"log": {"state": "falling", "height": 1, "speeds": torch.rand(NUM_ENVS)}})
    assert found.what == 'extras["log"]["state"] is of the type str, not a number, so no curve shows it.'
    assert found.fix.startswith("Log numbers")


# -- resets ----------------------------------------------------------------------------------------------------------


def with_resets(env: Env, *, every: int, resets: bool) -> list[TaskFinding]:
    """Return the findings about an env whose episodes all end after some steps, and whose reset may move the joint."""
    env.scene.articulations = {"robot": SimpleNamespace(joint_names=["slider"])}

    def ended(step: int) -> torch.Tensor:
        if step % every:
            return torch.zeros(NUM_ENVS, dtype=torch.bool)
        if resets:
            env.joint = torch.zeros(NUM_ENVS, 1)
        return torch.ones(NUM_ENVS, dtype=torch.bool)

    return findings(env, ended=ended)


def test_a_joint_that_a_reset_leaves_where_it_was_is_named() -> None:
    (found,) = with_resets(Env(), every=5, resets=False)
    assert found.what == "A reset does not change the joint 'slider' of 'robot': it stays where the episode has ended."
    assert "_reset_idx()" in found.fix


def test_a_reset_that_moves_all_joints_is_sound() -> None:
    assert with_resets(Env(), every=5, resets=True) == []


@pytest.mark.parametrize("steps", [2, 30])
def test_without_an_episode_that_ends_a_last_reset_shows_the_joint_that_it_leaves(steps: int) -> None:
    env = Env()
    env.scene.articulations = {"robot": SimpleNamespace(joint_names=["slider"])}
    found = [finding.what for finding in findings(env, steps, last=True)]
    assert found == ["A reset does not change the joint 'slider' of 'robot': it stays where the episode has ended."]


def test_a_last_reset_is_sound_if_it_writes_the_joint_in_any_env_or_the_joint_has_not_moved() -> None:
    env = Env()
    env.scene.articulations = {"robot": SimpleNamespace(joint_names=["slider"])}
    sanity = Sanity(env)
    none, reward = torch.zeros(NUM_ENVS, dtype=torch.bool), torch.rand(NUM_ENVS)
    for moved_by, written in ((0.0, 0.0), (3.0, -2.9)):
        sanity.after_reset({"policy": torch.rand(NUM_ENVS, 2)})
        env.joint += moved_by
        sanity.after_step({"policy": torch.rand(NUM_ENVS, 2)}, reward, none, none)
        env.joint[0] += written
        sanity.after_last_reset()
        sanity.after_last_step()
        assert sanity.findings() == []


@pytest.mark.parametrize("last", [True, False], ids=["last reset", "ends of episodes"])
def test_a_joint_that_a_loop_moves_in_the_step_after_a_reset_is_sound(last: bool) -> None:
    """As in a four-bar linkage or with a mimic joint: the reset writes the other joints, and physics moves this one."""
    env = Env()
    env.scene.articulations = {"robot": SimpleNamespace(joint_names=["follower"])}
    sanity = Sanity(env)
    none, reward = torch.zeros(NUM_ENVS, dtype=torch.bool), torch.rand(NUM_ENVS)
    observed = {"policy": torch.rand(NUM_ENVS, 2)}
    sanity.after_reset(observed)
    for step in range(1, 31):
        env.joint = torch.full((NUM_ENVS, 1), 0.6 * (step % 5))
        sanity.after_step(observed, reward, none if last or step % 5 != 4 else ~none, none)
    env.joint = torch.full((NUM_ENVS, 1), 2.4)
    sanity.after_step(observed, reward, none, none)
    if last:
        sanity.after_last_reset()
        env.joint = torch.zeros(NUM_ENVS, 1)
        sanity.after_last_step()
    assert not [found.what for found in sanity.findings() if "reset" in found.what]


def test_episodes_that_end_in_the_first_step_after_a_reset_are_counted() -> None:
    """The env is right until the first end. Then the state that has ended the episode stays."""
    ends = {step: torch.full((NUM_ENVS,), step >= 10) for step in range(1, 31)}
    (found,) = findings(Env(), ended=lambda step: ends[step])
    assert found.what == f"{20 * NUM_ENVS} of {21 * NUM_ENVS} episodes ended in their first step after a reset."
