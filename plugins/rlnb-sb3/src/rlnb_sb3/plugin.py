"""The description of Stable-Baselines3 for rlnb, which does not import Stable-Baselines3."""

from rlnb.plugin import Library, hookimpl

SB3 = Library(
    name="sb3",
    positive={"n_steps": None, "n_epochs": None, "n_minibatches": 1},
    sizes="rlnb_sb3.sizes:problems",
    backend="rlnb_sb3.backend:Sb3",
    agent_key="sb3_cfg_entry_point",
    default_agent="rlnb_sb3:ppo.yaml",
    fitted_agent="rlnb_sb3.fitted:ppo",
    spaces="rlnb_sb3.spaces:problems",
    step_unit="frame",
    logged_at_end=True,
    horizon_key="n_steps",
    overruled={"seed": "seed", "n_timesteps": "max_iterations", "device": "device"},
    checkpoint_iteration=lambda number, _: number - 1,  # the name has the number of finished iterations
    stock_checkpoints=(r"^model_(\d+)_steps\.zip$", r"^model\.zip$"),
    saves_when_stopped=True,
    metrics={
        "reward": "rollout/ep_rew_mean",
        "episode_length": "rollout/ep_len_mean",
        "success_rate": "Metrics/success_rate",
        "policy_loss": "train/policy_gradient_loss",
        "value_loss": "train/value_loss",
        "entropy": "train/entropy",
        "learning_rate": "train/learning_rate",
        "action_std": "train/std",
        "fps": "perf/fps",
        "collection_s": "perf/collection_s",
        "learning_s": "perf/learning_s",
    },
    hidden=(r"^time/", r"^train/entropy_loss$"),
    requires=("stable-baselines3>=2.9,<3",),
    exports=("torchscript", "onnx"),
)


@hookimpl
def rlnb_libraries() -> list[Library]:
    return [SB3]
