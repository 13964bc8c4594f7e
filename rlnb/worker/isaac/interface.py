"""The numbers that the policy of a manager-based env reads and returns: terms of observations and actions, in order.

Isaac Lab's own description, ``env.get_IO_descriptors``, is deprecated, describes only the group ``policy``, and leaves
out the names of the terms and the order of a history.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlnb.spec import Json
from rlnb.worker.isaac import release

TARGETS = {
    "JointPositionAction": "joint position",
    "RelativeJointPositionAction": "joint position relative to the present one",
    "JointVelocityAction": "joint velocity",
    "JointEffortAction": "joint effort",
}
"""What the joints get, by Isaac Lab's class of the action term."""
JOINT_VALUES = {
    "joint_pos": None,
    "joint_pos_rel": "default_joint_pos",
    "joint_pos_limit_normalized": None,
    "joint_vel": None,
    "joint_vel_rel": "default_joint_vel",
    "joint_effort": None,
}
"""Isaac Lab's observations with one value per joint, each with the values of the robot that it subtracts."""
OBSERVATIONS = "isaaclab.envs.mdp.observations"
"""Module of these observations."""
FEATURE = "the metadata of an export"


def is_described(env: Any) -> bool:
    """Return whether an env has managers, which know the order of its observations and actions."""
    return hasattr(env, "observation_manager") and hasattr(env, "action_manager")


def term_sizes(env: Any) -> dict[str, dict[str, str]]:
    """Return the shape of each observation and action term of an env, as a task card has them."""
    if not is_described(env):
        return {}
    observations, actions = env.observation_manager, env.action_manager
    sizes = {
        f"observations.{group}": {
            name: " x ".join(map(str, shape))
            for name, shape in zip(names, observations.group_obs_term_dim[group], strict=True)
        }
        for group, names in observations.active_terms.items()
    }
    return {**sizes, "actions": dict(zip(actions.active_terms, map(str, actions.action_term_dim), strict=True))}


def observations_of(env: Any, groups: Sequence[str]) -> list[dict[str, Json]]:
    """Return the observation terms of groups that are joined to one vector, in their order.

    Args:
        env: A manager-based env, not wrapped.
        groups: Names of the groups, in the order in which they are joined.

    Returns:
        For each term, among others, its ``name``, its ``group``, and ``columns``, the ranges ``[start, stop)`` of its
        values in the vector, one for each step of its history, oldest first. Empty if a group is no vector of terms.
    """
    manager, rows, start = env.observation_manager, [], 0
    for group in groups:
        size = manager.group_obs_dim.get(group)
        if not manager.group_obs_concatenate.get(group) or not isinstance(size, tuple) or len(size) != 1:
            return []
        # The manager's copy has the joints that were found, and the history of the group. The env's config has not.
        cfg = manager.cfg[group] if isinstance(manager.cfg, Mapping) else getattr(manager.cfg, group)
        names, dims = manager.active_terms[group], manager.group_obs_term_dim[group]
        terms = [getattr(cfg, name) for name in names]
        if any(len(dim) != 1 for dim in dims):
            return []
        steps = [max(1, term.history_length or 0) for term in terms]
        widths = [int(dim[0]) // count for dim, count in zip(dims, steps, strict=True)]
        by_time = _is_by_time(cfg, len(terms))
        for index, (name, term) in enumerate(zip(names, terms, strict=True)):
            columns = _columns(start, index, widths, steps, by_time=by_time)
            rows.append({"name": name, "group": group, "columns": columns, **_observation(env, term)})
        start += int(size[0])
    return rows


def _is_by_time(cfg: Any, terms: int) -> bool:
    """Return whether a group has all terms of its oldest step first, instead of the whole history of its first term."""
    return (
        terms > 1
        and getattr(cfg, "history_order", "term") == "time"
        and bool(cfg.history_length)
        and cfg.flatten_history_dim
        and cfg.concatenate_dim == -1
    )


def _columns(start: int, index: int, widths: Sequence[int], steps: Sequence[int], *, by_time: bool) -> list[Json]:
    """Return the ranges of one term of a group that begins at ``start``."""
    if by_time:
        first, stride = start + sum(widths[:index]), sum(widths)
    else:
        first = start + sum(width * count for width, count in zip(widths[:index], steps[:index], strict=True))
        stride = widths[index]
    return [[first + step * stride, first + step * stride + widths[index]] for step in range(steps[index])]


def _observation(env: Any, term: Any) -> dict[str, Json]:
    """Describe how an observation term computes its values, in the order of the computation."""
    function = term.func if inspect.isfunction(term.func) or inspect.isclass(term.func) else type(term.func)
    module, name = function.__module__, function.__qualname__
    row: dict[str, Json] = {"function": f"{module}:{name}", "params": _plain(term.params)}
    if module == OBSERVATIONS and name in JOINT_VALUES:
        default = inspect.signature(function).parameters["asset_cfg"].default
        entity = term.params.get("asset_cfg", default)
        asset = env.scene[entity.name]
        ids = _indexes(entity.joint_ids, asset.num_joints)
        row |= {"asset": entity.name, "joint_names": [asset.joint_names[index] for index in ids]}
        if attribute := JOINT_VALUES[name]:
            values = getattr(asset.data, attribute).torch[0].tolist()
            row["offset"] = [_number(values[index]) for index in ids]
    modifiers = [getattr(one.func, "__name__", type(one.func).__name__) for one in term.modifiers or ()]
    row |= {"modifiers": [*modifiers], "noise": None if term.noise is None else type(term.noise).__name__}
    row |= {"clip": _plain(term.clip), "scale": _plain(term.scale), "history_length": term.history_length or 0}
    return {**row, "delay": [getattr(term, "delay_min_lag", 0), getattr(term, "delay_max_lag", 0)]}


def actions_of(env: Any) -> list[dict[str, Json]]:
    """Return the action terms of a manager-based env, in the order of the policy's actions.

    The env applies ``clip(scale * action + offset)`` to the joints of a term with a ``target``.
    """
    manager, rows, start = env.action_manager, [], 0
    for name in manager.active_terms:
        term = manager.get_term(name)
        cls = type(term)
        columns: Json = [start, start + term.action_dim]
        row = {"name": name, "columns": columns, "class": f"{cls.__module__}:{cls.__qualname__}"}
        rows.append({**row, "asset": term.cfg.asset_name, **_action(term)})
        start += term.action_dim
    return rows


def _action(term: Any) -> dict[str, Json]:
    """Describe what an action term does with its actions: exactly for Isaac Lab's joint actions, else its config."""
    from isaaclab.envs.mdp.actions import joint_actions

    base, cls = joint_actions.JointAction, type(term)
    classes = {name: getattr(joint_actions, name) for name in TARGETS}
    target = next((name for name, one in classes.items() if cls.apply_actions is one.apply_actions), None)
    config = {name: _plain(value) for name, value in vars(term.cfg).items() if _is_plain(value)}
    if not isinstance(term, base) or cls.process_actions is not base.process_actions or target is None:
        return {"target": None, "config": config}
    count = term.action_dim
    scale, offset = (release.required(term, name, FEATURE) for name in ("_scale", "_offset"))
    row: dict[str, Json] = {
        "target": TARGETS[target],
        "joint_names": [*release.required(term, "_joint_names", FEATURE)],
    }
    row |= {"scale": _per_joint(scale, count), "offset": _per_joint(offset, count), "clip": None}
    if term.cfg.clip is not None:
        row["clip"] = _plain(release.required(term, "_clip", FEATURE)[0])
    return row


def joints_of(asset: Any) -> dict[str, list[Any]]:
    """Return names, default positions, stiffness and damping of a robot's joints, in the order of the simulation.

    Stiffness and damping are left out if an actuator of the robot computes its own torques, since it owns these values.
    """
    from isaaclab.actuators import ImplicitActuator

    data = {"default_joint_pos": asset.data.default_joint_pos}
    if all(isinstance(actuator, ImplicitActuator) for actuator in asset.actuators.values()):
        data |= {"joint_stiffness": asset.data.joint_stiffness, "joint_damping": asset.data.joint_damping}
    values = {name: [_number(value) for value in array.torch[0].tolist()] for name, array in data.items()}
    return {"joint_names": [*asset.joint_names], **values}


def space_of(space: Any) -> dict[str, Json]:
    """Describe an action space of gymnasium as JSON. A bound that is not finite is None."""
    row: dict[str, Json] = {"type": type(space).__name__}
    if hasattr(space, "nvec"):
        return {**row, "choices": space.nvec.tolist()}
    if hasattr(space, "n"):
        return {**row, "choices": [int(space.n)]}
    if hasattr(space, "low"):
        bounds = {"low": _plain(space.low.flatten().tolist()), "high": _plain(space.high.flatten().tolist())}
        return {**row, "shape": [*space.shape], **bounds}
    return row


def size_of(space: Any) -> int | None:
    """Return the number of values of an action; None for a space of several."""
    if hasattr(space, "nvec"):
        return len(space.nvec)
    if hasattr(space, "n"):
        return 1
    return math.prod(space.shape) if hasattr(space, "low") else None


def _per_joint(value: Any, count: int) -> list[Json]:
    return [_number(value)] * count if isinstance(value, int | float) else [_number(one) for one in value[0].tolist()]


def _indexes(ids: Any, count: int) -> list[int]:
    """Return the indexes that a slice, a list or a tensor selects."""
    if isinstance(ids, slice):
        return [*range(count)][ids]
    return [int(index) for index in getattr(ids, "torch", ids)]


def _number(value: Any) -> float:
    """Return the shortest float that is the same float32."""
    import numpy as np

    return float(str(np.float32(float(value))))


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _plain(value: Any) -> Json:
    """Return a value as JSON: floats that are not finite are None, and entities of the scene their names."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):
        return _plain(_shortest(value))
    if hasattr(value, "joint_ids"):  # a SceneEntityCfg
        return {"asset": value.name, **dict(_selected(value))}
    return getattr(value, "__name__", type(value).__name__)


def _shortest(value: Any) -> Any:
    numbers = value.tolist()
    return _each(numbers)


def _each(numbers: Any) -> Any:
    if isinstance(numbers, list):
        return [_each(one) for one in numbers]
    return _number(numbers) if isinstance(numbers, float) else numbers


def _selected(entity: Any) -> Iterator[tuple[str, Json]]:
    for name in ("joint_names", "body_names"):
        if (names := getattr(entity, name, None)) is not None:
            yield name, [names] if isinstance(names, str) else [*names]
