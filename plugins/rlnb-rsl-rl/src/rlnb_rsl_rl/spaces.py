"""Spaces of a task that RSL-RL, or the models of an agent config, cannot train."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rlnb.plugin import Problem, Space

MODELS = ("actor", "critic")
"""Models of PPO in the agent config, which are also the names of their observation sets."""
CNN = "CNNModel"
MLPS = ("MLPModel", "RNNModel")


def problems(values: Mapping[str, object], observations: Mapping[str, Space], actions: Space) -> Iterator[Problem]:
    """Find the spaces that do not fit.

    Args:
        values: The agent config by dotted path.
        observations: Spaces of the observation groups, as far as they are known.
        actions: Space of the actions.
    """
    if actions.kind != "box":
        yield Problem(what=f"The actions are {actions}, but RSL-RL has continuous actions only.")
    told: set[tuple[str, ...]] = set()
    for model in MODELS:
        name = re.split("[.:]", str(values.get(f"{model}.class_name", "")))[-1]
        if name in (CNN, *MLPS):
            groups = _groups(values, observations, model)
            if (name, *groups) in told:
                continue  # the critic is as the actor
            told.add((name, *groups))
            known = {group: observations[group] for group in groups if group in observations}
            yield from _misfits(values, model, name, known, is_all=len(known) == len(groups))


def _groups(values: Mapping[str, object], observations: Mapping[str, Space], model: str) -> list[str]:
    """Return the observation groups of a model, as rsl_rl.utils.resolve_obs_groups finds them."""
    chosen = values.get(f"obs_groups.{model}")
    if isinstance(chosen, list):
        return [str(group) for group in chosen]
    return [model if model in observations else "policy"]


def _misfits(
    values: Mapping[str, object], model: str, name: str, groups: Mapping[str, Space], *, is_all: bool
) -> Iterator[Problem]:
    for group, space in groups.items():
        if space.kind != "box":
            yield Problem(what=f"The observation {group!r} is {space}, but RSL-RL takes a Box for each group.")
        elif space.is_picture and name != CNN:
            yield Problem(
                what=f"The observation {group!r} is {space}, but the {model} is an {name}, which takes vectors."
            )
        elif space.is_picture and not _is_large_enough(values, model, space):
            yield _too_small(group, model, space)
        elif space.shape is not None and len(space.shape) not in (1, 3):
            yield Problem(what=f"The observation {group!r} is {space}, but RSL-RL takes vectors and pictures.")
    if name == CNN and is_all and not any(space.is_picture or space.shape is None for space in groups.values()):
        yield Problem(what=f"The {model} is a {CNN}, but its observations have no picture: {', '.join(groups)}.")


def _too_small(group: str, model: str, space: Space) -> Problem:
    what = f"The observation {group!r} is {space}, which is smaller than the first kernel of the {model}'s CNN."
    if space.channels_last:
        what += " RSL-RL's pictures have the shape (channels, height, width)."
        return Problem(what=what, fix="Return it from the env as image.permute(0, 3, 1, 2), and change its space.")
    return Problem(what=what, fix="Use a larger camera, or a smaller kernel.")


def _is_large_enough(values: Mapping[str, object], model: str, space: Space) -> bool:
    """Return whether the first kernel of a CNN is at most as large as a picture, whose channels come first."""
    kernel, padding = (values.get(f"{model}.cnn_cfg.{name}") for name in ("kernel_size", "padding"))
    size = kernel[0] if isinstance(kernel, list) and kernel else kernel
    return not isinstance(size, int) or padding not in (None, "none") or size <= min((space.shape or ())[1:])
