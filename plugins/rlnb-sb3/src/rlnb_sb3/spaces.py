"""Spaces of a task that Stable-Baselines3 cannot train."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlnb.plugin import Problem, Space


def problems(values: Mapping[str, object], observations: Mapping[str, Space], actions: Space) -> Iterator[Problem]:
    """Find the spaces that do not fit.

    Args:
        values: The agent config by dotted path.
        observations: Spaces of the observation groups, as far as they are known.
        actions: Space of the actions.
    """
    if actions.kind in ("dict", "tuple"):
        yield Problem(what=f"The actions are {actions}, which Stable-Baselines3 does not have.")
    if actions.kind == "discrete":
        what = "The actions are a Discrete. Isaac Lab's wrapper for Stable-Baselines3 gives them the shape (num_envs,)"
        yield Problem(what=f"{what}, but its envs take (num_envs, 1).")
    space = observations.get("policy")
    if space is not None and space.kind in ("dict", "tuple"):
        yield Problem(what=f"The observation 'policy' is {space}, but rlnb-sb3 takes one tensor.")
