"""The success rate of a training is that of the last 100 whole episodes, once in each iteration."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest

from rlnb.worker.isaac import isaaclab, task_log
from rlnb.worker.isaac.isaaclab import Registered
from rlnb.worker.isaac.success import WINDOW, RecentSuccess

torch = pytest.importorskip("torch")

RATE = "Metrics/success_rate"
HORIZON = 4


class Env:
    """An env as Isaac Lab's are. An episode lasts ``length`` steps, and succeeds if its number is even."""

    device = "cpu"

    def __init__(self, num_envs: int, length: int, *, logs: bool) -> None:
        self.num_envs, self.length, self._logs = num_envs, length, logs
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.number = torch.zeros(num_envs, dtype=torch.long)
        self.extras: dict[str, Any] = {}

    @property
    def unwrapped(self) -> Env:
        return self

    def reset(self) -> None:
        self._reset_idx(torch.arange(self.num_envs))
        self.number[:] = 0

    def step(self, actions: Any) -> Any:
        self.episode_length_buf += 1
        done = self.episode_length_buf >= self.length
        if done.any():
            self._reset_idx(done.nonzero().flatten())
        return {}, torch.zeros(self.num_envs), done, done & False, self.extras

    def success(self) -> Any:
        return self.number % 2 == 0

    def _reset_idx(self, env_ids: Any) -> None:
        if self._logs:
            self.extras.setdefault("log", {})[RATE] = self.success()[env_ids].float().mean()
        self.number[env_ids] += 1
        self.episode_length_buf[env_ids] = 0


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float | None]]:
    """Return a function that steps an env, and returns the logged rate of each step, None where there is none."""
    monkeypatch.setattr(isaaclab, "task_env", lambda env: env)

    def run(env: Env, steps: int, lengths: list[int] | None = None, *, function: bool = False) -> list[float | None]:
        own: Any = (lambda env: env.success()) if function else None
        registered = Registered(gym_id="Demo-v0", success=own, success_source="demo:success" * function, agents={})
        task_log.attach(env)
        RecentSuccess(env, registered, lambda count: count % HORIZON == 0).attach()
        env.reset()
        if lengths:
            env.episode_length_buf = torch.tensor(lengths)  # as RSL-RL does, with a tensor of its own
        logs = [env.step(None)[-1].get("log", {}) for _ in range(steps)]
        return [float(log[RATE]) if RATE in log else None for log in logs]

    return run


@pytest.mark.parametrize("function", [True, False], ids=["function", "rate of the env"])
def test_there_is_one_rate_in_each_iteration_from_the_first_whole_episode_on(
    function: bool, rates: Callable[..., list[float | None]]
) -> None:
    env = Env(2, 3, logs=not function)
    assert rates(env, 12, function=function) == [None] * 3 + [1.0] + [None] * 3 + [0.5] + [None] * 3 + [0.5]


def test_an_episode_that_began_at_a_random_length_does_not_count(rates: Callable[..., list[float | None]]) -> None:
    # Env 0 ends its shortened episode in step 1, and its first whole one, which fails, in step 7. Env 1 is whole.
    assert rates(Env(2, 6, logs=True), 8, [5, 0]) == [None] * 7 + [0.5]
    assert rates(Env(2, 6, logs=True), 4, [5, 4]) == [None] * 4, "no value rather than 0"


def test_a_reset_within_an_episode_that_sets_the_length_back_counts(rates: Callable[..., list[float | None]]) -> None:
    env = Env(1, 3, logs=True)
    step = env.step

    def extended(self: Env, actions: Any) -> Any:
        if int(self.number) == 1 and int(self.episode_length_buf) == 2:
            self.episode_length_buf[:] = 1  # as the reorientation tasks do when a goal is reached
            self.length = 4
        return step(actions)

    env.step = types.MethodType(extended, env)  # type: ignore[method-assign]
    assert [rate for rate in rates(env, 12) if rate is not None]


def test_the_window_has_the_last_hundred_episodes(rates: Callable[..., list[float | None]]) -> None:
    env = Env(60, 2, logs=True)
    assert rates(env, 8) == [None] * 3 + [pytest.approx((WINDOW - 60) / WINDOW)] + [None] * 3 + [pytest.approx(0.4)]


def test_the_log_of_the_env_keeps_its_own_rate(rates: Callable[..., list[float | None]]) -> None:
    env = Env(2, 3, logs=True)
    rates(env, 7)
    assert float(env.extras["log"][RATE]) == 0.0


def test_an_env_without_success_logs_none(rates: Callable[..., list[float | None]]) -> None:
    assert rates(Env(2, 3, logs=False), 8) == [None] * 8


def test_a_success_function_that_fails_ends_no_training(
    rates: Callable[..., list[float | None]], caplog: pytest.LogCaptureFixture
) -> None:
    env = Env(2, 3, logs=True)
    env.success = lambda: 1 / 0  # type: ignore[method-assign]
    env._logs = False
    assert rates(env, 8, function=True) == [None] * 8
    assert [record.message for record in caplog.records] == [
        "The training logs no success rate. ZeroDivisionError: division by zero"
    ]


@pytest.mark.parametrize("extras", [None, []])
def test_extras_that_are_no_mapping_end_no_training(monkeypatch: pytest.MonkeyPatch, extras: Any) -> None:
    monkeypatch.setattr(isaaclab, "task_env", lambda env: env)
    env = Env(2, 3, logs=True)
    step = env.step
    env.step = lambda actions: (*step(actions)[:-1], extras)  # type: ignore[method-assign]
    RecentSuccess(
        env, Registered(gym_id="Demo-v0", success=None, success_source="", agents={}), lambda _: True
    ).attach()
    env.reset()
    assert [env.step(None)[-1] for _ in range(8)] == [extras] * 8


class Spread(Env):
    """An env that spreads the episodes whenever all envs are reset, as Isaac Lab's velocity tasks do."""

    def _reset_idx(self, env_ids: Any) -> None:
        super()._reset_idx(env_ids)
        if len(env_ids) == self.num_envs:
            self.episode_length_buf[:] = 1


@pytest.mark.parametrize("num_envs", [1, 2])
def test_a_task_in_which_no_episode_is_whole_says_so_once(
    rates: Callable[..., list[float | None]], caplog: pytest.LogCaptureFixture, num_envs: int
) -> None:
    logged = rates(Spread(num_envs, 3, logs=True), 4 * WINDOW, [1, 2][-num_envs:])
    assert any(rate is not None for rate in logged) == (num_envs > 1)
    assert [record.message[:56] for record in caplog.records] == [
        "No success rate is logged so far: none of 102 episodes b"
    ] * (num_envs == 1)
