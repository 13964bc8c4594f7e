"""Configs as trees of named values: functions that list the values, and set one after checking its path."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from rlnb.configs.card import ConfigField, Fields, Kind
from rlnb.errors import RlnbError, did_you_mean
from rlnb.spec import Json

_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")
_KINDS: Mapping[type, Kind] = {bool: "bool", int: "int", float: "float", str: "str"}
Missing = type(dataclasses.MISSING)
"""Type of a value that has to be set. Isaac Lab copies configs, so that there are several such values."""
_LEAVES = (bool, int, float, str, list, tuple, type(None))


def leaves(cfg: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of a config with its dotted path."""
    for name, value in _children(cfg):
        below = f"{path}.{name}" if path else name
        if isinstance(value, _LEAVES):
            yield below, value
        elif _is_node(value):
            yield from leaves(value, below)


def fields(cfg: Any) -> Fields:
    """Return every value of a config with its type, by dotted path, for a task card."""
    return {path: ConfigField(type=_field_kind(path, value), value=plain(value)) for path, value in leaves(cfg)}


def _field_kind(path: str, value: Any) -> Kind:
    name = kind(value)
    # Isaac Lab accepts any number as the weight of a reward term.
    return "float" if name == "int" and path.endswith(".weight") else name


def tree(cfg: Any) -> Json:
    """Return a config as nested JSON values, as a process without Isaac Lab can hold it."""
    return {
        name: tree(value) if _is_node(value) else plain(value)
        for name, value in _children(cfg)
        if isinstance(value, _LEAVES) or _is_node(value)
    }


def snapshot(cfg: Any) -> dict[str, Any]:
    """Return a copy of every value of a config by dotted path."""
    return {path: copy.deepcopy(value) for path, value in leaves(cfg)}


def dicts(cfg: Any, path: str = "") -> Iterator[str]:
    """Yield the dotted path of every dict in a config, since values can be added to dicts; "" is the config itself."""
    if isinstance(cfg, dict):
        yield path
    for name, value in _children(cfg):
        yield from dicts(value, f"{path}.{name}" if path else name)


def openings(cfg: Any, path: str = "") -> Iterator[tuple[str, Fields]]:
    """Yield each value without a default that may be a group, by dotted path, with the fields of the group."""
    for name, value in _children(cfg):
        below = f"{path}.{name}" if path else name
        if _is_open(value):
            if (group := _group(cfg, name)) is not None:
                yield below, dict(_group_fields(group))
        elif _is_node(value):
            yield from openings(value, below)


def _is_open(value: Any) -> bool:
    return value is None or isinstance(value, Missing)


def _group(owner: Any, name: str) -> Any:
    """Return a new group for a value without a default, as its annotation says; None if it is no group."""
    if isinstance(owner, Mapping):
        return {}  # a config without annotations
    annotation = _annotation(type(owner), name)
    for kind in (annotation, *typing.get_args(annotation)):
        if kind is dict or typing.get_origin(kind) is dict:
            return {}
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            try:
                return kind()
            except TypeError:  # a dataclass of Python's own with required fields
                return None
    return None


def _annotation(cls: type, name: str) -> Any:
    """Return the type of an attribute; None if its annotation cannot be resolved.

    Isaac Lab copies the annotations of a base class to its subclasses, in whose modules their names may be unknown.
    """
    for base in cls.__mro__:
        if name in (own := vars(base).get("__annotations__", {})):
            holder = types.SimpleNamespace(__annotations__={name: own[name]})
            with contextlib.suppress(Exception):  # an annotation may be any text
                return typing.get_type_hints(holder, vars(sys.modules[base.__module__]), dict(vars(base)))[name]
    return None


def _group_fields(group: Any, path: str = "") -> Iterator[tuple[str, ConfigField]]:
    for name, value in _children(group):
        below = f"{path}.{name}" if path else name
        if isinstance(value, Missing):
            yield below, ConfigField(type="any", required=True)
        elif isinstance(value, _LEAVES):
            yield below, ConfigField(type=_field_kind(below, value), value=plain(value))
        elif _is_node(value):
            yield from _group_fields(value, below)


def _is_node(value: Any) -> bool:
    return isinstance(value, Mapping) or hasattr(value, "__dataclass_fields__")


def _children(cfg: Any) -> list[tuple[str, Any]]:
    if isinstance(cfg, Mapping):
        return [(str(name), value) for name, value in cfg.items()]
    if hasattr(cfg, "__dataclass_fields__"):
        return [(name, value) for name, value in vars(cfg).items() if not name.startswith("_")]
    return []


def set_values(cfg: Any, values: Mapping[str, Json]) -> None:
    """Set values by dotted path, as :func:`set_value` does. A group that takes any value needs no +.

    Raises:
        RlnbError: There is no such path.
    """
    free = [f"{path}." for path, fields in openings(cfg) if not fields]
    for path, value in values.items():
        adds = path.startswith(tuple(free))
        set_value(cfg, f"+{path}" if adds else path, value)


def set_value(cfg: Any, path: str, value: Any) -> None:
    """Set one value by dotted path. A leading + adds keys that a dict does not have yet.

    A value without a default that the path leads through becomes a group, as in :func:`openings`.

    Raises:
        RlnbError: There is no such path. Isaac Lab itself would add it silently.
    """
    adds, path = path.startswith("+"), path.removeprefix("+")
    *parts, leaf = path.split(".")
    node = cfg
    for part in parts:
        if adds and isinstance(node, dict):
            node.setdefault(part, {})
        node = _opened(node, part, path)
    if adds and isinstance(node, dict):
        node.setdefault(leaf, None)
    current = _get(node, leaf, path)
    if isinstance(current, tuple) and isinstance(value, list):
        value = tuple(value)
    if isinstance(current, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(node, dict):
        node[leaf] = value
    else:
        setattr(node, leaf, value)


def value_at(cfg: Any, path: str) -> Json:
    """Return a copy of one value by dotted path, as :func:`plain` does; None if there is no such path."""
    node = cfg
    for name in path.split("."):
        node = dict(_children(node)).get(name)
    return tree(node) if _is_node(node) else plain(node)


def _opened(node: Any, name: str, path: str) -> Any:
    """Return a value that a path leads through, which is made a group if it has no default."""
    value = _get(node, name, path)
    if not _is_open(value) or (group := _group(node, name)) is None:
        return value
    if isinstance(node, dict):
        node[name] = group
    else:
        setattr(node, name, group)
    return group


def _get(node: Any, name: str, path: str) -> Any:
    children = dict(_children(node))
    if name not in children:
        names = ", ".join(sorted(children)) or "nothing"
        raise RlnbError(f"No config value {path!r}: {name!r} is not one of {names}.{did_you_mean(name, children)}")
    return children[name]


def kind(value: Any) -> Kind:
    """Return the name of a value's type for a task card; ``any`` for None, which leaves the type open."""
    if value is None:
        return "any"
    if isinstance(value, str) and _NUMBER.fullmatch(value):  # YAML 1.1 reads RL-Games' 5e-4 as a string
        return "float"
    return _KINDS.get(type(value), "list")


def plain(value: Any) -> Json:
    """Return a JSON value; the ``repr`` of a value that JSON cannot hold (MISSING, classes in lists)."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):  # in a list, as skrl's networks are
        return {str(name): plain(item) for name, item in value.items()}
    return repr(value)[:200]
