"""The backend, which runs RL-Games on an Isaac Lab env in the worker process."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from isaaclab.utils.io import dump_yaml
from isaaclab_rl.rl_games import RlGamesVecEnvWrapper, register_rl_games_env
from isaaclab_tasks.utils import resolve_presets
from rl_games.torch_runner import Runner

from rlnb import RlnbError
from rlnb.backend import Policy, TrainContext, export_module, vet_checkpoint
from rlnb_rl_games import compiling, minibatches, weights
from rlnb_rl_games.actor import Actor, squashes
from rlnb_rl_games.algorithm import ALGORITHMS, ContinuousPpo, DiscretePpo, Observer
from rlnb_rl_games.config import AgentConfig, EnvSettings, Params
from rlnb_rl_games.sac import Sac
from rlnb_rl_games.sac_actor import SacActor, SacPolicy

SAC = "sac"
"""Name of RL-Games' SAC in agent configs."""


class RlGames:
    """The :class:`rlnb.backend.Backend` of RL-Games."""

    def train(self, env: Any, agent_cfg: AgentConfig, ctx: TrainContext) -> Sequence[torch.nn.Module]:
        """Train with RL-Games' own PPO or SAC; resume if a checkpoint is given."""
        wrapper = _prepare(env, agent_cfg, ctx.device)
        params = agent_cfg["params"]
        task_num_envs = resolve_presets(type(env.unwrapped.cfg)()).scene.num_envs
        minibatches.fit(params, wrapper.num_envs, task_num_envs)
        _set_up_rank(params, ctx)
        if ctx.rank == 0:
            dump_yaml(str(ctx.log_dir / "params" / "agent.yaml"), agent_cfg)
        if ctx.checkpoint is not None:
            vet_checkpoint(ctx.checkpoint, ctx.trust)
        builder = _Builder(params, wrapper.num_envs, ctx)
        register_rl_games_env(wrapper)
        with tempfile.TemporaryDirectory() as scratch:  # RL-Games creates a folder on every rank; only rank 0's is kept
            folder = ctx.log_dir if ctx.rank == 0 else Path(scratch) / "logs"
            params["config"].update({"train_dir": str(folder.parent), "full_experiment_name": folder.name})
            runner = _new_runner(Observer(), tensor_cores=ctx.device != "cpu")
            runner.algo_factory.register_builder(params["algo"]["name"], builder)
            runner.load(agent_cfg)
            checkpoint = str(ctx.checkpoint) if ctx.checkpoint else None
            runner.run({"train": True, "play": False, "sigma": None, "checkpoint": checkpoint})
        return builder.algorithm.modules

    def load_policy(
        self,
        env: Any,
        agent_cfg: AgentConfig,
        checkpoint: Path,
        *,
        device: str,
        trust: bool,
        deterministic: bool = True,
    ) -> Policy:
        """Return the checkpoint's policy, observation normaliser included."""
        player = _player(env, agent_cfg, checkpoint, device, trust)
        if _is_sac(agent_cfg):
            actor = SacActor(player, agent_cfg, checkpoint, device)
            return SacPolicy(actor, _Observations(agent_cfg), deterministic)
        return _Policy(player, agent_cfg, deterministic)

    def export(
        self,
        env: Any,
        agent_cfg: AgentConfig,
        checkpoint: Path,
        folder: Path,
        *,
        formats: Sequence[str],
        device: str,
        trust: bool,
    ) -> Mapping[str, Path]:
        """Write ``policy.pt`` (TorchScript) and ``policy.onnx``: observations in, clipped actions out."""
        player = _player(env, agent_cfg, checkpoint, device, trust)
        actor = SacActor(player, agent_cfg, checkpoint, device) if _is_sac(agent_cfg) else Actor(player, agent_cfg)
        return export_module(actor, _Observations(agent_cfg)(env.reset()[0]), folder, formats)

    def input_groups(self, env: Any, agent_cfg: AgentConfig) -> Mapping[str, Sequence[str]]:
        """Return the observation groups that the input of an exported file joins."""
        return {"obs": _Observations(agent_cfg).groups}


class _Builder:
    """Builds the algorithm for RL-Games' runner, and turns it into one of the ranks."""

    algorithm: ContinuousPpo | DiscretePpo | Sac

    def __init__(self, params: Params, num_envs: int, ctx: TrainContext) -> None:
        self._params, self._num_envs, self._ctx = params, num_envs, ctx

    def __call__(self, **arguments: Any) -> ContinuousPpo | DiscretePpo | Sac:
        name = self._params["algo"]["name"]
        self.algorithm = Sac(**arguments) if name == SAC else ALGORITHMS[name](**arguments)
        self.algorithm.join(self._ctx, self._report_start)
        return self.algorithm

    def _report_start(self, epochs: int) -> None:
        settings = self._params["config"]
        self._ctx.started(
            horizon=settings["num_steps_per_episode" if self._params["algo"]["name"] == SAC else "horizon_length"],
            frames_per_step=1.0,
            first_iteration=epochs,
            max_iterations=settings["max_epochs"],
            num_envs=self._num_envs * self._ctx.world_size,
        )


class _Observations:
    """Converts Isaac Lab's observation dict to RL-Games' actor input, like Isaac Lab's wrapper."""

    groups: Sequence[str]
    """Observation groups of the actor, in the order in which they are joined."""

    def __init__(self, agent_cfg: AgentConfig) -> None:
        settings: EnvSettings = agent_cfg["params"].get("env", {})
        self.groups = (settings.get("obs_groups") or {"obs": ["policy"]})["obs"]
        self._as_dict = not settings.get("concate_obs_groups", True)
        self._clip = settings.get("clip_observations", math.inf)

    def __call__(self, obs: Mapping[str, torch.Tensor]) -> Any:
        clipped = {name: obs[name].clamp(-self._clip, self._clip) for name in self.groups}
        if self._as_dict:
            return clipped
        return next(iter(clipped.values())) if len(clipped) == 1 else torch.cat(list(clipped.values()), dim=-1)


class _Policy:
    """An RL-Games player as a policy that takes Isaac Lab's observation dict."""

    def __init__(self, player: Any, agent_cfg: AgentConfig, deterministic: bool) -> None:
        self._player, self._observations, self._has_batch_size = player, _Observations(agent_cfg), False
        self._deterministic = deterministic
        settings: EnvSettings = agent_cfg["params"].get("env", {})
        self._clip = settings.get("clip_actions", math.inf)
        if squashes(agent_cfg):
            player.model.register_forward_hook(_squash_mean)

    def __call__(self, obs: Any) -> torch.Tensor:
        """Return actions, shape (num_envs, action_dim)."""
        inputs = self._observations(obs)
        if not self._has_batch_size:
            self._player.get_batch_size(inputs, 1)
            self._player.reset()
            self._has_batch_size = True
        actions = self._player.get_action(inputs, is_deterministic=self._deterministic)
        return actions.clamp(-self._clip, self._clip)  # Isaac Lab's wrapper clips them in training

    def reset(self, dones: torch.Tensor) -> None:
        """Reset the recurrent state of envs whose episode ended."""
        if self._player.is_rnn and self._has_batch_size:
            for state in self._player.states:
                state[:, dones.nonzero().squeeze(-1)] = 0.0


def _squash_mean(model: Any, inputs: Any, result: dict[str, torch.Tensor]) -> None:
    """Pass the means of a model's result through tanh, as the model does with its samples."""
    result["mus"] = result["mus"].tanh()


def _prepare(env: Any, agent_cfg: AgentConfig, device: str) -> RlGamesVecEnvWrapper:
    """Adapt the agent config to this env and device, and wrap the env."""
    params = agent_cfg["params"]
    name, settings = params["algo"]["name"], params["config"]
    if name not in (*ALGORITHMS, SAC):
        raise RlnbError(f"params.algo.name={name!r} is not one of {', '.join((*ALGORITHMS, SAC))}.")
    if name == SAC:
        _refuse_unbounded(params.get("env", {}))
    settings["device"] = settings["device_name"] = device
    compiling.set_default(settings, device)
    wrapper = RlGamesVecEnvWrapper.from_agent_cfg(env, agent_cfg)
    settings["num_actors"] = wrapper.num_envs
    return wrapper


def _is_sac(agent_cfg: AgentConfig) -> bool:
    return agent_cfg["params"]["algo"]["name"] == SAC


def _refuse_unbounded(settings: EnvSettings) -> None:
    """Refuse settings of the env's wrapper that RL-Games' SAC cannot use."""
    if not math.isfinite(settings.get("clip_actions", math.inf)):
        raise RlnbError(
            "SAC scales its actions to params.env.clip_actions, which is not set. Set it to 1.0, for example."
        )
    if not settings.get("concate_obs_groups", True):
        raise RlnbError("SAC takes a single observation tensor. Set params.env.concate_obs_groups to true.")


def _set_up_rank(params: Params, ctx: TrainContext) -> None:
    """Write this rank's settings into the agent config."""
    params["seed"] = ctx.seed
    if ctx.max_iterations is not None:
        params["config"]["max_epochs"] = ctx.max_iterations
    number = torch.get_num_threads()
    if ctx.world_size > 1 or "OMP_NUM_THREADS" in os.environ:
        params.setdefault("torch_threads", 0)  # keep this rank's share of cores; RL-Games takes up to four
    elif number < min(4, os.cpu_count() or 1):
        params.setdefault("torch_threads", number)  # bound to fewer cores; RL-Games counts those of the machine
    if ctx.rank != 0:
        # Rank 0 sets the learning rate of all ranks.
        params["config"].update({"print_stats": False, "lr_schedule": None})


def _new_runner(observer: Observer | None = None, *, tensor_cores: bool = False) -> Runner:
    """Return RL-Games' runner.

    RL-Games lowers the precision of matrix multiplications for the whole process, for the sake of a GPU's tensor cores.

    Args:
        observer: Observer of a training.
        tensor_cores: Whether the process keeps these settings. A training may, since its process ends with it. The
            warm simulator goes on with policies of other libraries.
    """
    precision, benchmark = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    runner = Runner(observer)
    if not tensor_cores:
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.benchmark = benchmark
    return runner


def _player(env: Any, agent_cfg: AgentConfig, checkpoint: Path, device: str, trust: bool) -> Any:
    """Return RL-Games' player with the checkpoint's policy."""
    vet_checkpoint(checkpoint, trust)
    wrapper = _prepare(env, agent_cfg, device)
    params = agent_cfg["params"]
    params["config"]["env_info"] = wrapper.get_env_info()
    params["torch_threads"] = 0  # RL-Games would change the number for the rest of this process's life
    runner = _new_runner()
    runner.load(agent_cfg)
    player = runner.create_player()
    if not _is_sac(agent_cfg):
        player.set_weights(weights.read(checkpoint, device))
    return player
