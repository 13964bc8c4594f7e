"""The agent config for a task that brings none of its own."""

from typing import Any


def ppo() -> dict[str, Any]:
    """Return a PPO config for vector observations, in RL-Games' own layout."""
    return {
        "params": {
            "seed": 42,
            "env": {"clip_observations": 100.0, "clip_actions": 100.0},
            "algo": {"name": "a2c_continuous"},
            "model": {"name": "continuous_a2c_logstd"},
            "network": {
                "name": "actor_critic",
                "separate": False,
                "space": {
                    "continuous": {
                        "mu_activation": "None",
                        "sigma_activation": "None",
                        "mu_init": {"name": "default"},
                        "sigma_init": {"name": "const_initializer", "val": 0.0},
                        "fixed_sigma": True,
                    }
                },
                "mlp": {
                    "units": [128, 128],
                    "activation": "elu",
                    "d2rl": False,
                    "initializer": {"name": "default"},
                    "regularizer": {"name": "None"},
                },
            },
            "load_checkpoint": False,
            "load_path": "",
            "config": {
                "name": "rlnb",
                "env_name": "rlgpu",
                "device": "cuda:0",
                "device_name": "cuda:0",
                "multi_gpu": False,
                "ppo": True,
                "mixed_precision": False,
                "normalize_input": True,
                "normalize_value": True,
                "num_actors": -1,
                "reward_shaper": {"scale_value": 0.1},
                "normalize_advantage": True,
                "gamma": 0.99,
                "tau": 0.95,
                "learning_rate": 5e-4,
                "lr_schedule": "adaptive",
                "kl_threshold": 0.008,
                "max_epochs": 300,
                "save_best_after": 50,
                "save_frequency": 50,
                "grad_norm": 1.0,
                "entropy_coef": 0.0,
                "truncate_grads": True,
                "e_clip": 0.2,
                "horizon_length": 24,
                "minibatch_size": 16384,
                "mini_epochs": 8,
                "critic_coef": 4,
                "clip_value": True,
                "seq_length": 4,
                "bounds_loss_coef": 0.0001,
            },
        }
    }
