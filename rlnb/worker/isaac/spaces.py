"""The spaces of a task: of its env config, of the env itself, and of an env that can only be asked for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from rlnb.configs.cameras import kind_of
from rlnb.contracts.libraries import Space, Spaces
from rlnb.errors import RlnbError, unknown
from rlnb.worker.isaac.renderer import own_cameras

# -- spaces of a config and of an env --------------------------------------------------------------------------------


TaskSpaces = tuple[Spaces, Space | None]
"""Spaces of the observation groups and of the actions of a task; None for several agents."""
UNKNOWN_SPACES: TaskSpaces = ({}, None)
"""Spaces of a task with several agents."""
PICTURES = "image"
"""Beginning of the names of Isaac Lab's observation terms of pictures: ``image``, ``image_rgb``, ``image_depth``."""
FEATURES = "image_features"
"""Isaac Lab's observation term of the features that a pretrained network sees in a picture."""


def spaces_of_config(env_cfg: Any) -> TaskSpaces:
    """Return the spaces of the observation groups and of the actions, as far as an env config tells.

    A direct env may return more groups than its config names. The terms of a manager-based one have shapes that only
    the env knows, except that of a picture alone in its group.
    """
    from isaaclab.envs import DirectRLEnvCfg, ManagerBasedRLEnvCfg

    if isinstance(env_cfg, ManagerBasedRLEnvCfg):
        return dict(_groups(env_cfg)), Space(kind="box")
    if not isinstance(env_cfg, DirectRLEnvCfg):
        return UNKNOWN_SPACES
    specs = {"policy": env_cfg.observation_space, "critic": env_cfg.state_space or None}
    spaces = {name: space for name, spec in specs.items() if (space := _of_spec(spec)) is not None}
    return spaces, _of_spec(env_cfg.action_space)


def spaces_of_env(env: Any) -> TaskSpaces:
    """Return the spaces of the observation groups and of the actions of an env; nothing for several agents."""
    raw = env.unwrapped
    if hasattr(raw, "possible_agents"):
        return UNKNOWN_SPACES
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
    channels = 1 if kind_of(str(params.get("data_type"))) == "depth" else 3
    channels *= max(1, int(params.get("frame_stack", 1)))
    size = (int(camera.height), int(camera.width))
    return (channels, *size) if params.get("channel_first") else (*size, channels)


# -- an env that can be neither stepped nor reset --------------------------------------------------------------------


def env_of_spaces(env: Any, groups: Mapping[str, str]) -> Any:
    """Return an env of the same class, spaces and attributes as another one, for loading a policy during a training.

    Wrappers of RL libraries reset the env that they get, and change its action space. With this env, whose observations
    are zeros, the one that trains stays as it is.

    Args:
        env: The env that trains.
        groups: Names of observation groups, each with the group of ``env`` that takes its place.

    Raises:
        NotFoundError: The env has no such observation group.
    """
    raw = env.unwrapped
    members: Any = {"reset": _reset, "step": _step, "close": _close, "__module__": type(raw).__module__}
    several = hasattr(raw, "possible_agents")
    spaces = raw.observation_spaces if several else raw.single_observation_space
    spaces = dict(spaces.items())
    observations = {name: _zeros(space, raw.num_envs, raw.device) for name, space in spaces.items()}
    observations |= _like(raw.obs_buf) if not several and hasattr(raw, "obs_buf") else {}
    if groups:
        observations |= {name: _group(observations, group) for name, group in groups.items()}
        spaces |= {
            name: spaces[group] if group in spaces else _box(observations[name]) for name, group in groups.items()
        }
        members |= _observation_spaces(spaces, raw.num_envs)
    members["obs_buf"] = observations
    view: Any = object.__new__(type(type(raw).__name__, (type(raw),), members))
    vars(view).update({name: value for name, value in vars(raw).items() if name not in members})
    return view


def _group(observations: Any, group: str) -> Any:
    if group not in observations:
        raise unknown("observation group", group, observations, has="The env has")
    return observations[group]


def _observation_spaces(spaces: Any, num_envs: int) -> Any:
    import gymnasium

    single = gymnasium.spaces.Dict(dict(spaces))
    batched = gymnasium.vector.utils.batch_space(single, num_envs)
    return {"single_observation_space": single, "observation_space": batched}


def _box(observations: Any) -> Any:
    """Return the space of a group that a direct env returns, and that its own spaces may lack."""
    import gymnasium
    import numpy as np

    return gymnasium.spaces.Box(-np.inf, np.inf, tuple(getattr(observations, "shape", ())[1:]))


def _zeros(space: Any, num_envs: int, device: Any) -> Any:
    import torch

    if isinstance(space, Mapping):  # a group whose terms are not joined
        return {name: _zeros(inner, num_envs, device) for name, inner in space.items()}
    return torch.zeros((num_envs, *space.shape), device=device)


def _like(observations: Any) -> Any:
    """Return zeros of the shapes of observations."""
    return {
        name: _like(value) if isinstance(value, Mapping) else value.new_zeros(value.shape)
        for name, value in observations.items()
    }


def _reset(self: Any, *_: object, **__: object) -> Any:
    return self.obs_buf, {}


def _step(self: Any, *_: object) -> Any:
    raise RlnbError("An env on which a policy is loaded cannot be stepped.")


def _close(self: Any) -> None:
    """Do nothing: the env that trains is closed by the worker."""
