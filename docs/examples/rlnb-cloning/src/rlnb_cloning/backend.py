"""The heavy half: a network learns the recorded actions for the recorded observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.tensorboard import SummaryWriter

from rlnb import RlnbError
from rlnb.backend import TrainContext, random_state, restore_random_state, vet_checkpoint, write_whole

Agent = Mapping[str, Any]


class Actor(torch.nn.Module):
    """A policy that rlnb also exports, because it is a feed-forward module of the group ``policy``."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, num_observations: int, num_actions: int, hidden: int) -> None:
        super().__init__()
        self.network = torch.nn.Sequential(
            torch.nn.Linear(num_observations, hidden),
            torch.nn.ELU(),
            torch.nn.Linear(hidden, num_actions),
        )
        self.register_buffer("mean", torch.zeros(num_observations))
        self.register_buffer("std", torch.ones(num_observations))

    def forward(self, obs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return actions, shape (num_envs, action_dim)."""
        return self.network((obs["policy"] - self.mean) / self.std)

    def reset(self, dones: torch.Tensor) -> None:
        """Do nothing: the policy has no state."""


class Cloning:
    """The :class:`rlnb.backend.Backend` of behaviour cloning."""

    def train(self, env: Any, agent_cfg: Agent, ctx: TrainContext) -> Sequence[torch.nn.Module]:
        """Learn from the input ``demos``. The env is not stepped."""
        torch.manual_seed(ctx.seed)
        observations, actions = (
            _recorded(ctx.inputs["demos"], key).to(ctx.device) for key in ("obs.policy", "actions")
        )
        actor = _actor(env, agent_cfg, ctx.device)
        actor.mean.copy_(observations.mean(dim=0))
        actor.std.copy_(observations.std(dim=0) + 1e-6)
        optimizer = torch.optim.Adam(actor.parameters(), lr=agent_cfg["learning_rate"])
        first, total = 0, ctx.max_iterations or int(agent_cfg["max_iterations"])
        if ctx.checkpoint is not None:
            state = _load(ctx.checkpoint, ctx.device, ctx.trust)
            actor.load_state_dict(state["actor"])
            optimizer.load_state_dict(state["optimizer"])
            restore_random_state(state["random_state"])
            ctx.resumed(partial(_save, actor, optimizer, state["iteration"]))
            first = state["iteration"] + 1  # the checkpoint has the last finished iteration
        elif ctx.init_from is not None:
            actor.load_state_dict(_load(ctx.init_from, ctx.device, ctx.trust)["actor"])
        horizon = max(1, len(observations) // (num_envs := env.unwrapped.num_envs))
        ctx.started(horizon=horizon, frames_per_step=horizon * num_envs, first_iteration=first, max_iterations=total)
        with SummaryWriter(str(ctx.log_dir), flush_secs=1) as events:
            for iteration in range(first, total):
                loss = _pass(actor, optimizer, observations, actions, int(agent_cfg["batch_size"]))
                events.add_scalar("Loss/cloning", loss, iteration)
                write = partial(_save, actor, optimizer, iteration)
                save = partial(write_whole, ctx.log_dir / f"model_{iteration}.pt", write)
                if (iteration + 1) % agent_cfg["save_interval"] == 0 or iteration == total - 1:
                    save()
                ctx.iteration_finished(save)
        return [actor]

    def load_policy(
        self, env: Any, agent_cfg: Agent, checkpoint: Path, *, device: str, trust: bool, deterministic: bool = True
    ) -> Actor:
        """Return the policy of a checkpoint. It has no noise, so it is the same if it is to sample."""
        actor = _actor(env, agent_cfg, device)
        actor.load_state_dict(_load(checkpoint, device, trust)["actor"])
        return actor.eval()


def _recorded(demos: Path, name: str) -> torch.Tensor:
    """Return an array of recorded steps, shape (rows, size)."""
    with np.load(demos, allow_pickle=False) as arrays:
        if name not in arrays:
            raise RlnbError(f"{demos.name} has no {name!r}, only {', '.join(arrays)}. Use run.evaluate(record=10_000).")
        return torch.as_tensor(arrays[name], dtype=torch.float32)


def _actor(env: Any, agent_cfg: Agent, device: str) -> Actor:
    spaces = env.unwrapped.single_observation_space["policy"], env.unwrapped.single_action_space
    return Actor(spaces[0].shape[0], spaces[1].shape[0], int(agent_cfg["hidden"])).to(device)


def _pass(actor: Actor, optimizer: Any, observations: torch.Tensor, actions: torch.Tensor, batch_size: int) -> float:
    """Learn from every recorded step once, and return the mean loss."""
    losses = []
    for rows in torch.randperm(len(observations)).to(observations.device).split(batch_size):
        loss = torch.nn.functional.mse_loss(actor({"policy": observations[rows]}), actions[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return float(np.mean(losses))


def _save(actor: Actor, optimizer: Any, iteration: int, path: str) -> None:
    state = {"iteration": iteration, "random_state": random_state()}
    torch.save({**state, "actor": actor.state_dict(), "optimizer": optimizer.state_dict()}, path)


def _load(checkpoint: Path, device: str, trust: bool) -> dict[str, Any]:
    vet_checkpoint(checkpoint, trust)
    return torch.load(checkpoint, map_location=device, weights_only=not trust)
