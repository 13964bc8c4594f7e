"""The description of RL-Games for rlnb, which does not import RL-Games."""

from rlnb import Library, hookimpl

RL_GAMES = Library(
    name="rl_games",
    backend="rlnb_rl_games.backend:RlGames",
    agent_key="rl_games_cfg_entry_point",
    default_agent="rlnb_rl_games:ppo.yaml",
    distributed=True,
    step_unit="frame",
    horizon_key="horizon_length",
    overruled={
        "params.seed": "seed",
        "params.config.max_epochs": "max_iterations",
        "params.config.device": "device",
        "params.config.device_name": "device",
    },
    checkpoint_glob="nn/*.pth",
    checkpoint_pattern=r"_ep_(\d+)_",
    checkpoint_counts_finished=True,
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


@hookimpl
def rlnb_libraries() -> list[Library]:
    return [RL_GAMES]
