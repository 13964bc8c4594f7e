"""An env that can be neither stepped nor reset, on which the policy of another run is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlnb.errors import RlnbError, unknown


def spaces_of(env: Any, groups: Mapping[str, str]) -> Any:
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
