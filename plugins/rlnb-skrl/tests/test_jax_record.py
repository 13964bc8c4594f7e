"""The contents of a JAX checkpoint, and the state it restores."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("skrl")
pytest.importorskip("jax")
import gymnasium
import jax
import numpy as np
import skrl
import torch
from rlnb_skrl.jax_record import JaxRecorder
from skrl.envs.wrappers.jax.base import Wrapper
from skrl.utils.runner.jax import Runner

from rlnb.hooks import plugins
from rlnb.hooks.plugins import agent_config

NUM_ENVS, ITERATIONS = 4, 2


class Noise(Wrapper):
    """An env whose observations and rewards are noise."""

    def __init__(self) -> None:
        box = gymnasium.spaces.Box
        space = {"observation_space": box(-1, 1, (3,)), "action_space": box(-1, 1, (1,)), "state_space": None}
        super().__init__(SimpleNamespace(device="cpu", num_envs=NUM_ENVS, num_agents=1, **space))
        self._random = np.random.default_rng(0)

    def _noise(self, size: int) -> jax.Array:
        return jax.numpy.asarray(self._random.normal(size=(NUM_ENVS, size)), dtype="float32")

    def reset(self) -> Any:
        return self._noise(3), {}

    def step(self, actions: jax.Array) -> Any:
        never = jax.numpy.zeros((NUM_ENVS, 1), dtype="int8")
        log = {"Metrics/success_rate": torch.tensor(0.5), "per_env": torch.zeros(NUM_ENVS)}
        return self._noise(3), self._noise(1), never, never, {"log": log}

    def state(self) -> None: ...

    def render(self) -> None: ...

    def close(self) -> None: ...


def learner(seed: int, iterations: int = ITERATIONS) -> tuple[Runner, JaxRecorder]:
    """Return a runner on the noise env, and its recorder."""
    skrl.config.jax.device, skrl.config.jax.key = "cpu", seed
    config = agent_config(plugins.library("skrl_jax").default_agent)
    config["seed"] = seed
    rollouts = config["agent"]["rollouts"]
    config["agent"]["experiment"].update(write_interval=0, checkpoint_interval=0)
    config["trainer"].update(
        timesteps=iterations * rollouts, close_environment_at_exit=False, disable_progressbar=True, headless=True
    )
    runner = Runner(Noise(), config)
    return runner, JaxRecorder(runner.agent, rollouts, NUM_ENVS)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint written after two iterations."""
    runner, recorder = learner(seed=1)
    runner.run()
    recorder.progress.timestep = 48
    path = tmp_path_factory.mktemp("jax") / "agent_48.pt"
    runner.agent.save(str(path))
    return path


def different(one: Any, other: Any) -> list[str]:
    """Return the parts of two checkpoints that are not bitwise equal."""
    return [name for name in one if str(jax.tree.leaves(one[name])) != str(jax.tree.leaves(other[name]))]


def test_a_checkpoint_loads_without_running_code_and_has_the_full_state(checkpoint: Path) -> None:
    state = torch.load(checkpoint, weights_only=True)
    assert set(state) == {
        *("policy", "value", "policy_optimizer", "value_optimizer", "observation_preprocessor", "value_preprocessor"),
        *("learning_rates", "numpy", "rlnb"),
    }
    steps = [leaf for leaf in jax.tree.leaves(state["policy_optimizer"]) if leaf.ndim == 0]
    assert [int(count) for count in steps] == [ITERATIONS * 5 * 4], "the optimiser's state is from after its steps"


def test_resuming_restores_the_full_state(checkpoint: Path, tmp_path: Path) -> None:
    runner, recorder = learner(seed=2)
    runner.agent.save(str(tmp_path / "before.pt"))
    runner.agent.load(str(checkpoint))
    runner.agent.save(str(tmp_path / "after.pt"))
    then, before, after = (torch.load(p) for p in (checkpoint, tmp_path / "before.pt", tmp_path / "after.pt"))
    assert different(then, before) == list(then), "equal parts would prove nothing"
    assert different(then, after) == []
    assert recorder.progress.timestep == 48


def test_weights_alone_leave_optimisers_and_counters(checkpoint: Path, tmp_path: Path) -> None:
    runner, recorder = learner(seed=2)
    recorder.load_weights(checkpoint)
    runner.agent.save(str(tmp_path / "after.pt"))
    then, after = (torch.load(path) for path in (checkpoint, tmp_path / "after.pt"))
    kept = {"policy", "value", "observation_preprocessor", "value_preprocessor"}
    assert set(then) - set(different(then, after)) == kept
    assert recorder.progress.timestep == 0


def test_the_envs_values_and_the_entropy_are_logged() -> None:
    runner, _ = learner(seed=1, iterations=1)
    written: dict[str, float] = {}
    runner.agent.writer = SimpleNamespace(
        add_scalar=lambda tag, value, timestep: written.update({tag: float(value)}), flush=lambda: None
    )
    runner.run()
    runner.agent.write_tracking_data(timestep=24, timesteps=24)
    assert written["Metrics/success_rate"] == 0.5
    assert "Info / per_env" not in written
    (log_std,) = jax.tree.leaves(runner.agent.policy.state_dict.params["params"]["log_std_parameter"])
    # The entropy of a normal distribution is 1/2 ln(2 pi e sigma^2).
    assert written["Policy / Entropy"] == pytest.approx(0.5 * np.log(2 * np.pi * np.e) + log_std.item(), abs=0.05)


def test_the_trained_values_are_parameters_and_running_statistics() -> None:
    runner, recorder = learner(seed=1)
    (mirror,) = recorder.modules()
    count = sum(
        leaf.size for model in runner.agent.models.values() for leaf in jax.tree.leaves(model.state_dict.params)
    )
    assert sum(parameter.numel() for parameter in mirror.parameters()) == count
    assert len(list(mirror.buffers())) == 6, "mean, variance and count of two preprocessors"
