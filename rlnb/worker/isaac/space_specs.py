"""The spaces of a task: those that its env config describes, and those of the env itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rlnb.contracts.libraries import Space, Spaces
from rlnb.spec import DEPTH
from rlnb.worker.isaac.renderer import own_cameras

TaskSpaces = tuple[Spaces, Space | None]
"""Spaces of the observation groups and of the actions of a task; None for several agents."""
UNKNOWN: TaskSpaces = ({}, None)
"""Spaces of a task with several agents."""
PICTURES = "image"
"""Beginning of the names of Isaac Lab's observation terms of pictures: ``image``, ``image_rgb``, ``image_depth``."""
FEATURES = "image_features"
"""Isaac Lab's observation term of the features that a pretrained network sees in a picture."""


def of_config(env_cfg: Any) -> TaskSpaces:
    """Return the spaces of the observation groups and of the actions, as far as an env config tells.

    A direct env may return more groups than its config names. The terms of a manager-based one have shapes that only
    the env knows, except that of a picture alone in its group.
    """
    from isaaclab.envs import DirectRLEnvCfg, ManagerBasedRLEnvCfg

    if isinstance(env_cfg, ManagerBasedRLEnvCfg):
        return dict(_groups(env_cfg)), Space(kind="box")
    if not isinstance(env_cfg, DirectRLEnvCfg):
        return UNKNOWN
    specs = {"policy": env_cfg.observation_space, "critic": env_cfg.state_space or None}
    spaces = {name: space for name, spec in specs.items() if (space := _of_spec(spec)) is not None}
    return spaces, _of_spec(env_cfg.action_space)


def of_env(env: Any) -> TaskSpaces:
    """Return the spaces of the observation groups and of the actions of an env; nothing for several agents."""
    raw = env.unwrapped
    if hasattr(raw, "possible_agents"):
        return UNKNOWN
    groups = ((str(name), _of_gym(space)) for name, space in raw.single_observation_space.items())
    return {name: space for name, space in groups if space is not None}, _of_gym(raw.single_action_space)


def _of_spec(spec: Any) -> Space | None:
    """Return a space of a direct env's config; None if it has none, or one that Isaac Lab refuses."""
    from isaaclab.envs.utils.spaces import spec_to_gym_space

    with contextlib.suppress(ValueError, TypeError):  # Isaac Lab itself reports it when the env is made
        return _of_gym(spec_to_gym_space(spec))
    return None


def _of_gym(space: Any) -> Space | None:
    """Return the description of a gymnasium space; None for a kind that Isaac Lab does not have."""
    from gymnasium import spaces

    match space:
        case spaces.Box():
            return Space(kind="box", shape=tuple(int(size) for size in space.shape))
        case spaces.Discrete():
            return Space(kind="discrete")
        case spaces.MultiDiscrete():
            return Space(kind="multi_discrete")
        case spaces.Dict():
            return Space(kind="dict", parts=_parts(space.items()))
        case spaces.Tuple():
            return Space(kind="tuple", parts=_parts(enumerate(space)))
    return None


def _parts(items: Any) -> Spaces:
    return {str(name): part for name, inner in items if (part := _of_gym(inner)) is not None}


def _groups(env_cfg: Any) -> Iterator[tuple[str, Space]]:
    """Yield the observation groups of a manager-based env."""
    from isaaclab.managers import ObservationGroupCfg, ObservationTermCfg

    for name, group in vars(env_cfg.observations).items():
        if not isinstance(group, ObservationGroupCfg):
            continue  # None, with which a task removes a group of its base
        terms = {key: term for key, term in vars(group).items() if isinstance(term, ObservationTermCfg)}
        if not group.concatenate_terms:
            parts = {key: Space(kind="box", shape=_picture(env_cfg, term)) for key, term in terms.items()}
            yield name, Space(kind="dict", parts=parts)
        else:
            shape = _picture(env_cfg, *terms.values()) if len(terms) == 1 else None
            yield name, Space(kind="box", shape=shape)


def _picture(env_cfg: Any, term: Any) -> tuple[int, ...] | None:
    """Return the shape of an observation term if it is a camera's picture, and the config tells it."""
    params = term.params
    name = getattr(term.func, "__name__", "")
    if not name.startswith(PICTURES) or name == FEATURES or term.history_length:
        return None
    camera = own_cameras(env_cfg).get(getattr(params.get("sensor_cfg"), "name", ""))
    if camera is None:
        return None
    channels = 1 if str(params.get("data_type")) in DEPTH else 3
    channels *= max(1, int(params.get("frame_stack", 1)))
    size = (int(camera.height), int(camera.width))
    return (channels, *size) if params.get("channel_first") else (*size, channels)
