"""Spaces of a task that RL-Games, or the network of an agent config, cannot train."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlnb.plugin import Problem, Space

NETWORK = "params.network.name"
ACTOR_CRITIC = ("actor_critic", "soft_actor_critic")
"""RL-Games' own networks, which have a CNN if the config names one."""


def problems(values: Mapping[str, object], observations: Mapping[str, Space], actions: Space) -> Iterator[Problem]:
    """Find the spaces that do not fit.

    Args:
        values: The agent config by dotted path.
        observations: Spaces of the observation groups, as far as they are known.
        actions: Space of the actions.
    """
    if actions.kind != "box":
        what = f"The actions are {actions}, but Isaac Lab's wrapper for RL-Games has continuous actions only."
        yield Problem(what=what)
    chosen = values.get("params.env.obs_groups.obs")
    groups = [str(group) for group in chosen] if isinstance(chosen, list) else ["policy"]
    for group in groups:
        space = observations.get(group)
        if space is None:
            continue
        if space.kind not in ("box", "multi_discrete"):
            yield Problem(what=f"The observation {group!r} is {space}, but RL-Games takes vectors and pictures.")
        elif space.is_picture and values.get(NETWORK) in ACTOR_CRITIC and not _has_cnn(values):
            what = f"The observation {group!r} is {space}, but the network has no CNN: params.network.cnn is missing."
            yield Problem(what=what)


def _has_cnn(values: Mapping[str, object]) -> bool:
    return any(path.startswith("params.network.cnn.") for path in values)
