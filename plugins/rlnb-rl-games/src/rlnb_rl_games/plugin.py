"""The description of RL-Games for rlnb, which does not import RL-Games."""

from __future__ import annotations

import dataclasses

from rlnb.plugin import Library, hookimpl
from rlnb_rl_games.companions import BUFFER
from rlnb_rl_games.sizes import SIZES

SET = ("num_actors", "multi_gpu", "train_dir", "full_experiment_name", "env_info")
"""Values of ``params.config`` that the backend sets."""
POSITIVE = (
    "horizon_length",
    "mini_epochs",
    "minibatch_size",
    "central_value_config.mini_epochs",
    "central_value_config.minibatch_size",
    "seq_length",
    "batch_size",
    "num_steps_per_episode",
    "replay_buffer_size",
)
"""Values of ``params.config`` that have to be at least 1; those after the sequence are of SAC. The sizes for each env
are checked in :mod:`rlnb_rl_games.sizes`."""


def last_epoch(number: int, horizon: int) -> float:
    """Return the last epoch, from 0, of a checkpoint. RL-Games names it by the number of finished epochs."""
    return number - 1


RL_GAMES = Library(
    name="rl_games",
    backend="rlnb_rl_games.backend:RlGames",
    positive={f"params.config.{name}": None for name in POSITIVE},
    sizes="rlnb_rl_games.sizes:problems",
    agent_key="rl_games_cfg_entry_point",
    default_agent="rlnb_rl_games:ppo.yaml",
    fitted_agent="rlnb_rl_games.fitted:ppo",
    spaces="rlnb_rl_games.spaces:problems",
    distributed=True,
    step_unit="frame",
    horizon_key="horizon_length",
    overruled={
        "params.seed": "seed",
        "params.config.max_epochs": "max_iterations",
        "params.config.device": "device",
        "params.config.device_name": "device",
        **dict.fromkeys((f"params.config.{name}" for name in SET), ""),
        "params.load_checkpoint": "",
        "params.load_path": "",
    },
    adapted=tuple(f"params.config.{name}" for name in SIZES),
    checkpoint_glob="nn/*.pth",
    checkpoint_pattern=r"_ep_(\d+)_",
    stock_checkpoints=(r"^(?!.*_ep_\d).*\.pth$", r"_ep_(\d+)_.*\.pth$"),  # the file of the best reward has its name
    checkpoint_iteration=last_epoch,
    saves_when_stopped=True,
    metrics={
        "reward": "rewards/step",
        "episode_length": "episode_lengths/step",
        "success_rate": "Episode/Metrics/success_rate",
        "policy_loss": "losses/a_loss",
        "value_loss": "losses/c_loss",
        "entropy": "losses/entropy",
        "learning_rate": "info/last_lr",
        "action_std": "info/action_std",
        "fps": "performance/step_inference_rl_update_fps",
        "collection_s": "performance/step_inference_time",
        "learning_s": "performance/rl_update_time",
    },
    hidden=(r"/(iter|time)$", r"^shaped_rewards/"),
    requires=("rl-games>=1.6.5,<1.7", "gym==0.26.2"),
    exports=("torchscript", "onnx"),
)

SAC = dataclasses.replace(
    RL_GAMES,
    name="rl_games_sac",
    agent_key="rl_games_sac_cfg_entry_point",
    default_agent="rlnb_rl_games:sac.yaml",
    fitted_agent="",
    distributed=False,
    logged_at_end=True,
    horizon_key="num_steps_per_episode",
    adapted=(),
    checkpoint_glob="nn/last_*.pth",  # RL-Games' file of the best reward has no replay buffer beside it
    checkpoint_companions=(f"{{stem}}{BUFFER}",),
    metrics={
        **{name: tag for name, tag in RL_GAMES.metrics.items() if name not in ("value_loss", "action_std")},
        "critic_loss": "losses/critic_loss",
        "temperature": "info/alpha",
        "buffer_size": "info/buffer_size",
    },
)
"""RL-Games' SAC, which has agent configs of its own."""


@hookimpl
def rlnb_libraries() -> list[Library]:
    return [RL_GAMES, SAC]
