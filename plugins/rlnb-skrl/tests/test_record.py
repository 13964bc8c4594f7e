"""The recorder that wraps a skrl agent."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("skrl")
import gymnasium
import torch
from rlnb_skrl.part import parts
from rlnb_skrl.record import Recorder
from skrl.envs.wrappers.torch.base import MultiAgentEnvWrapper
from skrl.utils.runner.torch import Runner

from rlnb.hooks import plugins
from rlnb.hooks.plugins import agent_config

HORIZON = 16
NUM_ENVS = 4
OBSERVED = {"cart": 4, "pole": 3}
EACH_AGENT_HAS = {
    "policy",
    "value",
    "optimizer",
    "scheduler",
    "observation_preprocessor",
    "state_preprocessor",
    "value_preprocessor",
}


class Noise(MultiAgentEnvWrapper):
    """An env of two agents whose observations and rewards are noise."""

    def __init__(self) -> None:
        box = gymnasium.spaces.Box
        super().__init__(
            SimpleNamespace(
                device="cpu",
                num_envs=NUM_ENVS,
                agents=list(OBSERVED),
                possible_agents=list(OBSERVED),
                observation_spaces={name: box(-1, 1, (size,)) for name, size in OBSERVED.items()},
                action_spaces={name: box(-1, 1, (1,)) for name in OBSERVED},
                state_space=box(-1, 1, (sum(OBSERVED.values()),)),
            )
        )

    def _observations(self) -> dict[str, torch.Tensor]:
        return {name: torch.randn(NUM_ENVS, size) for name, size in OBSERVED.items()}

    def reset(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        return self._observations(), {}

    def step(self, actions: dict[str, torch.Tensor]) -> tuple[Any, ...]:
        reward = {name: torch.randn(NUM_ENVS, 1) for name in OBSERVED}
        never = {name: torch.zeros(NUM_ENVS, 1, dtype=torch.bool) for name in OBSERVED}
        return self._observations(), reward, never, never, {}

    def state(self) -> dict[str, torch.Tensor | None]:
        return dict.fromkeys(OBSERVED, torch.randn(NUM_ENVS, sum(OBSERVED.values())))

    def render(self) -> None: ...

    def close(self) -> None: ...


def runner(seed: int, iterations: int) -> Runner:
    config = agent_config(plugins.library("skrl_mappo").default_agent)
    config["seed"] = seed
    config["agent"]["experiment"].update(write_interval=0, checkpoint_interval=0)
    for model in ("policy", "value"):
        config["models"][model]["network"][0]["layers"] = [8]  # small enough for torch to print every value
    rollouts = config["agent"]["rollouts"]
    config["trainer"].update(
        timesteps=iterations * rollouts, close_environment_at_exit=False, disable_progressbar=True, headless=True
    )
    return Runner(Noise(), config)


def held(agent: Any) -> dict[str, Any]:
    """Return the checkpointed state of each agent's modules, as text."""
    return {
        f"{part.name}/{name}": str(module.state_dict())
        for part in parts(agent)
        for name, module in part.modules.items()
        if name != "rlnb"
    }


def test_a_checkpoint_restores_the_learned_state_of_every_agent(tmp_path: Path) -> None:
    trained = runner(seed=1, iterations=2)
    recorder = Recorder(trained.agent, HORIZON, frames_per_timestep=NUM_ENVS)
    trained.run()
    recorder.progress.timestep = 2 * HORIZON
    trained.agent.save(str(tmp_path / "agent_32.pt"))

    fresh = runner(seed=2, iterations=1)
    resumed = Recorder(fresh.agent, HORIZON, frames_per_timestep=NUM_ENVS)
    wanted, before = held(trained.agent), held(fresh.agent)
    assert set(wanted) == {f"{name}/{module}" for name in OBSERVED for module in EACH_AGENT_HAS}
    assert [name for name in wanted if wanted[name] == before[name]] == [], "equal parts would prove nothing"
    fresh.agent.load(str(tmp_path / "agent_32.pt"))
    assert held(fresh.agent) == wanted
    assert resumed.progress.timestep == 2 * HORIZON


def test_an_iterations_scalars_are_written_once_and_before_its_checkpoint(tmp_path: Path) -> None:
    written: list[tuple[str, int]] = []
    agent: Any = SimpleNamespace(
        checkpoint_modules={},
        checkpoint_best_modules={"modules": {}, "saved": False},
        experiment_dir=str(tmp_path),
        tracking_data={"Loss / Value loss": [1.0]},
        writer=SimpleNamespace(flush=lambda: None, close=lambda: written.append(("closed", 0))),
    )

    def write_tracking_data(*, timestep: int, timesteps: int) -> None:
        written.append(("scalars", timestep))
        agent.tracking_data.clear()

    def save(path: str) -> None:
        written.append(("checkpoint", timestep))
        Path(path).touch()

    agent.write_tracking_data, agent.save = write_tracking_data, save
    recorder = Recorder(agent, HORIZON, frames_per_timestep=4)
    timestep = HORIZON
    # skrl's own post_interaction makes these calls if both are due.
    agent.write_checkpoint(timestep=timestep, timesteps=100)
    agent.write_tracking_data(timestep=timestep, timesteps=100)
    assert written == [("scalars", HORIZON), ("checkpoint", HORIZON)]
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [f"agent_{HORIZON}.pt"]
    recorder.end(HORIZON)
    assert written[2:] == [("closed", 0)], "the last checkpoint was due and is not written again"
    recorder.end(HORIZON + 1)
    assert (tmp_path / "checkpoints" / f"agent_{HORIZON + 1}.pt").exists()
