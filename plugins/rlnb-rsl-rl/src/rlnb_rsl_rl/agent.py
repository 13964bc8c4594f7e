"""The default agent config, for tasks without one of their own."""

from typing import Any


def ppo() -> Any:
    """Return a PPO config for vector observations; needs isaaclab_rl."""
    from isaaclab_rl.rsl_rl import (
        RslRlMLPModelCfg,
        RslRlOnPolicyRunnerCfg,
        RslRlPpoAlgorithmCfg,
    )

    network = {"hidden_dims": [128, 128], "activation": "elu", "obs_normalization": True}
    return RslRlOnPolicyRunnerCfg(
        num_steps_per_env=24,
        max_iterations=300,
        save_interval=50,
        experiment_name="rlnb",
        actor=RslRlMLPModelCfg(**network, distribution_cfg=RslRlMLPModelCfg.GaussianDistributionCfg(init_std=1.0)),
        critic=RslRlMLPModelCfg(**network),
        algorithm=RslRlPpoAlgorithmCfg(
            value_loss_coef=1.0,
            use_clipped_value_loss=True,
            clip_param=0.2,
            entropy_coef=0.005,
            num_learning_epochs=5,
            num_mini_batches=4,
            learning_rate=1.0e-3,
            schedule="adaptive",
            gamma=0.99,
            lam=0.95,
            desired_kl=0.01,
            max_grad_norm=1.0,
        ),
    )
