"""The flight recorder on a stand-in for Isaac Lab's env; with the real one: test_isaaclab."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlnb.errors import TrainingStopped
from rlnb.records.flight import Flight, read
from rlnb.worker.flight import recorder
from rlnb.worker.flight.recorder import EVERY, STEPS, NotFiniteError, Recorder, recording

torch = pytest.importorskip("torch")
pytest.importorskip("isaaclab")
NUM_ENVS, HORIZON = 6, 10
Plant = Callable[["Env"], None]


class Env:
    """An env as Isaac Lab's envs show themselves: a robot with two joints, an object, two reward terms."""

    num_envs, device, cfg = NUM_ENVS, "cpu", SimpleNamespace(seed=3)
    sim = SimpleNamespace(physics_manager=None)

    def __init__(self) -> None:
        self.count = 0
        self.plant: Plant = lambda env: None
        self.joints, self.speeds = torch.zeros(NUM_ENVS, 2), torch.zeros(NUM_ENVS, 2)
        self.pose, self.velocity = torch.zeros(NUM_ENVS, 7), torch.zeros(NUM_ENVS, 6)
        of = lambda tensor: SimpleNamespace(torch=tensor)  # noqa: E731
        robot = SimpleNamespace(
            is_fixed_base=True,
            joint_names=["slider", "pole"],
            data=SimpleNamespace(joint_pos=of(self.joints), joint_vel=of(self.speeds)),
        )
        data = SimpleNamespace(root_link_pose_w=of(self.pose), root_com_vel_w=of(self.velocity))
        self.scene = SimpleNamespace(articulations={"robot": robot}, rigid_objects={"cube": SimpleNamespace(data=data)})
        self.rewards = torch.zeros(NUM_ENVS, 2)
        weight = SimpleNamespace(weight=1.0)
        self.reward_manager = SimpleNamespace(
            active_terms=["alive", "effort"], _step_reward=self.rewards, get_term_cfg=lambda name: weight
        )
        self.observation_manager = SimpleNamespace(
            active_terms={"policy": ["joints", "clock"]}, group_obs_term_dim={"policy": [(2,), (1,)]}
        )
        self.observations = torch.zeros(NUM_ENVS, 3)

    @property
    def unwrapped(self) -> Any:
        return self

    def step(self, actions: Any) -> Any:
        self.count += 1
        self.joints += 0.01 * actions
        self.rewards[:] = self.count
        self.unread = torch.zeros(NUM_ENVS, 1)
        self.observations = torch.cat([self.joints, torch.full((NUM_ENVS, 1), float(self.count))], dim=1)
        self.plant(self)
        self.observations[:, :2] += 0.0 * self.joints
        self.rewards[:, 0] += 0.0 * self.joints[:, 1]
        reward = self.rewards.sum(dim=1)
        ended = torch.zeros(NUM_ENVS, dtype=torch.bool)
        pictures = torch.zeros(NUM_ENVS, 40, 40, 3)
        observations = {"unread": self.unread, "policy": self.observations, "pictures": pictures}
        return observations, reward, ended, ended, {}


def put(name: str, env: int, index: int, value: float, at: int) -> Plant:
    """Return a plant of a value in an attribute, in the step of a number."""

    def plant(target: Env) -> None:
        if target.count == at + 1:
            getattr(target, name)[env, index] = value

    return plant


def flown(folder: Path, plant: Plant, steps: int = 100, actions: Callable[[int], Any] | None = None) -> Flight | None:
    """Step an env with a policy that reads the last value of its observations; return the record."""
    env = Env()
    env.plant = plant
    with Recorder(env, folder, lambda step: 3 + step // HORIZON):
        for step in range(steps):
            own = torch.full((NUM_ENVS, 2), float(step)) + 0.0 * env.observations[:, 2:]
            env.step(actions(step) if actions else own)
    return read(folder)


def test_sound_steps_leave_no_record(tmp_path: Path) -> None:
    assert flown(tmp_path / "flight", lambda env: None) is None
    assert not (tmp_path / "flight").exists()


@pytest.mark.parametrize("at", [0, 1, EVERY - 1, EVERY, STEPS, 57, 98])
@pytest.mark.parametrize(
    ("name", "index", "value", "text"),
    [
        ("joints", 1, math.nan, "The state 'robot.joint_pos' of 'pole' is nan in env 4 after env step {}"),
        ("rewards", 1, math.nan, "The reward term 'effort' is nan in env 4 in env step {}"),
        ("rewards", 0, math.inf, "The reward term 'alive' is inf in env 4 in env step {}"),
        ("observations", 2, math.nan, "The observation 'policy' of 'clock' is nan in env 4 in env step {}"),
    ],
)
def test_the_cause_is_named_with_env_and_step(
    tmp_path: Path, name: str, index: int, value: float, text: str, at: int
) -> None:
    with pytest.raises(NotFiniteError) as raised:
        flown(tmp_path, put(name, 4, index, value, at))
    expected = f"{text.format(at)}, in iteration {3 + at // HORIZON}."
    assert str(raised.value).startswith(expected)
    assert str(raised.value).endswith("To repeat them: run.replay()")
    flight = read(tmp_path)
    assert flight is not None
    assert flight.what == expected
    assert (flight.env, flight.step, flight.iteration) == (4, at, 3 + at // HORIZON)


def test_an_action_is_the_cause_of_what_it_does(tmp_path: Path) -> None:
    def act(step: int) -> Any:
        actions = torch.zeros(NUM_ENVS, 2)
        actions[2, 1] = math.nan if step == 20 else 0.0
        return actions

    with pytest.raises(NotFiniteError, match=r"The action \(index 1\) is nan in env 2 in env step 20"):
        flown(tmp_path, lambda env: None, actions=act)


def test_the_record_has_the_last_steps_of_all_envs(tmp_path: Path) -> None:
    at = 61
    with pytest.raises(NotFiniteError):
        flown(tmp_path, put("rewards", 4, 1, math.nan, at))
    flight = read(tmp_path)
    assert flight is not None
    arrays = flight.arrays
    assert {name: values.shape[2] for name, values in arrays.items()} == {
        "state/robot.joint_pos": 2,
        "state/robot.joint_vel": 2,
        "state/cube.root_link_pose_w": 7,
        "state/cube.root_com_vel_w": 6,
        "action": 2,
        "term/alive": 1,
        "term/effort": 1,
        "observation/unread": 1,
        "observation/policy": 3,
        "reward": 1,
    }
    assert {values.shape[:2] for values in arrays.values()} == {(STEPS, NUM_ENVS)}
    steps = flight.first_step + np.arange(STEPS)
    assert steps[-1] == 63, "the look after step 63 has found it"
    assert arrays["action"][:, 0, 0].tolist() == steps.tolist()
    assert arrays["observation/policy"][:, 5, 2].tolist() == (steps + 1).tolist()
    before = 0.01 * np.array([sum(range(step)) for step in steps])
    np.testing.assert_allclose(arrays["state/robot.joint_pos"][:, 0, 0], before, rtol=1e-4)
    assert np.argwhere(~np.isfinite(arrays["term/effort"])).tolist() == [[at - flight.first_step, 4, 0]]
    assert flight.labels["observation/policy"] == ("joints[0]", "joints[1]", "clock")


def test_an_infinite_action_is_noted_since_the_env_may_clip_it(tmp_path: Path) -> None:
    def act(step: int) -> Any:
        return torch.full((NUM_ENVS, 2), math.inf if step == 20 else 0.0)

    def clip(env: Env) -> None:
        env.joints.zero_()
        env.rewards.zero_()
        env.observations = torch.zeros(NUM_ENVS, 3)

    flight = flown(tmp_path, clip, actions=act)
    assert flight is not None
    assert (flight.kind, flight.step, flight.fatal) == ("action", 20, False)


@pytest.mark.parametrize(("name", "value"), [("observations", math.inf), ("speeds", math.nan)])
def test_what_a_library_survives_is_noted_once(
    tmp_path: Path, name: str, value: float, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    def plant(env: Env) -> None:
        if env.count in (20, 50):
            getattr(env, name)[1, 1] = value

    flight = flown(tmp_path, plant)
    assert flight is not None
    assert flight.step in (19, 20), "in the step, or before the next one"
    assert not flight.fatal
    assert len([message for message in caplog.messages if "The training goes on" in message]) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_was_harmless_for_long_is_not_named_as_the_cause(tmp_path: Path, value: float) -> None:
    def plant(env: Env) -> None:
        env.unread[:, 0] = value
        env.speeds[5, 0] = math.nan
        if env.count == 41:
            env.rewards[4, 1] = math.nan

    with pytest.raises(NotFiniteError, match="The reward term 'effort' is nan in env 4 in env step 40"):
        flown(tmp_path, plant)
    flight = read(tmp_path)
    assert flight is not None
    assert flight.fatal


def test_a_record_that_cannot_be_written_does_not_hide_the_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Path:
        raise OSError("No space left on device")

    monkeypatch.setattr(recorder, "write", full)
    with pytest.raises(NotFiniteError, match=r"'effort' is nan in env 4.* could not be written: No space left"):
        flown(tmp_path, put("rewards", 4, 1, math.nan, 61))


def failed(folder: Path, error: Exception) -> None:
    """Step an env in which a value is nan, and fail as a library does."""
    env = Env()
    env.plant = put("observations", 3, 2, math.nan, 1)
    with Recorder(env, folder, lambda _: None):
        for _ in range(3):
            env.step(torch.zeros(NUM_ENVS, 2))
        raise error


def test_an_error_of_the_library_is_explained_by_steps_that_were_not_looked_at_yet(tmp_path: Path) -> None:
    with pytest.raises(NotFiniteError, match="'clock' is nan in env 3 in env step 1") as raised:
        failed(tmp_path, ValueError("normal expects all elements of std >= 0.0"))
    assert "normal expects" in str(raised.value.__context__)


def test_steps_and_envs_are_fewer_if_they_would_need_too_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    width = 2 + 2 + 7 + 6 + 2 + 1 + 1 + 1 + 3 + 1
    monkeypatch.setattr(recorder, "MOST_BYTES", 20 * 4 * NUM_ENVS * width)
    monkeypatch.setattr(recorder, "WRITTEN_BYTES", 16 * 4 * 3 * width)
    with pytest.raises(NotFiniteError, match="values of the last 16 steps"):
        flown(tmp_path, put("rewards", 4, 1, math.nan, 61))
    flight = read(tmp_path)
    assert flight is not None
    assert flight.envs == (0, 1, 4)
    reward = flight.arrays["reward"]
    assert reward.shape == (16, 3, 1)
    assert np.argwhere(~np.isfinite(reward)).tolist() == [[61 - flight.first_step, 2, 0]]


def test_an_env_that_cannot_be_recorded_is_trained_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = Env()
    with Recorder(env, tmp_path, lambda _: None):
        env.step(torch.zeros(NUM_ENVS, 2))
        env.reward_manager = SimpleNamespace(active_terms=["alive"])  # as in a later Isaac Lab
        for _ in range(20):
            env.step(torch.zeros(NUM_ENVS, 2))
    assert env.count == 21
    assert len([message for message in caplog.messages if "The flight recorder is off" in message]) == 1
    env = Env()
    env.scene.articulations = None  # no state can be read at all
    with Recorder(env, tmp_path, lambda _: None):
        assert len(env.step(torch.zeros(NUM_ENVS, 2))) == 5


def test_a_library_may_step_with_and_without_inference_mode(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    env = Env()
    with Recorder(env, tmp_path, lambda _: None):
        for number in range(STEPS + 2):
            with torch.inference_mode(number % 2 == 0):
                env.joints, env.speeds = env.joints.clone(), env.speeds.clone()
                env.rewards = torch.zeros(NUM_ENVS, 2)
                env.step(torch.zeros(NUM_ENVS, 2))
    assert read(tmp_path) is None
    assert caplog.messages == [], "the recorder is still on"


def test_a_variable_turns_the_recorder_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(recording(Env(), tmp_path, lambda _: None), Recorder)
    monkeypatch.setenv("RLNB_FLIGHT_RECORDER", "0")
    env = Env()
    with recording(env, tmp_path, lambda _: None):
        assert "step" not in vars(env)


def test_a_request_to_stop_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(TrainingStopped):
        failed(tmp_path, TrainingStopped())
    assert read(tmp_path) is None


@pytest.mark.parametrize(
    ("later", "kind", "env", "step"), [(12, "observation", 4, 3), (19, "observation", 4, 3), (20, "action", 0, 20)]
)
def test_a_value_that_broke_the_policy_in_the_next_update_is_named(
    tmp_path: Path, later: int, kind: str, env: int, step: int
) -> None:
    actions = lambda at: torch.full((NUM_ENVS, 2), math.nan if at >= later else float(at))  # noqa: E731
    with pytest.raises(NotFiniteError) as raised:
        flown(tmp_path, put("observations", 4, 2, math.inf, 3), actions=actions)
    flight = read(tmp_path)
    assert flight is not None
    assert (flight.kind, flight.env, flight.step, flight.fatal) == (kind, env, step, True)
    assert ("Later, the action" in str(raised.value)) == (kind == "observation")
    assert str(raised.value).startswith(flight.what)


def test_a_record_says_from_where_its_steps_can_be_repeated(tmp_path: Path) -> None:
    with pytest.raises(NotFiniteError):
        flown(tmp_path, put("rewards", 4, 1, math.nan, 70))
    flight = read(tmp_path)
    assert flight is not None
    assert (flight.replay_from, flight.seed, flight.num_envs) == (32, 3, NUM_ENVS)
    assert flight.replay["action/"].shape == (72 - 32, NUM_ENVS, 2)
    assert flight.replay["variable/.count"] == 32


def test_an_alert_of_the_agent_is_answered_once_with_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "REQUEST_S", 0.0)
    env, folder = Env(), tmp_path / "flight0"
    with Recorder(env, folder, lambda step: step // HORIZON):
        for step in range(60):
            env.step(torch.full((NUM_ENVS, 2), float(step)))
            if step == 20:
                (tmp_path / "flight.request").write_text("reward < 5: reward is 3")
            if step == 40:
                first = read(tmp_path / "alert-flight0")
    newest = read(tmp_path / "alert-flight0")
    assert first is not None
    assert first == newest, "a second record would have been of a later step"
    assert (first.kind, first.what, first.step, first.fatal) == ("alert", "reward < 5: reward is 3", 23, False)
    assert first.replay_from == 0
    assert not folder.exists()
