"""The backend, which runs Stable-Baselines3's PPO on an Isaac Lab env in the worker process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from isaaclab.utils.io import dump_yaml
from isaaclab_rl.sb3 import Sb3VecEnvWrapper, process_sb3_cfg
from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecNormalize

from rlnb import RlnbError
from rlnb.backend import TrainContext, random_state, restore_random_state, vet_checkpoint, write_whole
from rlnb_sb3 import stock
from rlnb_sb3.actor import Actor
from rlnb_sb3.pictures import with_extractor

CHECKPOINTS = 10
"""Number of checkpoints in a run."""
NORMALISE = {"normalize_input": "norm_obs", "normalize_value": "norm_reward", "clip_obs": "clip_obs"}
"""Isaac Lab's names of VecNormalize's arguments, mapped to VecNormalize's own."""


class Sb3:
    """The :class:`rlnb.backend.Backend` of Stable-Baselines3."""

    def train(self, env: Any, agent_cfg: Any, ctx: TrainContext) -> Sequence[torch.nn.Module]:
        """Train with PPO; resume if a checkpoint is given."""
        dump_yaml(str(ctx.log_dir / "params" / "agent.yaml"), {**agent_cfg, "seed": ctx.seed})
        logged = _Logged(env)
        agent = _agent(logged, {**agent_cfg, "seed": ctx.seed}, ctx.device)
        frames = agent.n_steps * agent.n_envs
        iterations = ctx.max_iterations or max(1, int(agent_cfg["n_timesteps"]) // frames)
        agent.ctx, agent.last = ctx, iterations
        agent.set_logger(configure(str(ctx.log_dir), ["tensorboard"]))
        if source := ctx.checkpoint or ctx.init_from:
            agent.restore(source, ctx.trust, weights_only=ctx.checkpoint is None)
        if ctx.checkpoint is not None:
            ctx.resumed(agent.keep)
        first = agent.num_timesteps // frames
        ctx.started(horizon=agent.n_steps, frames_per_step=1.0, max_iterations=iterations, first_iteration=first)
        # The third argument, SB3's log interval, turns SB3's logging off, because the agent logs by itself.
        agent.learn(max(0, iterations - first) * frames, logged.to_agent, iterations + 1, reset_num_timesteps=False)
        agent.logger.close()
        return [agent.policy]

    def load_policy(
        self, env: Any, agent_cfg: Any, checkpoint: Path, *, device: str, trust: bool, deterministic: bool = True
    ) -> Actor:
        """Return the checkpoint's policy, observation normaliser included."""
        agent = _agent(env, agent_cfg, device)
        agent.restore(checkpoint, trust, weights_only=True)
        return Actor(agent, deterministic)


def _agent(env: Any, agent_cfg: Mapping[str, Any], device: str) -> _Ppo:
    """Return an agent on the wrapped env, built like in Isaac Lab's own training."""
    options = process_sb3_cfg(dict(agent_cfg), env.unwrapped.num_envs)
    policy, _ = options.pop("policy"), options.pop("n_timesteps")
    normalise = {ours: options.pop(theirs) for theirs, ours in NORMALISE.items() if theirs in options}
    venv: Any = Sb3VecEnvWrapper(env)
    if normalise.get("norm_obs"):
        venv = VecNormalize(venv, **{"norm_reward": False, "clip_obs": 100.0, **normalise}, clip_reward=np.inf)
    return _Ppo(policy, venv, **{**with_extractor(policy, venv.observation_space, options), "device": device})


class _Ppo(PPO):
    """PPO that logs each iteration at its end, and writes complete checkpoints of tensors instead of pickles."""

    ctx: TrainContext
    last: int

    def collect_rollouts(self, *args: Any, **options: Any) -> bool:
        """Collect rollouts, and record the start time."""
        self._start_s = time.monotonic()
        return super().collect_rollouts(*args, **options)

    def train(self) -> None:
        """Learn, log the iteration, and write a checkpoint if one is due."""
        middle_s = time.monotonic()
        super().train()
        end_s, frames = time.monotonic(), self.n_steps * self.n_envs
        self.logger.record("perf/fps", frames / (end_s - self._start_s))
        self.logger.record("perf/collection_s", middle_s - self._start_s)
        self.logger.record("perf/learning_s", end_s - middle_s)
        self.logger.record("train/entropy", -self.logger.name_to_value["train/entropy_loss"])
        self.dump_logs(iteration := self.num_timesteps // frames)
        if iteration % max(1, self.last // CHECKPOINTS) == 0 or iteration == self.last:
            write_whole(self.ctx.log_dir / f"model_{iteration}.pt", self.keep)
        self.ctx.iteration_finished(lambda: write_whole(self.ctx.log_dir / f"model_{iteration}.pt", self.keep))

    def keep(self, path: str) -> None:
        """Write a checkpoint: models, optimiser, normaliser, step counter and random state."""
        tensors = {name: {key: torch.as_tensor(x) for key, x in one.items()} for name, one in self._moments().items()}
        state = {"num_timesteps": self.num_timesteps, "random_state": random_state(), "normaliser": tensors}
        torch.save(state | {"policy": self.policy.state_dict(), "optimizer": self.policy.optimizer.state_dict()}, path)

    def restore(self, path: Path, trust: bool, *, weights_only: bool = False) -> None:
        """Load a checkpoint written by :meth:`keep`, all of it or only the weights, or the weights of stock's."""
        if path.suffix == stock.SUFFIX:
            return stock.load_weights(self, path, trust)
        vet_checkpoint(path, trust)
        state = torch.load(path, map_location="cpu", weights_only=not trust)
        if (normalised := bool(state["normaliser"])) != bool(self._moments()):
            raise RlnbError(f"{path} has normalize_input={normalised}, but this agent has {not normalised}.")
        self.policy.load_state_dict(state["policy"])
        for name, moments in self._moments().items():
            moments.update({key: np.asarray(value)[()] for key, value in state["normaliser"][name].items()})
        if not weights_only:
            self.policy.optimizer.load_state_dict(state["optimizer"])
            self.num_timesteps = state["num_timesteps"]
            restore_random_state(state["random_state"])

    def _moments(self) -> dict[str, dict[str, np.ndarray | float]]:
        """Return the normaliser's running statistics, which may be modified; an empty dict without a normaliser."""
        return {"obs": vars(n.obs_rms), "return": vars(n.ret_rms)} if (n := self.get_vec_normalize_env()) else {}


class _Logged(gymnasium.Wrapper):  # type: ignore[type-arg]
    """An env that keeps what it has logged in its last step, which Isaac Lab's wrapper leaves out."""

    log: Mapping[str, torch.Tensor] = {}

    def step(self, action: torch.Tensor) -> Any:
        """Step the env."""
        outcome = self.env.step(action)
        self.log = outcome[-1].get("log", {})
        return outcome

    def to_agent(self, local: dict[str, Any], _: Any) -> bool:
        """Add the values to those of the iteration, whose means SB3 logs. SB3 calls this after each step."""
        for name, value in self.log.items():
            local["self"].logger.record_mean(name, float(value))
        return True
