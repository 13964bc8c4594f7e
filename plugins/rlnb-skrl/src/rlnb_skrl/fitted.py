"""The generic agent config with networks for the spaces of a task: CNNs for pictures, one-hot vectors for indexes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlnb.plugin import Space

OBSERVATIONS = "OBSERVATIONS"
LAYERS = ((16, 5), (32, 3), (32, 3))
"""Channels and kernel of each layer of a CNN, which a CPU can train too."""
POLICIES = {"discrete": "CategoricalMixin", "multi_discrete": "MultiCategoricalMixin"}
"""skrl's policy for each kind of actions that is not a Box."""


def ppo(config: Any, observations: Mapping[str, Space], actions: Space) -> Any:
    """Return the generic PPO config for the spaces of a task."""
    models = config["models"]
    if (name := POLICIES.get(actions.kind)) is not None:
        network, output = models["policy"]["network"], models["policy"]["output"]
        models["policy"] = {"class": name, "unnormalized_log_prob": True, "network": network, "output": output}
    policy = observations.get("policy")
    if policy is None or (policy.kind == "box" and (policy.shape is None or len(policy.shape) == 1)):
        return config
    containers: list[dict[str, Any]] = []
    inputs = list(_inputs(policy, "", containers))
    joined = inputs[0] if len(inputs) == 1 else f"concatenate([{', '.join(inputs)}])"
    for model in ("policy", "value"):
        last = {**models[model]["network"][-1], "input": joined}
        models[model]["network"] = [*(dict(container) for container in containers), last]
    config["agent"].update(observation_preprocessor=None)  # pictures and indexes stay as they are
    if containers:
        config["agent"]["learning_rate"] = 0.0003
    return config


def _inputs(space: Space, path: str, containers: list[dict[str, Any]]) -> Any:
    """Yield an expression of skrl for each part of an observation, as a vector.

    Args:
        space: Space of the observation.
        path: Path of the part in the observation, such as ``"[0]"``.
        containers: Gets the CNNs, whose names the expressions may have.
    """
    value = f"{OBSERVATIONS}{path}"
    if space.kind in ("dict", "tuple"):
        for name, part in space.parts.items():
            key = f"[{name!r}]" if space.kind == "dict" else f"[{name}]"
            yield from _inputs(part, f"{path}{key}", containers)
    elif space.kind != "box":
        yield f"one_hot_encoding(OBSERVATION_SPACE{path}, {value})"
    elif space.shape is None or len(space.shape) == 1:
        yield value
    else:
        container: dict[str, Any] = {"name": f"features_{len(containers)}", "input": value, "layers": ["flatten"]}
        if space.is_picture:
            if space.channels_last:
                container["input"] = f"permute({value}, (0, 3, 1, 2))"
            convs = [{"conv2d": {"out_channels": c, "kernel_size": k, "stride": 2, "padding": 0}} for c, k in LAYERS]
            container.update(layers=[*convs, "flatten"], activations="elu")
        containers.append(container)
        yield container["name"]
