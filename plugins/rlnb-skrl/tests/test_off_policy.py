"""The recorder of off-policy agents: resumed trainings go on bit by bit as if they had not been interrupted."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("skrl")
import gymnasium
import torch
from rlnb_skrl import off_policy
from rlnb_skrl.bounded import BoundedActions
from rlnb_skrl.companions import BUFFER
from rlnb_skrl.off_policy import OffPolicyRecorder
from rlnb_skrl.part import parts
from skrl.envs.wrappers.torch.base import Wrapper
from skrl.utils.runner.torch import Runner

from rlnb import RlnbError
from rlnb.hooks import plugins
from rlnb.hooks.plugins import agent_config

HORIZON, NUM_ENVS, LIMIT = 8, 4, 6
ALGORITHMS = ("SAC", "TD3", "DDPG")
START = 0.5
"""The first observation of an episode."""


class Drift(Wrapper):
    """Points that drift, whose actions push them back. A reset continues, so that a resumed training sees no jump."""

    def __init__(self) -> None:
        box = gymnasium.spaces.Box
        spaces = {"observation_space": box(-9.0, 9.0, (3,)), "action_space": box(-float("inf"), float("inf"), (1,))}
        super().__init__(SimpleNamespace(device="cpu", num_envs=NUM_ENVS, state_space=None, **spaces))
        self.noise = torch.Generator().manual_seed(7)
        self.points, self.ages = torch.zeros(NUM_ENVS, 3), torch.arange(NUM_ENVS)

    def copy(self) -> Drift:
        """Return another env in the same state."""
        other = Drift()
        other.noise.set_state(self.noise.get_state())
        other.points, other.ages = self.points.clone(), self.ages.clone()
        return other

    def reset(self) -> tuple[torch.Tensor, dict[str, Any]]:
        return self.points.clone(), {}

    def step(self, actions: torch.Tensor) -> tuple[Any, ...]:
        self.points = 0.9 * self.points + 0.3 * actions + torch.randn(NUM_ENVS, 3, generator=self.noise)
        self.ages += 1
        terminated = self.points[:, :1] > 1.0
        truncated = (self.ages >= LIMIT)[:, None]
        self.points[(terminated | truncated)[:, 0]] = START
        self.ages[(terminated | truncated)[:, 0]] = 0
        return self.points.clone(), -self.points.abs().sum(1, keepdim=True), terminated, truncated, {}

    def state(self) -> None: ...

    def render(self) -> None: ...

    def close(self) -> None: ...


def config(algorithm: str, **agent: Any) -> dict[str, Any]:
    """Return the default config of an algorithm, with small networks; DDPG has that of TD3 with one critic."""
    library = {"SAC": "skrl_sac"}.get(algorithm, "skrl_td3")
    cfg: dict[str, Any] = agent_config(plugins.library(library).default_agent)
    if algorithm == "DDPG":
        models, removed = cfg["models"], ("policy_delay", "smooth_regularization")
        cfg["models"] = {name.removesuffix("_1"): model for name, model in models.items() if not name.endswith("_2")}
        cfg["agent"] = {key: value for key, value in cfg["agent"].items() if not key.startswith(removed)}
    for model in cfg["models"].values():
        if isinstance(model, dict):
            model["network"][0]["layers"] = [8]
    cfg["memory"]["memory_size"] = 50
    cfg["agent"] |= {
        "class": algorithm,
        "batch_size": 8,
        "gradient_steps": 3,
        "learning_starts": 5,
        "random_timesteps": 3,
    }
    cfg["agent"] |= agent
    return cfg


class Training:
    """A training in the given folder, with its recorder; ``env`` continues if it was used before."""

    def __init__(
        self, cfg: dict[str, Any], folder: Path, *, seed: int, timesteps: int, env: Drift | None = None
    ) -> None:
        cfg = copy.deepcopy(cfg)
        cfg["seed"] = seed
        cfg["agent"]["experiment"] |= {
            "directory": str(folder.parent),
            "experiment_name": folder.name,
            "write_interval": HORIZON,
            "checkpoint_interval": HORIZON,
        }
        cfg["trainer"] |= {"timesteps": timesteps, "close_environment_at_exit": False, "disable_progressbar": True}
        self.env = Drift() if env is None else env
        self.runner = Runner(BoundedActions(self.env), cfg)
        self.agent = self.runner.agent
        self.recorder = OffPolicyRecorder(self.agent, HORIZON, frames_per_timestep=NUM_ENVS)

    def resume(self, checkpoint: Path) -> Training:
        self.agent.load(str(checkpoint))
        self.recorder.load_companions(checkpoint)
        self.recorder.start_at(self.recorder.progress.timestep)
        return self

    def state(self) -> dict[str, str]:
        """Return all that the training has learned and collected, as text."""
        torch.set_printoptions(threshold=10**6, precision=10)
        memory = self.agent.memory
        state = {name: str(one.state_dict()) for name, one in parts(self.agent)[0].modules.items()}
        return state | {name: str(tensor) for name, tensor in memory.tensors.items()} | {"size": str(len(memory))}


def interrupted(cfg: dict[str, Any], folder: Path) -> tuple[Training, Training]:
    """Return an uninterrupted training of four iterations, and one that was resumed after the second."""
    whole = Training(cfg, folder / "whole", seed=1, timesteps=4 * HORIZON)
    envs: list[Drift] = []
    whole.recorder.iteration_finished = lambda save: envs.append(whole.env.copy())
    whole.runner.run()
    resumed = Training(cfg, folder / "resumed", seed=2, timesteps=2 * HORIZON, env=envs[1])
    resumed.resume(folder / "whole" / "checkpoints" / f"agent_{2 * HORIZON}.pt").runner.run()
    return whole, resumed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_resumed_training_equals_the_uninterrupted_one(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(off_policy, "BUFFERS", 4)
    whole, resumed = interrupted(config(algorithm), tmp_path)
    assert resumed.state() == whole.state()
    assert resumed.recorder.progress.timestep == 4 * HORIZON


def test_a_full_buffer_and_correlated_noise_are_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(off_policy, "BUFFERS", 4)
    noise = {"theta": 0.15, "sigma": 0.2, "base_scale": 1.0}
    cfg = config("TD3", exploration_noise="OrnsteinUhlenbeckNoise", exploration_noise_kwargs=noise)
    cfg["memory"]["memory_size"] = 11
    whole, resumed = interrupted(cfg, tmp_path)
    assert whole.agent.memory.filled
    assert resumed.state() == whole.state()


def test_schedulers_are_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(off_policy, "BUFFERS", 4)
    whole, resumed = interrupted(config("SAC"), tmp_path)
    assert "policy_scheduler" not in whole.state()
    kind = torch.optim.lr_scheduler.StepLR
    for training in (whole, resumed):
        training.agent.policy_scheduler = kind(training.agent.policy_optimizer, 1)
    whole.agent.policy_optimizer.step()
    whole.agent.policy_scheduler.step()
    for training in (whole, resumed):
        training.recorder.complete()
    assert whole.state()["policy_scheduler"] != resumed.state()["policy_scheduler"]
    whole.recorder.save(str(tmp_path / "agent_1.pt"))
    resumed.agent.load(str(tmp_path / "agent_1.pt"))
    assert whole.state()["policy_scheduler"] == resumed.state()["policy_scheduler"]


def test_only_the_newest_checkpoints_keep_their_buffers(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    training = Training(config("SAC"), folder, seed=1, timesteps=4 * HORIZON)
    training.runner.run()
    names = {path.name for path in (folder / "checkpoints").iterdir() if not path.name.startswith("best")}
    numbers = [HORIZON * n for n in (1, 2, 3, 4)]
    assert names == {f"agent_{n}.pt" for n in numbers} | {f"agent_{n}{BUFFER}" for n in numbers[-off_policy.BUFFERS :]}
    first = folder / "checkpoints" / f"agent_{HORIZON}.pt"
    with pytest.raises(RlnbError, match=f"agent_{HORIZON}.pt has no replay buffer beside it"):
        Training(config("SAC"), tmp_path / "again", seed=1, timesteps=HORIZON).resume(first)


def test_a_buffer_is_not_twice_on_its_gpu(tmp_path: Path) -> None:
    whole = Training(config("SAC"), tmp_path / "logs", seed=1, timesteps=HORIZON)
    whole.runner.run()
    other = Training(config("SAC"), tmp_path / "again", seed=2, timesteps=HORIZON)
    other.agent.memory.device = torch.device("cuda:63")  # no tensor can be there
    other.recorder.load_companions(tmp_path / "logs" / "checkpoints" / f"agent_{HORIZON}.pt")
    rewards = [training.agent.memory.tensors["rewards"][:HORIZON] for training in (whole, other)]
    assert torch.equal(*rewards)


def test_a_buffer_of_another_size_is_refused(tmp_path: Path) -> None:
    Training(config("SAC"), tmp_path / "logs", seed=1, timesteps=2 * HORIZON).runner.run()
    small = config("SAC")
    small["memory"]["memory_size"] = HORIZON
    with pytest.raises(RlnbError, match=r"does not fit the replay buffer of this training, \(8, 4, 3\)"):
        Training(small, tmp_path / "small", seed=1, timesteps=HORIZON).resume(
            tmp_path / "logs" / "checkpoints" / f"agent_{2 * HORIZON}.pt"
        )


def test_the_next_observation_of_a_time_out_is_not_that_of_the_next_episode(tmp_path: Path) -> None:
    training = Training(config("SAC"), tmp_path / "logs", seed=1, timesteps=2 * HORIZON)
    training.runner.run()
    tensors = training.agent.memory.tensors
    first = (tensors["next_observations"][: 2 * HORIZON] == START).all(-1)
    assert first.any()
    assert tensors["terminated"][: 2 * HORIZON, :, 0][first].all(), "the value of a terminated env is not used"


def test_random_actions_differ_are_within_the_bounds_and_follow_torchs_seed(tmp_path: Path) -> None:
    training = Training(config("SAC"), tmp_path / "logs", seed=1, timesteps=HORIZON)
    inputs = {"observations": torch.zeros(100, 3)}

    def draw() -> tuple[torch.Tensor, torch.Tensor]:
        torch.manual_seed(1)
        one, other = (training.agent.policy.random_act(inputs)[0] for _ in range(2))
        return one, other

    (one, other), again = draw(), draw()
    assert one.shape == (100, 1)
    assert not torch.equal(one, other)
    assert torch.equal(one, again[0])
    assert -1.0 <= one.min() < -0.8
    assert 0.8 < one.max() <= 1.0


def test_an_iteration_logs_the_buffer_the_temperature_and_the_losses(tmp_path: Path) -> None:
    for name in ("sac", "td3"):
        training = Training(config(name.upper()), tmp_path / name, seed=1, timesteps=2 * HORIZON)
        rows: dict[str, list[float]] = {}
        training.agent.writer.add_scalar = lambda *, tag, value, timestep, rows=rows: rows.setdefault(tag, []).append(
            value
        )
        training.runner.run()
        metrics = plugins.library(f"skrl_{name}").metrics
        tags = {metrics[metric] for metric in metrics if metric not in ("success_rate",)}
        assert tags - rows.keys() == set()
        assert rows[metrics["buffer_size"]] == [HORIZON * NUM_ENVS, 2 * HORIZON * NUM_ENVS]
        rates = training.runner.agent.cfg.learning_rate
        assert rows[metrics["learning_rate"]] == [rates[0]] * 2


def test_a_negative_memory_size_is_a_million_transitions_of_all_envs() -> None:
    cfg = {"memory": {"memory_size": -1}}
    off_policy.set_memory_size(cfg, 64)
    assert cfg["memory"]["memory_size"] == 15625
    off_policy.set_memory_size(cfg, 8)
    assert cfg["memory"]["memory_size"] == 15625, "a size of the user is kept"


def test_rollouts_of_a_learned_policy_are_not_random() -> None:
    cfg = config("TD3")
    off_policy.act_as_learned(cfg, deterministic=False)
    assert cfg["agent"]["random_timesteps"] == 0
    assert "exploration_scheduler" not in cfg["agent"]
    off_policy.act_as_learned(cfg, deterministic=True)
    assert cfg["agent"]["exploration_scheduler"] == "0.0"
