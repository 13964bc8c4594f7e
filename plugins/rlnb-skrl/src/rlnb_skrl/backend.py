"""The backend, which runs skrl on an Isaac Lab env in the worker process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import skrl
import torch
from isaaclab.utils.io import dump_yaml
from isaaclab_rl.skrl import SkrlVecEnvWrapper
from skrl.utils.runner.torch import Runner
from skrl.utils.spaces.torch import flatten_tensorized_space, tensorize_space, unflatten_tensorized_space

from rlnb import RlnbError
from rlnb.backend import Policy, TrainContext, export_module, vet_checkpoint
from rlnb_skrl import off_policy
from rlnb_skrl.actor import Actor
from rlnb_skrl.bounded import BoundedActions
from rlnb_skrl.part import parts
from rlnb_skrl.record import Recorder
from rlnb_skrl.select import Selection

HORIZON = 32
"""Timesteps per iteration of an off-policy agent whose config has ``write_interval: auto``."""
MULTI_AGENT = ("IPPO", "MAPPO")
"""Names of skrl's multi-agent algorithms in agent configs."""
CHECKPOINTS = 10
"""Number of checkpoints in a run whose config has ``checkpoint_interval: auto``."""


class OneAgent:
    """A skrl agent as a policy that takes Isaac Lab's observation dict."""

    def __init__(self, agent: Any, wrapper: Any, selections: Mapping[str, Selection] | None) -> None:
        """Wrap an agent.

        Args:
            agent: The agent of skrl.
            wrapper: The wrapped env.
            selections: Selection of the most likely actions by name of the part; None for a policy that samples.
        """
        self._agent, self._wrapper, self._selections = agent, wrapper, selections

    def __call__(self, obs: Any) -> torch.Tensor:
        """Return actions, shape (num_envs, action_dim)."""
        wrapper = self._wrapper
        observations = flatten_tensorized_space(tensorize_space(wrapper.observation_space, obs["policy"]))
        states = None
        if "critic" in obs:
            states = flatten_tensorized_space(tensorize_space(wrapper.state_space, obs["critic"]))
        return unflatten_tensorized_space(wrapper.action_space, self.act(observations, states))

    def act(self, observations: torch.Tensor, states: torch.Tensor | None) -> torch.Tensor:
        """Return flat actions for flat observations and states, each of shape (num_envs, size)."""
        actions, outputs = self._agent.act(observations, states, timestep=0, timesteps=0)
        return self._select("", actions, outputs)

    def _select(self, name: str, sampled: torch.Tensor, outputs: Mapping[str, Any]) -> torch.Tensor:
        """Return the most likely actions of a part if the policy is deterministic, else the sampled ones."""
        return sampled if self._selections is None else self._selections[name].of_rollout(sampled, outputs)

    def reset(self, dones: torch.Tensor) -> None:
        """Do nothing: skrl's runner builds only feed-forward policies, which have no state."""


class Skrl:
    """The :class:`rlnb.backend.Backend` for skrl."""

    has_replay: bool = True
    """Whether the backend trains algorithms with a replay buffer."""
    recorder: type[Recorder] = Recorder
    policy: type[OneAgent] = OneAgent

    def train(self, env: Any, agent_cfg: Any, ctx: TrainContext) -> Sequence[torch.nn.Module]:
        """Train with skrl's own runner; resume if a checkpoint is given."""
        horizon, timesteps = _set_up_training(agent_cfg, ctx)
        agent_cfg["seed"] = ctx.seed
        if ctx.rank == 0:
            dump_yaml(str(ctx.log_dir / "params" / "agent.yaml"), agent_cfg)
        _refuse_several_ranks(agent_cfg, ctx)
        runner, wrapper = self._runner(env, agent_cfg, ctx.device, ctx.seed)
        num_envs = wrapper.num_envs * ctx.world_size
        recorder = self._recorder(agent_cfg)(runner.agent, horizon, num_envs)
        recorder.pool_statistics(ctx)
        first = _load(runner, recorder, ctx)
        if ctx.checkpoint is not None:
            runner.trainer.cfg.timesteps = max(0, timesteps - first)
        ctx.started(
            horizon=horizon,
            frames_per_step=float(num_envs),
            first_iteration=first // horizon,
            max_iterations=timesteps // horizon,
            num_envs=num_envs,
        )
        recorder.begin()
        recorder.iteration_finished = ctx.iteration_finished
        runner.run()
        if ctx.rank == 0:
            recorder.end(timesteps)
        return recorder.modules()

    def load_policy(
        self, env: Any, agent_cfg: Any, checkpoint: Path, *, device: str, trust: bool, deterministic: bool = True
    ) -> Policy:
        """Return the checkpoint's policy, observation preprocessor included."""
        off_policy.act_as_learned(agent_cfg, deterministic)
        runner, wrapper = self._restored(env, agent_cfg, checkpoint, device, trust)
        selections = _selections(runner.agent, agent_cfg, wrapper, device) if deterministic else None
        return (_Policies if _several(env) else self.policy)(runner.agent, wrapper, selections)

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
        """Write ``policy.pt`` (TorchScript) and ``policy.onnx``: observations in, most likely actions out.

        For several agents, write one policy per agent to a folder of its own, because their observations differ.
        """
        runner, wrapper = self._restored(env, agent_cfg, checkpoint, device, trust)
        observations, _ = wrapper.reset()
        selections = _selections(runner.agent, agent_cfg, wrapper, "cpu")  # where export_module traces the policy
        paths: dict[str, Path] = {}
        for part in parts(runner.agent):
            part_folder = folder / part.name
            part_folder.mkdir(exist_ok=True)
            actor = Actor(part, selections[part.name])
            files = export_module(actor, part.of(observations), part_folder, formats)
            paths.update({f"{part.name}/{name}" if part.name else name: path for name, path in files.items()})
        return paths

    def runner(self, env: Any, agent_cfg: Any, device: str, seed: int) -> tuple[Any, Any]:
        """Return skrl's runner and the wrapped env."""
        skrl.config.torch.device = device
        # skrl's env wrapper reseeds the env with this key at its first reset; skrl's runner sets the key too late.
        skrl.config.torch.key = seed
        wrapper = SkrlVecEnvWrapper(env, ml_framework="torch")
        if off_policy.is_off_policy(agent_cfg):
            wrapper = BoundedActions(wrapper)
        return Runner(wrapper, agent_cfg), wrapper

    def load(self, agent: Any, checkpoint: Path) -> None:
        """Load a vetted checkpoint for rollouts."""
        agent.load(str(checkpoint))

    def _runner(self, env: Any, agent_cfg: Any, device: str, seed: int) -> tuple[Any, Any]:
        algorithm, several = agent_cfg["agent"]["class"], _several(env)
        if several != (algorithm.upper() in MULTI_AGENT):
            # skrl would train only the first agent, or fail with an unrelated error.
            agents, names = "several agents" if several else "one agent", " and ".join(MULTI_AGENT)
            raise RlnbError(
                f"agent.class {algorithm!r} is not an algorithm for {agents}. "
                f"{names} are for several agents; all others are for one agent."
            )
        if off_policy.is_off_policy(agent_cfg):
            if not self.has_replay:
                raise RlnbError(f'{algorithm} does not train in JAX. Use library="skrl_{algorithm.lower()}".')
            off_policy.set_memory_size(agent_cfg, env.unwrapped.num_envs)
        agent_cfg["seed"] = seed
        agent_cfg["trainer"].update(close_environment_at_exit=False, disable_progressbar=True)
        agent_cfg["trainer"].setdefault("environment_info", "log")  # where Isaac Lab's envs log
        return self.runner(env, agent_cfg, device, seed)

    def _recorder(self, agent_cfg: Any) -> type[Recorder]:
        return off_policy.OffPolicyRecorder if off_policy.is_off_policy(agent_cfg) else self.recorder

    def _restored(self, env: Any, agent_cfg: Any, checkpoint: Path, device: str, trust: bool) -> tuple[Any, Any]:
        vet_checkpoint(checkpoint, trust)
        # Otherwise skrl creates a folder for events and checkpoints in the working directory.
        agent_cfg["agent"]["experiment"].update(write_interval=0, checkpoint_interval=0)
        if off_policy.is_off_policy(agent_cfg):
            agent_cfg["memory"]["memory_size"] = 1  # rollouts need no replay buffer
        runner, wrapper = self._runner(env, agent_cfg, device, int(agent_cfg["seed"]))
        self.load(runner.agent, checkpoint)
        runner.agent.enable_training_mode(False, apply_to_models=True)
        return runner, wrapper


class _Policies(OneAgent):
    """A multi-agent algorithm of skrl as a policy that takes a dict of observations by agent."""

    def __call__(self, obs: Any) -> Any:
        """Return actions by agent, each of shape (num_envs, action_dim)."""
        wrapper = self._wrapper
        observations = {
            name: flatten_tensorized_space(tensorize_space(wrapper.observation_spaces[name], tensor))
            for name, tensor in obs.items()
        }
        actions, outputs = self._agent.act(observations, wrapper.state(), timestep=0, timesteps=0)
        return {
            name: unflatten_tensorized_space(wrapper.action_spaces[name], self._select(name, sampled, outputs[name]))
            for name, sampled in actions.items()
        }


def _set_up_training(agent_cfg: Any, ctx: TrainContext) -> tuple[int, int]:
    """Write this training's length and folder into the agent config; return timesteps per iteration and in total."""
    agent, trainer = agent_cfg["agent"], agent_cfg["trainer"]
    interval = agent["experiment"].get("write_interval")
    horizon = int(agent.get("rollouts", interval if isinstance(interval, int) else HORIZON))
    if ctx.max_iterations is not None:
        trainer["timesteps"] = ctx.max_iterations * horizon
    timesteps = int(trainer["timesteps"])
    experiment = agent["experiment"]
    experiment.update(directory=str(ctx.log_dir.parent), experiment_name=ctx.log_dir.name, write_interval=horizon)
    experiment["checkpoint_interval"] = _whole_iterations(experiment["checkpoint_interval"], timesteps, horizon)
    return horizon, timesteps


def _refuse_several_ranks(agent_cfg: Any, ctx: TrainContext) -> None:
    """With several ranks, refuse an agent config that cannot learn on them."""
    if ctx.world_size > 1 and off_policy.is_off_policy(agent_cfg):
        # skrl does not synchronise the temperature, and only rank 0 writes its replay buffer.
        raise RlnbError(f"{agent_cfg['agent']['class']} trains in one process. Use nproc_per_node=1.")
    if ctx.world_size > 1 and agent_cfg["agent"].get("kl_threshold"):
        raise RlnbError(
            "agent.kl_threshold can stop the learning of one rank while the other ranks wait for it. "
            'Use agent={"agent.kl_threshold": 0.0} for several ranks.'
        )


def _load(runner: Any, recorder: Recorder, ctx: TrainContext) -> int:
    """Load the checkpoint that this training resumes or starts from, if any; return the training's first timestep."""
    if ctx.checkpoint is not None:
        vet_checkpoint(ctx.checkpoint, ctx.trust)
        runner.agent.load(str(ctx.checkpoint))
        recorder.load_companions(ctx.checkpoint)
        ctx.resumed(recorder.save)
        recorder.start_at(recorder.progress.timestep)
        return recorder.progress.timestep
    if ctx.init_from is not None:
        vet_checkpoint(ctx.init_from, ctx.trust)
        recorder.load_weights(ctx.init_from)
    return 0


def _selections(agent: Any, agent_cfg: Any, wrapper: Any, device: str) -> dict[str, Selection]:
    """Return the selection of the most likely actions for each part of an agent, by the name of the part."""
    names = [part.name for part in parts(agent)]
    spaces = wrapper.action_spaces if all(names) else {"": wrapper.action_space}
    return {name: Selection.of(agent, agent_cfg, spaces[name], device) for name in names}


def _several(env: Any) -> bool:
    """Return whether the env has several agents."""
    return hasattr(env.unwrapped, "possible_agents")


def _whole_iterations(interval: int | str, timesteps: int, horizon: int) -> int:
    """Return the checkpoint interval in timesteps, rounded to whole iterations; 0 means no checkpoints.

    A checkpoint in the middle of an iteration would not resume exactly.
    """
    if interval == 0:
        return 0
    target = timesteps / CHECKPOINTS if interval == "auto" else int(interval)
    return max(1, round(target / horizon)) * horizon
