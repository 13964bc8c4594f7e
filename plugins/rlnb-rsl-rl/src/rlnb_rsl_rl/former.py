"""Checkpoints of earlier versions of RSL-RL, in which one module held the actor and the critic.

In 3.x, the running means of the observations were parts of the module. Before, they had entries of their own beside it.
See ``rsl_rl/modules/actor_critic.py``, ``actor_critic_recurrent.py`` and ``rsl_rl/runners/on_policy_runner.py`` there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MODULE = "model_state_dict"
"""Entry of a former checkpoint with the weights of both networks."""
RENAMED = {
    "actor": {
        "actor.": "mlp.",
        "memory_a.": "rnn.",
        "actor_obs_normalizer.": "obs_normalizer.",
        "std": "distribution.std_param",
        "log_std": "distribution.log_std_param",
    },
    "critic": {"critic.": "mlp.", "memory_c.": "rnn.", "critic_obs_normalizer.": "obs_normalizer."},
}
"""Present names of the weights of each network, by their former ones. A name with a point stands for all below it."""
NORMALISERS = {
    "actor": ("obs_norm_state_dict",),
    "critic": ("privileged_obs_norm_state_dict", "critic_obs_norm_state_dict"),
}
"""Entries with the running means of each network's observations, in the checkpoints that have one."""


def converted(state: Any) -> dict[str, Any] | None:
    """Return the content of a former checkpoint with the present names; None if it is not one.

    Args:
        state: Content of a checkpoint, as ``torch.load`` returns it.
    """
    if not isinstance(state, Mapping) or not isinstance(state.get(MODULE), Mapping) or "actor_state_dict" in state:
        return None
    present = {name: value for name, value in state.items() if name != MODULE}
    for network, names in RENAMED.items():
        weights = {}
        for name, value in state[MODULE].items():
            for old, new in names.items():
                if name == old or (old.endswith(".") and name.startswith(old)):
                    weights[new + name.removeprefix(old)] = value
        means: Mapping[str, Any] = next((state[entry] for entry in NORMALISERS[network] if state.get(entry)), {})
        present[f"{network}_state_dict"] = weights | {f"obs_normalizer.{name}": value for name, value in means.items()}
    return present
