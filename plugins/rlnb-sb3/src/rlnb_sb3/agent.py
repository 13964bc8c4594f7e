"""The agent config for a task that brings none of its own."""

from typing import Any


def ppo() -> dict[str, Any]:
    """Return a PPO config for vector observations, in the layout of Isaac Lab's ``sb3_cfg_entry_point``."""
    return {
        "seed": 42,
        "n_timesteps": 1_000_000,
        "policy": "MlpPolicy",
        "n_steps": 24,
        "n_minibatches": 4,
        "n_epochs": 5,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "learning_rate": 3e-4,
        "clip_range": 0.2,
        "ent_coef": 0.005,
        "vf_coef": 1.0,
        "max_grad_norm": 1.0,
        "policy_kwargs": {"activation_fn": "nn.ELU", "net_arch": [128, 128]},
        "normalize_input": True,
        "device": "cpu",
    }
