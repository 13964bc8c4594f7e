"""The heavy half: RL-Games on an Isaac Lab env. Runs in the worker."""

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
from rlnb_rl_games import minibatches
from rlnb_rl_games.actor import Actor
from rlnb_rl_games.algorithm import ALGORITHMS, Observer


class RlGames:
    """The :class:`rlnb.backend.Backend` of RL-Games."""

    def train(self, env: Any, agent_cfg: Any, ctx: TrainContext) -> Sequence[torch.nn.Module]:
        """Train with RL-Games' own PPO; resume where a checkpoint is given."""
        wrapped = _prepare(env, agent_cfg, ctx.device)
        params = agent_cfg["params"]
        config = params["config"]
        params["seed"] = ctx.seed
        own_num_envs = resolve_presets(type(env.unwrapped.cfg)()).scene.num_envs
        minibatches.fit(params, wrapped.num_envs, own_num_envs, ctx.agent)
        if ctx.max_iterations is not None:
            config["max_epochs"] = ctx.max_iterations
        if ctx.world_size > 1 or "OMP_NUM_THREADS" in os.environ:
            params.setdefault("torch_threads", 0)  # the cores are shared out: RL-Games would take up to four of them
        if ctx.rank == 0:
            dump_yaml(str(ctx.log_dir / "params" / "agent.yaml"), agent_cfg)
        else:
            config.update(print_stats=False, lr_schedule=None)  # rank 0 sets the learning rate of all
        if ctx.checkpoint is not None:
            vet_checkpoint(ctx.checkpoint, ctx.trust)

        def on_start(epochs: int) -> None:
            ctx.started(
                horizon=config["horizon_length"],
                frames_per_step=1.0,
                first_iteration=epochs,
                max_iterations=config["max_epochs"],
                num_envs=wrapped.num_envs * ctx.world_size,
            )

        built = []

        def build(**arguments: Any) -> Any:
            algorithm = ALGORITHMS[params["algo"]["name"]](**arguments)
            algorithm.join(ctx, on_start)
            built.append(algorithm)
            return algorithm

        register_rl_games_env(wrapped)
        with tempfile.TemporaryDirectory() as scratch:  # every rank makes a folder, and only rank 0 fills it
            folder = ctx.log_dir if ctx.rank == 0 else Path(scratch) / "logs"
            config["train_dir"], config["full_experiment_name"] = str(folder.parent), folder.name
            runner = _new_runner(ctx.device, Observer())
            runner.algo_factory.register_builder(params["algo"]["name"], build)
            runner.load(agent_cfg)
            checkpoint = str(ctx.checkpoint) if ctx.checkpoint else None
            runner.run({"train": True, "play": False, "sigma": None, "checkpoint": checkpoint})
        return built[0].modules  # type: ignore[no-any-return]

    def load_policy(
        self, env: Any, agent_cfg: Any, checkpoint: Path, *, device: str, trust: bool, deterministic: bool = True
    ) -> Policy:
        """Return the checkpoint's policy, observation normaliser included."""
        return _Policy(_player(env, agent_cfg, checkpoint, device, trust), agent_cfg, deterministic)

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
        """Write ``policy.pt`` (TorchScript) and ``policy.onnx``: observations in, clipped actions out."""
        player = _player(env, agent_cfg, checkpoint, device, trust)
        return export_module(Actor(player, agent_cfg), _Observations(agent_cfg)(env.reset()[0]), folder, formats)


class _Observations:
    """From Isaac Lab's observation dict to RL-Games' actor input, as Isaac Lab's wrapper does it."""

    def __init__(self, agent_cfg: Any) -> None:
        chosen = agent_cfg["params"].get("env", {})
        self._groups = (chosen.get("obs_groups") or {"obs": ["policy"]})["obs"]
        self._as_dict = not chosen.get("concate_obs_groups", True)
        self._clip = chosen.get("clip_observations", math.inf)

    def __call__(self, obs: Mapping[str, torch.Tensor]) -> Any:
        clipped = {name: obs[name].clamp(-self._clip, self._clip) for name in self._groups}
        if self._as_dict:
            return clipped
        return next(iter(clipped.values())) if len(clipped) == 1 else torch.cat(list(clipped.values()), dim=-1)


class _Policy:
    """A player of RL-Games as a policy on Isaac Lab's observation dict."""

    def __init__(self, player: Any, agent_cfg: Any, deterministic: bool) -> None:
        self._player, self._observations, self._begun = player, _Observations(agent_cfg), False
        self._deterministic = deterministic

    def __call__(self, obs: Any) -> torch.Tensor:
        """Return actions, shape (num_envs, action_dim)."""
        inputs = self._observations(obs)
        if not self._begun:
            self._player.get_batch_size(inputs, 1)
            self._player.reset()
            self._begun = True
        return self._player.get_action(inputs, is_deterministic=self._deterministic)  # type: ignore[no-any-return]

    def reset(self, dones: torch.Tensor) -> None:
        """Forget recurrent state where an episode ended."""
        if self._player.is_rnn and self._begun:
            for state in self._player.states:
                state[:, dones.nonzero().squeeze(-1)] = 0.0


def _prepare(env: Any, agent_cfg: Any, device: str) -> RlGamesVecEnvWrapper:
    """Fit the agent config to this env and machine, and wrap the env."""
    params = agent_cfg["params"]
    name, config = params["algo"]["name"], params["config"]
    if name not in ALGORITHMS:
        raise RlnbError(f"params.algo.name={name!r} is not one of {', '.join(ALGORITHMS)}.")
    config["device"] = config["device_name"] = device
    if device == "cpu":
        # Compiling takes minutes on a CPU and gains nothing for networks of this size.
        config.setdefault("torch_compile", False)
    wrapped = RlGamesVecEnvWrapper.from_agent_cfg(env, agent_cfg)
    config["num_actors"] = wrapped.num_envs
    return wrapped


def _new_runner(device: str, observer: Observer | None = None) -> Runner:
    """Return RL-Games' runner without what it does to torch on a CPU.

    It lowers the precision of matrix products for the whole process, which is meant for the tensor cores of GPUs.
    """
    precision = torch.get_float32_matmul_precision()
    runner = Runner(observer)
    if device == "cpu":
        torch.set_float32_matmul_precision(precision)
    return runner


def _player(env: Any, agent_cfg: Any, checkpoint: Path, device: str, trust: bool) -> Any:
    vet_checkpoint(checkpoint, trust)
    wrapped = _prepare(env, agent_cfg, device)
    agent_cfg["params"]["config"]["env_info"] = wrapped.get_env_info()
    agent_cfg["params"]["torch_threads"] = 0  # RL-Games would change them for whatever this process does after this
    runner = _new_runner(device)
    runner.load(agent_cfg)
    player = runner.create_player()
    player.restore(str(checkpoint))
    return player
