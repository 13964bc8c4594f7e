"""The agent configs for tasks that bring none of their own."""

from typing import Any


def ppo() -> dict[str, Any]:
    """Return a PPO config for vector observations, in the layout of skrl's runner."""
    network = [{"name": "net", "input": "OBSERVATIONS", "layers": [128, 128], "activations": "elu"}]
    return {
        "seed": 42,
        "models": {
            "separate": False,
            "policy": {
                "class": "GaussianMixin",
                "clip_actions": False,
                "clip_log_std": True,
                "min_log_std": -20.0,
                "max_log_std": 2.0,
                "initial_log_std": 0.0,
                "network": network,
                "output": "ACTIONS",
            },
            "value": {"class": "DeterministicMixin", "clip_actions": False, "network": network, "output": "ONE"},
        },
        "memory": {"class": "RandomMemory", "memory_size": -1},
        "agent": {
            "class": "PPO",
            "rollouts": 24,
            "learning_epochs": 5,
            "mini_batches": 4,
            "discount_factor": 0.99,
            "gae_lambda": 0.95,
            "learning_rate": 1e-3,
            "learning_rate_scheduler": "KLAdaptiveLR",
            "learning_rate_scheduler_kwargs": {"kl_threshold": 0.01},
            "observation_preprocessor": "RunningStandardScaler",
            "observation_preprocessor_kwargs": None,
            "value_preprocessor": "RunningStandardScaler",
            "value_preprocessor_kwargs": None,
            "grad_norm_clip": 1.0,
            "ratio_clip": 0.2,
            "value_clip": 0.2,
            "entropy_loss_scale": 0.005,
            "value_loss_scale": 1.0,
            "kl_threshold": 0.0,
            "rewards_shaper_scale": 1.0,
            "time_limit_bootstrap": False,
            "experiment": {
                "directory": "",
                "experiment_name": "",
                "write_interval": "auto",
                "checkpoint_interval": "auto",
            },
        },
        "trainer": {"class": "SequentialTrainer", "timesteps": 7200, "environment_info": "log"},
    }


def ippo() -> dict[str, Any]:
    """Return an IPPO config: every agent learns by itself, from its own observations."""
    config = ppo()
    config["agent"]["class"] = "IPPO"
    return config


def mappo() -> dict[str, Any]:
    """Return a MAPPO config: every agent acts on its own observations, its value function sees the state of the env."""
    config = ppo()
    config["agent"].update(state_preprocessor="RunningStandardScaler", state_preprocessor_kwargs=None)
    config["agent"]["class"] = "MAPPO"
    config["models"]["separate"] = True
    value = config["models"]["value"]
    value["network"] = [{**layer, "input": "STATES"} for layer in value["network"]]
    return config
