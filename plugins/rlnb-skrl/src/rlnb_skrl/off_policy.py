"""rlnb's additions to skrl's off-policy agents: the replay buffer beside each checkpoint, and all their state in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from rlnb import RlnbError
from rlnb.backend import read_tensors, remove_older, write_tensors
from rlnb_skrl.companions import BUFFER
from rlnb_skrl.record import Recorder

OFF_POLICY = ("SAC", "TD3", "DDPG")
"""Names in agent configs of the algorithms that learn from a replay buffer."""
EPSILON_GREEDY = ("DQN", "DDQN")
"""Names in agent configs of the algorithms that explore with random actions instead of a distribution."""
TRANSITIONS = 1_000_000
"""Transitions of all envs that fit into a replay buffer whose config has ``memory_size: -1``."""
BUFFERS = 2
"""Number of newest checkpoints that keep their replay buffer. The older of them serves if the newest is damaged."""
COUNTERS = "counters"
"""Name of the memory's counters among the tensors of its file: the indexes of timestep and env, and 1 if it is full."""


def is_off_policy(agent_cfg: Any) -> bool:
    """Return whether an agent config is that of an off-policy algorithm."""
    return agent_cfg["agent"]["class"].upper() in OFF_POLICY


def set_memory_size(agent_cfg: Any, num_envs: int) -> None:
    """Replace, in place, a negative memory size by that of :data:`TRANSITIONS`. skrl counts the transitions per env."""
    memory = agent_cfg["memory"]
    if memory["memory_size"] < 0:
        memory["memory_size"] = max(1, TRANSITIONS // num_envs)


def act_as_learned(agent_cfg: Any, deterministic: bool) -> None:
    """Change an agent config, in place, for rollouts of a learned policy.

    Args:
        agent_cfg: The agent config.
        deterministic: Whether the policy acts without its exploration, which may be noise or random actions.
    """
    agent = agent_cfg["agent"]
    if agent["class"].upper() in EPSILON_GREEDY:
        agent["random_timesteps"] = 0
        if deterministic:
            agent["exploration_scheduler"] = None
    if not is_off_policy(agent_cfg):
        return
    agent["random_timesteps"] = 0
    if deterministic and "exploration_noise" in agent:
        agent["exploration_scheduler"] = "0.0"  # a factor of the noise


class AlgorithmState:
    """The state of an off-policy algorithm that skrl leaves out of its checkpoints."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent

    def state_dict(self) -> dict[str, Any]:
        """Return the state to save, as far as the algorithm has it."""
        state = {
            name: value for name, (owner, key) in self._places().items() if (value := vars(owner).get(key)) is not None
        }
        log = getattr(self._agent, "log_entropy_coefficient", None)
        return state if log is None else {**state, "log_temperature": log.detach()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state. The logarithm of the temperature stays the parameter of its optimiser."""
        for name, (owner, key) in self._places().items():
            if name in state:
                setattr(owner, key, state[name])
        if "log_temperature" in state:
            self._agent.log_entropy_coefficient.data.copy_(state["log_temperature"])

    def _places(self) -> dict[str, tuple[Any, str]]:
        """Return the object and its attribute that hold each value, by name of the value."""
        noise = getattr(self._agent, "_exploration_noise", None)
        places = {"temperature": (self._agent, "_entropy_coefficient"), "updates": (self._agent, "_update_counter")}
        return {**places, "noise": (noise, "state")} if noise is not None else places


class OffPolicyRecorder(Recorder):
    """A :class:`Recorder` of an algorithm with a replay buffer."""

    def __init__(self, agent: Any, horizon: int, frames_per_timestep: int) -> None:
        """Wrap an agent, as :class:`Recorder` does, and correct its transitions and random actions."""
        super().__init__(agent, horizon, frames_per_timestep)
        self._record, agent.record_transition = agent.record_transition, self._record_transition
        agent.policy.random_act = self._random_act

    def complete(self) -> None:
        """Add the state that skrl leaves out to the agent's checkpoints."""
        super().complete()
        modules = self._parts[0].modules
        modules["algorithm"] = AlgorithmState(self._agent)
        for name in ("policy_scheduler", "critic_scheduler"):
            if getattr(self._agent, name, None) is not None:
                modules[name] = getattr(self._agent, name)
        if self._agent.cfg.mixed_precision:
            modules["scaler"] = self._agent.scaler

    def write_companions(self, checkpoint: Path) -> None:
        """Write the replay buffer beside a checkpoint that is about to be written, without its empty part."""
        memory = self._agent.memory
        rows = memory.memory_size if memory.filled else memory.memory_index + bool(memory.env_index)
        counters = torch.tensor([memory.memory_index, memory.env_index, int(memory.filled)])
        tensors = {name: tensor[:rows] for name, tensor in memory.tensors.items()}
        write_tensors(_buffer_of(checkpoint), {**tensors, COUNTERS: counters})

    def load_companions(self, checkpoint: Path) -> None:
        """Load the replay buffer beside a checkpoint.

        Raises:
            RlnbError: The buffer does not exist, or has another size than the one of this training.
        """
        path, memory = _buffer_of(checkpoint), self._agent.memory
        if not path.exists():
            raise RlnbError(
                f"{checkpoint.name} has no replay buffer beside it. The last {BUFFERS} checkpoints of a run have one. "
                "Resume from one of them, or start a new run from the weights with init_from=."
            )
        saved = read_tensors(path)  # on the CPU, since a GPU may not have room for the buffer twice
        memory.memory_index, memory.env_index, filled = saved.pop(COUNTERS).tolist()
        memory.filled = bool(filled)
        for name, tensor in saved.items():
            buffer = memory.tensors[name]
            rows = buffer[: len(tensor)]
            if rows.shape != tensor.shape or (memory.filled and len(buffer) != len(tensor)):
                raise RlnbError(
                    f"{path.name} has {name} of shape {tuple(tensor.shape)}, which does not fit the replay buffer "
                    f"of this training, {tuple(buffer.shape)}. Use the num_envs and memory.memory_size of the run."
                )
            rows.copy_(tensor)

    def remove_companions(self, checkpoint: Path) -> None:
        """Remove the replay buffers of older checkpoints, which may be large."""
        remove_older(checkpoint.parent.glob(f"agent_*{BUFFER}"), keep=BUFFERS)

    def values(self) -> dict[str, float]:
        """Return the size of the replay buffer, the learning rate, and the standard deviation of the actions."""
        agent, policy = self._agent, self._agent.policy
        values = {
            "Memory / Transitions": float(len(agent.memory)),
            "Learning / Learning rate": float(agent.policy_optimizer.param_groups[0]["lr"]),
        }
        distribution = policy.distribution(role="policy") if hasattr(policy, "distribution") else None
        if distribution is not None:
            values["Policy / Standard deviation"] = float(distribution.stddev.mean().detach())
        return values

    def _record_transition(self, **transition: Any) -> None:
        """Record a transition whose next observation is not that of the next episode.

        Isaac Lab resets an env in the step in which its time is over, and returns the first observation of the next
        episode. Its value is not that of the state in which the time was over. The observation before the step is one
        step away from that state. RL-Games does the same. The values of terminated envs are not used.
        """
        truncated = transition["truncated"]
        for name in ("observations", "states"):
            if transition[name] is not None:
                transition[f"next_{name}"] = torch.where(truncated, transition[name], transition[f"next_{name}"])
        self._record(**transition)

    def _random_act(self, inputs: Mapping[str, Any], *, role: str = "") -> tuple[torch.Tensor, dict[str, Any]]:
        """Return actions that are uniform within the bounds of the action space, from torch's random numbers.

        skrl's own function returns the same actions at each call, which no seed of the training determines.
        """
        space, num_envs = self._agent.action_space, len(inputs["observations"])
        low, high = (torch.as_tensor(bound, device=self._agent.device) for bound in (space.low, space.high))
        return (low + (high - low) * torch.rand(num_envs, *space.shape, device=self._agent.device)).flatten(1), {}


def _buffer_of(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.stem}{BUFFER}")
