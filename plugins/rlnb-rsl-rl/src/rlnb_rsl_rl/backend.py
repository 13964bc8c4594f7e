"""The backend, which runs RSL-RL on an Isaac Lab env in the worker process."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from isaaclab.utils import to_dict
from isaaclab.utils.io import dump_yaml
from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper, create_rsl_rl_runner, handle_deprecated_rsl_rl_cfg
from rsl_rl.runners import DistillationRunner, OnPolicyRunner
from rsl_rl.utils.log_writer import LogWriter
from tensordict import TensorDict
from torch.utils.tensorboard import SummaryWriter

from rlnb.backend import Policy, TrainContext, random_state, restore_random_state, vet_checkpoint, write_whole
from rlnb_rsl_rl import export, teacher, weights

FLUSH_S = 0.5
"""Seconds between flushes of the event file. RSL-RL's own writer flushes every 10 s, too late for a live curve."""


class EventWriter(LogWriter):
    """RSL-RL's TensorBoard writer, flushed twice a second."""

    def __init__(self, log_dir: str) -> None:
        self._writer = SummaryWriter(log_dir=log_dir, flush_secs=FLUSH_S)

    def add_scalar(self, tag: str, value: Any, global_step: int, *args: Any) -> None:
        """Log one scalar."""
        self._writer.add_scalar(tag, value, global_step)

    def stop(self) -> None:
        """Write the remaining scalars and close the file."""
        self._writer.close()

    close = stop


class RslRl:
    """The :class:`rlnb.backend.Backend` of RSL-RL."""

    def train(self, env: Any, agent_cfg: Any, ctx: TrainContext) -> Sequence[torch.nn.Module]:
        """Train with RSL-RL's own runner; resume if a checkpoint is given."""
        # `isaaclab train` sets the same values. They have no effect on a CPU.
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
        agent_cfg.seed = ctx.seed
        if ctx.max_iterations is not None:
            agent_cfg.max_iterations = ctx.max_iterations
        agent_cfg.logger = {"class_name": f"{__name__}:EventWriter"}
        runner, wrapper = _runner(env, agent_cfg, ctx.device, ctx)
        if isinstance(runner, DistillationRunner):
            teacher.attach(runner, env, ctx)
        if ctx.checkpoint is not None:
            vet_checkpoint(ctx.checkpoint, ctx.trust)
            infos = runner.load(str(ctx.checkpoint), map_location=ctx.device)
            if infos and "random_state" in infos:
                restore_random_state(infos["random_state"])
            ctx.resumed(runner.save)
            # A checkpoint has the number of the last finished iteration; continue with the next one.
            runner.current_learning_iteration += 1
        elif ctx.init_from is not None:
            vet_checkpoint(ctx.init_from, ctx.trust)
            weights.start_from(runner, ctx.init_from, ctx.device)
        first = runner.current_learning_iteration
        horizon = agent_cfg.num_steps_per_env
        ctx.started(
            horizon=horizon,
            frames_per_step=horizon * wrapper.num_envs * ctx.world_size,
            first_iteration=first,
            max_iterations=agent_cfg.max_iterations,
            num_envs=wrapper.num_envs * ctx.world_size,
        )
        _stop_when_told(runner, ctx)
        runner.learn(
            num_learning_iterations=max(0, agent_cfg.max_iterations - first),
            init_at_random_ep_len=agent_cfg.init_at_random_ep_len,
        )
        # The trained modules are the student of a distillation, or PPO's actor and critic.
        modules = (getattr(runner.alg, name, None) for name in ("actor", "critic", "student"))
        return [module for module in modules if module is not None]

    def load_policy(
        self, env: Any, agent_cfg: Any, checkpoint: Path, *, device: str, trust: bool, deterministic: bool = True
    ) -> Policy:
        """Return the checkpoint's policy, observation normaliser included."""
        vet_checkpoint(checkpoint, trust)
        runner, _ = _runner(env, agent_cfg, device)
        weights.load_policy(runner, checkpoint, device, trust=trust)
        return _Policy(runner.get_inference_policy(device=device), agent_cfg.clip_actions, env, deterministic)

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
        vet_checkpoint(checkpoint, trust)
        runner, _ = _runner(env, agent_cfg, device)
        weights.load_policy(runner, checkpoint, device, trust=trust)
        runner.alg.eval_mode()
        return export.write(runner.alg.get_policy(), agent_cfg.clip_actions, folder, formats)

    def input_groups(self, env: Any, agent_cfg: Any) -> Mapping[str, Sequence[str]]:
        """Return the observation groups that the input ``obs`` of an exported file joins. Pictures have their own."""
        spaces, groups = env.unwrapped.single_observation_space, agent_cfg.obs_groups
        groups = groups if isinstance(groups, Mapping) else {}  # Isaac Lab's MISSING
        role = "student" if agent_cfg.class_name == "DistillationRunner" else "actor"
        # RSL-RL takes the group of that name if the config does not say, and "policy" if there is none.
        names = groups.get(role, [role if role in spaces else "policy"])
        return {"obs": [name for name in names if len(spaces[name].shape) == 1]}


class _Policy:
    """A policy that takes Isaac Lab's observation dict."""

    def __init__(self, model: Any, clip_actions: float | None, env: Any, deterministic: bool) -> None:
        self._model, self._clip, self._num_envs = model, clip_actions, env.unwrapped.num_envs
        self._sampled = not deterministic

    def __call__(self, obs: Any) -> torch.Tensor:
        """Return actions, shape (num_envs, action_dim)."""
        actions = self._model(TensorDict(obs, batch_size=[self._num_envs]), stochastic_output=self._sampled)
        return actions if self._clip is None else actions.clamp(-self._clip, self._clip)

    def reset(self, dones: torch.Tensor) -> None:
        """Reset the recurrent state of envs whose episode ended."""
        self._model.reset(dones)


class _OnPolicyOnCpu(OnPolicyRunner):
    """Trains a rank on a CPU. RSL-RL requires a GPU per rank and nccl; here rlnb creates the process group."""

    def _configure_multi_gpu(self) -> None:
        rank, local_rank, world_size = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
        self.is_distributed = True
        self.gpu_global_rank, self.gpu_local_rank, self.gpu_world_size = rank, local_rank, world_size
        self.cfg["multi_gpu"] = {"global_rank": rank, "local_rank": local_rank, "world_size": world_size}


class _DistillationOnCpu(_OnPolicyOnCpu, DistillationRunner):
    """Trains a rank of a distillation on a CPU."""


_ON_CPU = {"OnPolicyRunner": _OnPolicyOnCpu, "DistillationRunner": _DistillationOnCpu}


def _runner(
    env: Any, agent_cfg: Any, device: str, ctx: TrainContext | None = None
) -> tuple[OnPolicyRunner | DistillationRunner, RslRlVecEnvWrapper]:
    """Return a runner and the wrapped env. The runner logs if ``ctx`` is given."""
    agent_cfg = handle_deprecated_rsl_rl_cfg(agent_cfg, importlib.metadata.version("rsl-rl-lib"))
    agent_cfg.device = device
    wrapper = RslRlVecEnvWrapper(env, clip_actions=agent_cfg.clip_actions)
    log_dir = str(ctx.log_dir) if ctx else None
    if ctx is not None and ctx.rank == 0:
        dump_yaml(f"{log_dir}/params/agent.yaml", to_dict(agent_cfg))
    if ctx is not None and ctx.world_size > 1 and device == "cpu":
        runner = _ON_CPU[agent_cfg.class_name](wrapper, to_dict(agent_cfg), log_dir=log_dir, device=device)
    else:
        runner = create_rsl_rl_runner(wrapper, agent_cfg, log_dir=log_dir)
    _save_whole(runner)
    return runner, wrapper


def _stop_when_told(runner: Any, ctx: TrainContext) -> None:
    """Let the context end the training after an iteration, once it was logged and before the next one begins."""
    log = runner.logger.log

    def save() -> None:
        runner.save(str(ctx.log_dir / f"model_{runner.current_learning_iteration}.pt"))
        runner.logger.stop_logging_writer()

    def log_and_stop(**values: Any) -> None:
        log(**values)
        ctx.iteration_finished(save)

    runner.logger.log = log_and_stop


def _save_whole(runner: Any) -> None:
    """Make the runner save its random state too, and rename each checkpoint to its final name once it is complete."""
    save = runner.save

    def save_whole(path: str, infos: Any = None) -> None:
        write_whole(path, lambda part: save(part, {**(infos or {}), "random_state": random_state()}))

    runner.save = save_whole
