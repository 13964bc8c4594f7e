"""The error of a term whose value a manager of Isaac Lab cannot use, with Isaac Lab's own managers."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest

from rlnb.errors import RlnbError
from rlnb.worker.isaac.term_errors import explained

managers, torch = pytest.importorskip("isaaclab.managers"), pytest.importorskip("torch")
pytestmark = pytest.mark.isaaclab
NUM_ENVS = 4


def column(env: Any) -> Any:
    return torch.zeros(NUM_ENVS, 1)


def pair(env: Any) -> Any:
    return torch.zeros(NUM_ENVS, 2)


def flat(env: Any) -> Any:
    return torch.zeros(NUM_ENVS)


def word(env: Any) -> str:
    return "x"


def fails(env: Any) -> Any:
    raise RuntimeError("of the function itself")


@pytest.fixture
def env() -> Any:
    sim = types.SimpleNamespace(is_playing=lambda: True)
    return types.SimpleNamespace(num_envs=NUM_ENVS, device="cpu", sim=sim, scene={}, max_episode_length_s=1.0)


def error_of(call: Callable[[], object]) -> BaseException:
    with pytest.raises((RuntimeError, TypeError)) as error:
        call()
    return explained(error.value)


def line_of(function: Callable[..., Any]) -> str:
    return f"{__file__}, line {function.__code__.co_firstlineno}, in {function.__name__}: "


def test_a_reward_term_with_an_axis_too_many_is_named_with_its_line(env: Any) -> None:
    terms = {
        "alive": managers.RewardTermCfg(func=flat, weight=1.0),
        "reach": managers.RewardTermCfg(func=column, weight=1.0),
    }
    error = error_of(lambda: managers.RewardManager(terms, env).compute(0.1))
    assert isinstance(error, RlnbError)
    assert str(error) == (
        f"{line_of(column)}the reward term 'reach' returned a value of the shape (4, 1), and has to return one number "
        "per env, of the shape (4,). Use .squeeze(-1) to drop the last axis."
    )


def test_a_reward_term_that_returns_no_tensor_is_named(env: Any) -> None:
    error = error_of(
        lambda: managers.RewardManager({"reach": managers.RewardTermCfg(func=word, weight=1.0)}, env).compute(0.1)
    )
    assert "the reward term 'reach' returned str 'x'" in str(error)


@pytest.mark.parametrize(
    ("function", "words"), [(column, "the shape (4, 1)"), (flat, "values of torch.float32"), (pair, "the shape (4, 2)")]
)
def test_a_termination_term_without_one_bool_per_env_is_named(env: Any, function: Any, words: str) -> None:
    error = error_of(managers.TerminationManager({"fell": managers.TerminationTermCfg(func=function)}, env).compute)
    assert str(error).startswith(f"{line_of(function)}the termination term 'fell' returned ")
    assert words in str(error)
    assert "has to return one bool per env" in str(error)


class _OnGpu:
    """Stands for a tensor on a GPU, which a tensor on the CPU cannot take in."""

    shape, dtype, device = (NUM_ENVS,), torch.float32, torch.device("cuda:0")

    def __mul__(self, _: float) -> _OnGpu:
        return self


def elsewhere(env: Any) -> Any:
    return _OnGpu()


@pytest.mark.parametrize(
    ("kind", "settings"), [("Reward", {"weight": 1.0}), ("Termination", {})], ids=["reward", "termination"]
)
def test_a_term_with_values_on_another_device_is_told_so(env: Any, kind: str, settings: Any) -> None:
    cfg = getattr(managers, f"{kind}TermCfg")(func=elsewhere, **settings)
    manager = getattr(managers, f"{kind}Manager")({"far": cfg}, env)
    error = error_of(lambda: manager.compute(*([0.1] if settings else [])))
    assert str(error).startswith(line_of(elsewhere))
    assert "returned values on cuda:0" in str(error)
    assert str(error).endswith("Create its tensors with device=env.device, cpu here.")


def test_an_observation_term_without_an_axis_of_values_is_named(env: Any) -> None:
    group = managers.ObservationGroupCfg()
    for name, function in (("speed", pair), ("angle", flat), ("place", pair)):
        setattr(group, name, managers.ObservationTermCfg(func=function))
    error = error_of(lambda: managers.ObservationManager({"policy": group}, env))
    assert str(error) == (
        f"{line_of(flat)}the observation term 'angle' returned values of the shape (4,), which cannot be joined with "
        "the others of the group 'policy': 'speed' (4, 2), 'place' (4, 2). Use .unsqueeze(-1) to add an axis for the "
        "value."
    )


def test_other_errors_stay_as_they_are(env: Any) -> None:
    manager = managers.RewardManager({"reach": managers.RewardTermCfg(func=fails, weight=1.0)}, env)
    assert str(error_of(lambda: manager.compute(0.1))) == "of the function itself"
    assert str(error_of(lambda: torch.zeros(3).expand(2))).startswith("The expanded size")
