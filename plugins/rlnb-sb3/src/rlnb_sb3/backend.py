"""The heavy half: Stable-Baselines3's PPO on an Isaac Lab env. Runs in the worker."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from isaaclab.utils.io import dump_yaml
from isaaclab_rl.sb3 import Sb3VecEnvWrapper, process_sb3_cfg
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecNormalize

from rlnb import TrainContext, export_module, random_state, restore_random_state, vet_checkpoint, write_whole
from rlnb_sb3.actor import Actor

CHECKPOINTS = 10
"""Checkpoints of a run."""
NORMALISE = {"normalize_input": "norm_obs", "normalize_value": "norm_reward", "clip_obs": "clip_obs"}
"""Isaac Lab's names of what VecNormalize takes."""


class Sb3:
    """The :class:`rlnb.Backend` of Stable-Baselines3."""

    def train(self, env: Any, agent_cfg: Any, ctx: TrainContext) -> Sequence[torch.nn.Module]:
        """Train with PPO; resume where a checkpoint is given."""
        dump_yaml(str(ctx.log_dir / "params" / "agent.yaml"), agent_cfg)
        per_iteration = agent_cfg["n_steps"] * env.unwrapped.num_envs
        iterations = ctx.max_iterations or max(1, int(agent_cfg["n_timesteps"]) // per_iteration)
        agent = _agent(env, {**agent_cfg, "seed": ctx.seed}, ctx.device)
        agent.folder, agent.every = ctx.log_dir, max(1, iterations // CHECKPOINTS)
        agent.last = iterations
        agent.set_logger(configure(str(ctx.log_dir), ["tensorboard"]))
        if ctx.checkpoint is not None:
            agent.restore(ctx.checkpoint, ctx.trust)
            ctx.resumed(agent.keep)
        elif ctx.init_from is not None:
            agent.restore(ctx.init_from, ctx.trust, weights_only=True)
        ctx.started(
            horizon=agent.n_steps,
            frames_per_step=1.0,
            first_iteration=agent.num_timesteps // per_iteration,
            max_iterations=iterations,
        )
        left = iterations * per_iteration - agent.num_timesteps
        agent.learn(max(0, left), callback=_EnvLog(), log_interval=None, reset_num_timesteps=False)
        agent.logger.close()
        return [agent.policy]

    def load_policy(
        self, env: Any, agent_cfg: Any, checkpoint: Path, *, device: str, trust: bool, deterministic: bool = True
    ) -> Actor:
        """Return the checkpoint's policy, observation normaliser included."""
        agent = _agent(env, agent_cfg, device)
        agent.restore(checkpoint, trust, weights_only=True)
        return Actor(agent, deterministic)

    def export(
        self,
        env: Any,
        agent_cfg: Any,
        checkpoint: Path,
        folder: Path,
        *,
        formats: Sequence[str],
        device: str,
        trust: bool,
    ) -> Mapping[str, Path]:
        """Write ``policy.pt`` (TorchScript) and ``policy.onnx``: observations in, clipped mean actions out."""
        actor = self.load_policy(env, agent_cfg, checkpoint, device=device, trust=trust)
        return export_module(actor, env.reset()[0]["policy"], folder, formats)


def _agent(env: Any, agent_cfg: Mapping[str, Any], device: str) -> _Ppo:
    """Build the agent on the wrapped env, as Isaac Lab's own training does."""
    words = process_sb3_cfg(dict(agent_cfg), env.unwrapped.num_envs)
    policy, _ = words.pop("policy"), words.pop("n_timesteps")
    normalise = {ours: words.pop(theirs) for theirs, ours in NORMALISE.items() if theirs in words}
    wrapped: Any = Sb3VecEnvWrapper(env)
    if normalise.get("norm_obs"):
        wrapped = VecNormalize(wrapped, **{"norm_reward": False, "clip_obs": 100.0, **normalise}, clip_reward=np.inf)
    return _Ppo(policy, wrapped, **{**words, "device": device})


class _Ppo(PPO):
    """PPO that logs an iteration when it is over, and keeps safe, whole checkpoints instead of pickles."""

    folder: Path
    every: int
    last: int

    def collect_rollouts(self, *args: Any, **options: Any) -> bool:
        """Collect, and time it."""
        self._begun = time.monotonic()
        return super().collect_rollouts(*args, **options)

    def train(self) -> None:
        """Learn; log what was collected and learned; write a checkpoint now and then."""
        collected = time.monotonic()
        super().train()
        over = time.monotonic()
        self.logger.record("perf/fps", self.n_steps * self.n_envs / (over - self._begun))
        self.logger.record("perf/collection_s", collected - self._begun)
        self.logger.record("perf/learning_s", over - collected)
        self.logger.record("train/entropy", -self.logger.name_to_value["train/entropy_loss"])
        iteration = self.num_timesteps // (self.n_steps * self.n_envs)
        self.dump_logs(iteration)
        if iteration % self.every == 0 or iteration >= self.last:
            write_whole(self.folder / f"model_{iteration}.pt", self.keep)

    def keep(self, path: str) -> None:
        """Write a checkpoint: models, optimiser, normaliser, counter and random numbers."""
        normaliser = self.get_vec_normalize_env()
        running = {} if normaliser is None else {"obs": normaliser.obs_rms, "return": normaliser.ret_rms}
        state = {
            "policy": self.policy.state_dict(),
            "optimizer": self.policy.optimizer.state_dict(),
            "num_timesteps": self.num_timesteps,
            "normaliser": {
                name: {key: torch.as_tensor(value) for key, value in vars(rms).items()} for name, rms in running.items()
            },
            "random_state": random_state(),
        }
        torch.save(state, path)

    def restore(self, path: Path, trust: bool, *, weights_only: bool = False) -> None:
        """Load a checkpoint of :meth:`keep`; of its weights only, or all of it."""
        vet_checkpoint(path, trust)
        state = torch.load(path, map_location=self.device, weights_only=not trust)
        self.policy.load_state_dict(state["policy"])
        normaliser = self.get_vec_normalize_env()
        for name, values in state["normaliser"].items():
            rms = normaliser.obs_rms if name == "obs" else normaliser.ret_rms
            vars(rms).update({key: np.asarray(value.cpu())[()] for key, value in values.items()})
        if not weights_only:
            self.policy.optimizer.load_state_dict(state["optimizer"])
            self.num_timesteps = state["num_timesteps"]
            restore_random_state(state["random_state"])


class _EnvLog(BaseCallback):
    """Logs what the env says of ended episodes, which the wrapper leaves out."""

    def _on_step(self) -> bool:
        if self.locals["dones"].any():
            for name, value in self.training_env.unwrapped.extras.get("log", {}).items():
                self.logger.record_mean(name, float(value))
        return True
