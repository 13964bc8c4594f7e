"""The generic agent configs, for tasks without one of their own; they need isaaclab_rl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlnb.plugin import Space

NETWORK = {"hidden_dims": [128, 128], "activation": "elu"}


def ppo() -> Any:
    """Return a PPO config for vector observations."""
    from isaaclab_rl.rsl_rl import RslRlMLPModelCfg, RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg

    network = {**NETWORK, "obs_normalization": True}
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


def fitted(config: Any, observations: Mapping[str, Space], actions: Space) -> Any:
    """Return the config of :func:`ppo` with a CNN for the actor if it sees a picture, and for the critic."""
    policy = observations.get("policy")
    critic = observations.get("critic", policy)
    if policy is not None and policy.is_picture:
        config.actor = _cnn(distribution_cfg=config.actor.distribution_cfg)
        config.algorithm.learning_rate = 3.0e-4
    if critic is not None and critic.is_picture:
        config.critic = _cnn()
    return config


def _cnn(**options: Any) -> Any:
    """Return the config of a small CNN, which a CPU can train too."""
    from isaaclab_rl.rsl_rl import RslRlCNNModelCfg

    layers = RslRlCNNModelCfg.CNNCfg(
        output_channels=[16, 32, 32], kernel_size=[5, 3, 3], stride=[2, 2, 2], activation="elu"
    )
    return RslRlCNNModelCfg(**NETWORK, obs_normalization=False, cnn_cfg=layers, **options)
