"""The variables in which an env's own code keeps values from one step to the next."""

from __future__ import annotations

import contextlib
import functools
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Attributes = Mapping[str, Any]
"""Attributes of an object by name."""
SMALL = 4096
"""Largest number of values of a tensor that has no row for each env."""
WIDEST = 1024
"""Largest number of values for each env. Pictures and scans of terrain are computed anew in each step."""
DEPTH = 8
"""Largest number of attributes and keys between the env and a value."""
LONGEST = 256
"""Longest list whose entries are looked at."""
FOREIGN = frozenset(
    ("torch", "warp", "numpy", "gymnasium", "pxr", "newton", "mujoco_warp", "omni", "carb", "ovphysx", "rlnb")
)
"""Packages whose objects are no part of an env's state."""
LEFT_OUT = frozenset(
    ("cfg", "sim", "extras", "spec", "np_random", "_np_random", "root_view", "_root_view", "_implicit_executor")
)
"""Names of attributes with settings, spaces, logs, handles of the simulator, and copies of other attributes."""
KEPT_OF_ASSETS = ("actuators", "_permanent_wrench_composer", "_instantaneous_wrench_composer")
"""Attributes of a robot or an object that its physical state does not say: states of actuators, and external forces."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A number, a bool or a tensor in an env."""

    path: str
    """Attributes and keys that lead to it, such as ``".reward_manager._episode_sums['alive']"``."""
    value: torch.Tensor | bool | int | float
    """Its value. A tensor is the env's own one."""
    put: Callable[[Any], None]
    """Replaces it in the env."""


@dataclass(frozen=True, slots=True)
class _Room:
    """An object, a dict or a list, with the values in it that are looked at."""

    values: Mapping[Any, Any]
    path: str
    depth: int
    put: Callable[[Any, Any], None]
    has_attributes: bool

    def place(self, key: Any) -> str:
        return f"{self.path}.{key}" if self.has_attributes else f"{self.path}[{key!r}]"


def variables(env: Any) -> Iterator[Variable]:
    """Yield the variables of an env, its managers, their terms, its sensors and its actuators.

    Each is yielded once, by its shortest path.

    Args:
        env: The task's own env.
    """
    walk = _Walk(env)
    while walk.rooms:
        yield from walk.through(walk.rooms.popleft())


class _Walk:
    """Goes through the objects of an env, the nearest first, each once."""

    def __init__(self, env: Any) -> None:
        from isaaclab.assets import AssetBase
        from isaaclab.sensors import Camera

        self._num_envs, self._asset, self._camera = env.num_envs, AssetBase, Camera
        self._seen: set[Any] = {id(env)}
        self.rooms: deque[_Room] = deque(self._rooms_of(env, "", 0))

    def through(self, room: _Room) -> Iterator[Variable]:
        """Yield the variables in a room, and note the rooms behind it."""
        for key, value in room.values.items():
            if room.has_attributes and _is_left_out(key):
                continue
            if isinstance(value, bool | int | float):
                yield Variable(room.place(key), value, functools.partial(room.put, key))
            elif (tensor := self._tensor(value)) is not None:
                yield Variable(room.place(key), tensor, functools.partial(room.put, key))
            elif room.depth < DEPTH and id(value) not in self._seen and not _is_opaque(value):
                self._seen.add(id(value))
                self.rooms += self._rooms_of(value, room.place(key), room.depth + 1)

    def _rooms_of(self, value: Any, path: str, depth: int) -> Iterator[_Room]:
        if isinstance(value, dict):
            yield _Room(value, path, depth, value.__setitem__, has_attributes=False)
        elif isinstance(value, list | tuple | deque):
            if len(value) <= LONGEST:
                put = _refuse if isinstance(value, tuple) else value.__setitem__
                yield _Room(dict(enumerate(value)), path, depth, put, has_attributes=False)
        elif hasattr(value, "__dict__") and not isinstance(value, self._camera):
            yield _object(value, self._attributes(value), path, depth)
            if isinstance(value, self._asset):  # accelerations are differences to the last step's velocities
                data = getattr(value, "_data", None)
                before = {name: old for name, old in vars(data).items() if name.startswith("_previous")} if data else {}
                yield _object(data, before, f"{path}._data", depth)

    def _attributes(self, owner: Any) -> Attributes:
        """Return the attributes of an object that may be variables, or lead to some."""
        attributes = vars(owner)
        if getattr(getattr(owner, "__dataclass_params__", None), "frozen", False):
            return {}
        if isinstance(owner, self._asset):
            return {name: attributes[name] for name in KEPT_OF_ASSETS if name in attributes}
        if type(owner).__name__.endswith("Cfg"):  # of a term: a curriculum changes weights; a function may have a state
            return {name: attributes[name] for name in ("weight", "func") if name in attributes}
        if attributes.get("_active") is False:  # external forces that there are not
            return {name: value for name, value in attributes.items() if isinstance(value, bool)}
        return attributes

    def _tensor(self, value: Any) -> torch.Tensor | None:
        """Return a tensor, or an array of Warp as one; None for anything else, for large ones, and for known ones."""
        import numpy as np
        import torch
        import warp

        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            with contextlib.suppress(TypeError, ValueError):  # a type that torch lacks, or memory of another program
                value = torch.from_numpy(value)
        if isinstance(value, warp.array):
            with contextlib.suppress(RuntimeError, TypeError, KeyError):  # an array of structures
                value = warp.to_torch(value)
        if not isinstance(value, torch.Tensor) or not value.numel():
            return None
        key = value.data_ptr(), value.shape
        per_env = value.shape[:1] == (self._num_envs,)
        if key in self._seen or value.numel() > (WIDEST * self._num_envs if per_env else SMALL):
            return None
        self._seen.add(key)
        return value


def _object(owner: Any, attributes: Attributes, path: str, depth: int) -> _Room:
    return _Room(attributes, path, depth, lambda name, value: setattr(owner, name, value), has_attributes=True)


def _is_left_out(name: str) -> bool:
    """Return whether an attribute is a setting, a constant, or a view of the simulator's memory."""
    return (
        name in LEFT_OUT
        or name.endswith(("_cfg", "_ta", "_handle", "_space", "_spaces"))
        or name.startswith(("_ALL_", "_all_", "_construction_", "_sim_bind_"))
    )


def _is_opaque(value: Any) -> bool:
    """Return whether a value is nothing that keeps numbers of an env."""
    if value is None or isinstance(
        value, str | bytes | type | types.FunctionType | types.MethodType | types.ModuleType
    ):
        return True
    return type(value).__module__.partition(".")[0] in FOREIGN


def _refuse(key: Any, value: Any) -> None:
    """Leave an entry of a tuple as it is."""
