"""Check the types of a dataclass's values, which Python itself does not do."""

from __future__ import annotations

import functools
import reprlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal


def wrong_fields(item: object) -> list[str]:
    """Return a clause for each field of a dataclass whose value does not have the field's type.

    A list may stand for a tuple, and a whole number for a float.
    """
    return [
        f"{name}={reprlib.repr(value)} is not {type_name(hint)}"
        for name, hint in _hints(type(item))  # type: ignore[arg-type]  # a class is hashable
        if not _fits(value := getattr(item, name), hint)
    ]


def type_name(hint: Any) -> str:
    """Return a type hint as text, e.g. ``"Mapping[str, str]"``."""
    text = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    return text.replace("typing.", "").replace("collections.abc.", "")


@functools.cache
def _hints(cls: type) -> list[tuple[str, Any]]:
    return [*typing.get_type_hints(cls).items()]


def _fits(value: object, hint: Any) -> bool:
    if hint is Any:
        return True
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin in (tuple, Sequence):
        return isinstance(value, (tuple, list)) and all(_fits(part, parts[0]) for part in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, parts[0]) and _fits(part, parts[1]) for key, part in value.items()
        )
    if origin is Callable:
        return callable(value)
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else hint)
