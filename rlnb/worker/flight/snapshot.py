"""The whole state of an env at one moment, from which recorded steps can be repeated."""

from __future__ import annotations

import contextlib
import functools
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rlnb.worker.isaac import isaaclab, solver

if TYPE_CHECKING:
    import numpy as np
    import torch


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The state of an env before a step."""

    step: int
    """Number of the step."""
    values: Mapping[str, torch.Tensor | bool | int | float]
    """Copies of poses, velocities and joints (``"state/<name>"``), of what the solver carries on (``"solver/<name>"``)
    and of the variables of the env's code (``"variable/<path>"``)."""

    @property
    def size(self) -> int:
        """Bytes of the values."""
        import torch

        tensors = (value for value in self.values.values() if isinstance(value, torch.Tensor))
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the values as arrays."""
        import numpy as np
        import torch

        return {
            key: value.cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
            for key, value in self.values.items()
        }


def take(env: Any, states: States, step: int) -> Snapshot:
    """Return a snapshot of an env.

    Args:
        env: The task's own env.
        states: Its poses, velocities and joints.
        step: Number of the next step.
    """
    import torch

    values: dict[str, torch.Tensor | bool | int | float] = {}
    for part, state in zip(states.parts, states.read(), strict=True):
        values[f"state/{part.name}"] = state.clone()
    values |= {f"solver/{name}": array for name, array in solver.copied(env).items()}
    for variable in variables(env):
        value = variable.value
        values[f"variable/{variable.path}"] = value.clone() if isinstance(value, torch.Tensor) else value
    return Snapshot(step=step, values=values)


def restore(env: Any, states: States, arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Bring an env into the state of a snapshot; return the variables of the snapshot that this env does not have.

    Args:
        env: The task's own env, with the same task, number of envs and seed. It has made at least one step, since some
            variables exist only then.
        states: Its poses, velocities and joints.
        arrays: :meth:`Snapshot.arrays`.
    """
    import torch

    def tensor(key: str) -> torch.Tensor:
        return torch.from_numpy(arrays[key].copy()).to(env.device)

    states.write([tensor(f"state/{part.name}") for part in states.parts])
    env.sim.forward()  # clears what the solver carries on, in envs whose state was just written
    for name, value in solver.memory(env).items():
        value.copy_(tensor(f"solver/{name}"))
    kept = {key for key in arrays if key.startswith("variable/")}
    done: set[str] = set()
    for kind in (bool, int, float, torch.Tensor):  # a flag may decide what else there is
        for variable in [*variables(env)]:
            key = f"variable/{variable.path}"
            if key in kept and type(variable.value) is kind:
                done.add(key)
                _set(variable, arrays[key], env.device)
    return sorted(key.removeprefix("variable/") for key in kept - done)


def _set(variable: Variable, array: np.ndarray, device: str) -> None:
    import torch

    if not isinstance(variable.value, torch.Tensor):
        variable.put(array.item())
    elif variable.value.shape == array.shape:
        variable.value.copy_(torch.from_numpy(array.copy()).to(device))


# -- the values of a step --------------------------------------------------------------------------------------------


WIDEST = 1024
"""Largest number of values for each env of an observation or a variable that is kept. Pictures and scans of terrain are
not."""
WRITERS = {
    "root_link_pose_w": ("write_root_link_pose_to_sim_index", "root_pose"),
    "root_com_vel_w": ("write_root_com_velocity_to_sim_index", "root_velocity"),
    "joint_pos": ("write_joint_position_to_sim_index", "position"),
    "joint_vel": ("write_joint_velocity_to_sim_index", "velocity"),
}
"""Method of an asset that sets a quantity, and the name of its argument."""
Kind = Literal["state", "action", "term", "reward", "observation", "alert"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StateField:
    """A tensor of a step, of shape (num_envs, width)."""

    kind: Kind
    """What the tensor is."""
    name: str
    """Its name, such as ``"robot.joint_pos"`` or ``"policy"``; empty if there is only one of its kind."""
    labels: tuple[str, ...]
    """Name of each value; empty if the values have no names."""
    width: int
    """Number of values for each env."""

    @property
    def key(self) -> str:
        """Name of the part's array in the record."""
        return f"{self.kind}/{self.name}" if self.name else self.kind

    def text(self, index: int) -> str:
        """Return the name of a value in words."""
        kind = {"term": "reward term"}.get(self.kind, self.kind)
        name = f" {self.name!r}" if self.name else ""
        label = f" of {self.labels[index]!r}" if self.labels else f" (index {index})" if self.width > 1 else ""
        return f"The {kind}{name}{label}"


class States:
    """The poses, velocities and joints of an env's robots and objects."""

    def __init__(self, env: Any) -> None:
        self._reads: list[tuple[Any, str]] = []
        self.parts: list[StateField] = []
        scene = env.scene
        for name, asset in [*scene.articulations.items(), *scene.rigid_objects.items()]:
            if not getattr(asset, "is_fixed_base", False):
                self._add(asset, name, "root_link_pose_w", ("x", "y", "z", "qx", "qy", "qz", "qw"))
                self._add(asset, name, "root_com_vel_w", ("vx", "vy", "vz", "wx", "wy", "wz"))
            if joints := tuple(getattr(asset, "joint_names", ())):
                self._add(asset, name, "joint_pos", joints)
                self._add(asset, name, "joint_vel", joints)

    def _add(self, asset: Any, name: str, quantity: str, labels: tuple[str, ...]) -> None:
        self._reads.append((asset, quantity))
        self.parts.append(StateField(kind="state", name=f"{name}.{quantity}", labels=labels, width=len(labels)))

    def read(self) -> list[torch.Tensor]:
        """Return the values, each of shape (num_envs, width)."""
        return [getattr(asset.data, quantity).torch for asset, quantity in self._reads]

    def write(self, values: Sequence[torch.Tensor]) -> None:
        """Set the values.

        Args:
            values: As :meth:`read` returns them.
        """
        for (asset, quantity), value in zip(self._reads, values, strict=True):
            writer, argument = WRITERS[quantity]
            getattr(asset, writer)(**{argument: value})


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a dict or tuple of tensors, or of dicts and tuples, with their names."""
    import torch

    if isinstance(value, Mapping | tuple | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from leaves(inner, f"{name}/{key}" if name else str(key))
    elif isinstance(value, torch.Tensor):
        yield name, value


def flat(tensors: Iterator[tuple[str, torch.Tensor]], num_envs: int) -> dict[str, torch.Tensor]:
    """Return the tensors that have a row for each env and are no pictures, each of shape (num_envs, width)."""
    rows = {name: value.reshape(num_envs, -1) for name, value in tensors if value.dim() and len(value) == num_envs}
    return {name: value for name, value in rows.items() if value.shape[1] <= WIDEST}


def outcome_parts(env: Any, outcome: Mapping[Kind, Mapping[str, torch.Tensor]]) -> list[StateField]:
    """Return the description of what a step returned."""
    return [
        StateField(kind=kind, name=name, labels=_labels(env, kind, name, value.shape[1]), width=value.shape[1])
        for kind, tensors in outcome.items()
        for name, value in tensors.items()
    ]


def _labels(env: Any, kind: Kind, name: str, width: int) -> tuple[str, ...]:
    """Return the observation term of each value of a group; empty if the env has no observation terms."""
    manager = getattr(env, "observation_manager", None) if kind == "observation" else None
    if manager is None or name not in manager.active_terms:
        return ()
    terms = zip(manager.active_terms[name], manager.group_obs_term_dim[name], strict=True)
    labels: list[str] = []
    for term, shape in terms:
        count = 1
        for size in shape:
            count *= size
        labels += [f"{term}[{index}]" for index in range(count)] if count > 1 else [term]
    return tuple(labels) if len(labels) == width else ()


def terms(env: Any) -> dict[str, torch.Tensor]:
    """Return the weighted reward terms of the last step, each of shape (num_envs, 1)."""
    return {name: value[:, None] for name, value in isaaclab.reward_terms(env).items()}


def place_of(values: torch.Tensor, *, env: int | None = None, nan: bool = False) -> dict[str, Any]:
    """Return the env, the index and the value of the first value that is not finite; empty if all are.

    Args:
        values: Shape (num_envs, values).
        env: The only env to look at; None looks at all.
        nan: Whether to look for nan only.
    """
    import torch

    bad = torch.isnan(values) if nan else ~torch.isfinite(values)
    places = bad.nonzero() if env is None else bad[env].nonzero().flatten()[:, None].expand(-1, 2)
    if not len(places):
        return {}
    index = int(places[0, 1])
    env = int(places[0, 0]) if env is None else env
    return {"env": env, "index": index, "value": float(values[env, index])}


# -- variables of an env's objects -----------------------------------------------------------------------------------


Attributes = Mapping[str, Any]
"""Attributes of an object by name."""
SMALL = 4096
"""Largest number of values of a tensor that has no row for each env."""
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
