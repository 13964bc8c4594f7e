"""The description of RSL-RL for rlnb, which does not import RSL-RL."""

from rlnb.plugin import Input, Library, hookimpl

RSL_RL = Library(
    name="rsl_rl",
    positive={
        "num_steps_per_env": None,
        "algorithm.num_learning_epochs": None,
        "algorithm.num_mini_batches": 1,
        "algorithm.gradient_length": None,
    },
    sizes="rlnb_rsl_rl.sizes:problems",
    backend="rlnb_rsl_rl.backend:RslRl",
    agent_key="rsl_rl_cfg_entry_point",
    default_agent="rlnb_rsl_rl.agent:ppo",
    fitted_agent="rlnb_rsl_rl.agent:fitted",
    spaces="rlnb_rsl_rl.spaces:problems",
    distributed=True,
    step_unit="iteration",
    overruled={
        "seed": "seed",
        "max_iterations": "max_iterations",
        "device": "device",
        **dict.fromkeys(("logger", "experiment_name", "run_name", "resume", "load_run", "load_checkpoint"), ""),
        **dict.fromkeys(("wandb_project", "neptune_project"), ""),
        **dict.fromkeys(("teacher.hidden_dims", "teacher.activation", "teacher.obs_normalization"), ""),
    },
    inputs={"teacher": Input(kind="policy", agent={"class_name": "DistillationRunner"})},
    former_names={
        "policy.actor_hidden_dims": ("actor.hidden_dims",),
        "policy.critic_hidden_dims": ("critic.hidden_dims",),
        "policy.activation": ("actor.activation", "critic.activation"),
        "policy.init_noise_std": ("actor.distribution_cfg.init_std",),
        "policy.noise_std_type": ("actor.distribution_cfg.std_type",),
        "policy.actor_obs_normalization": ("actor.obs_normalization",),
        "policy.critic_obs_normalization": ("critic.obs_normalization",),
        "empirical_normalization": ("actor.obs_normalization", "critic.obs_normalization"),
    },
    checkpoint_glob="model_*.pt",
    checkpoint_pattern=r"model_(\d+)\.pt$",
    saves_when_stopped=True,
    metrics={
        "reward": "Train/mean_reward",
        "episode_length": "Train/mean_episode_length",
        "success_rate": "Metrics/success_rate",
        "policy_loss": "Loss/surrogate",
        "value_loss": "Loss/value",
        "entropy": "Loss/entropy",
        "learning_rate": "Loss/learning_rate",
        "action_std": "Policy/mean_std",
        "fps": "Perf/total_fps",
        "collection_s": "Perf/collection_time",
        "learning_s": "Perf/learning_time",
    },
    former_metrics={
        "value_loss": "Loss/value_function",
        "action_std": "Policy/mean_noise_std",
        "collection_s": "Perf/collection time",
    },
    hidden=(r"/time$",),
    requires=("rsl-rl-lib>=5.5,<6",),
    exports=("torchscript", "onnx"),
)


@hookimpl
def rlnb_libraries() -> list[Library]:
    return [RSL_RL]
