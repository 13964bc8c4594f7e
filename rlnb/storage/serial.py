"""Convert the dataclasses of :mod:`rlnb.spec` to JSON and back. Standard library only."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import reprlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from rlnb.errors import RlnbError, did_you_mean
from rlnb.spec import SCHEMA, Json
from rlnb.storage import files

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Return ``value`` as plain JSON types: dataclasses become dicts, tuples become lists, paths become strings.

    Raises:
        RlnbError: The value cannot be written as JSON, or contains itself.
    """
    try:
        return _to_json(value)
    except RecursionError:
        raise RlnbError("A value refers to itself or is nested too deeply for JSON. Use a flatter one.") from None


def _to_json(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RlnbError(f"{value!r} has characters that do not exist in Unicode. Remove them.") from None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _to_json(item) for key, item in value.items()}
    return _to_json(files.plain(value))


def from_json(cls: type[T], data: Mapping[str, Json], *, ignore_unknown: bool = False) -> T:
    """Build a dataclass from :func:`to_json`'s output.

    Args:
        cls: The dataclass.
        data: Field names to values.
        ignore_unknown: Whether to ignore unknown fields, such as those of a record that a newer rlnb wrote.

    Raises:
        RlnbError: A field is unknown or missing, a value has the wrong type, or the schema is newer than this rlnb's.
    """
    if not isinstance(data, Mapping):
        raise RlnbError(f"{cls.__name__} has to be an object with fields, not {type(data).__name__}.")
    schema = data.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise RlnbError(f"{cls.__name__} has schema {schema}, but this rlnb reads up to {SCHEMA}. Update rlnb.")
    hints, values = _hints(cls), dict(data)  # type: ignore[arg-type]  # a class is hashable
    for key, value in data.items():
        if key not in hints:
            if ignore_unknown:
                del values[key]
                continue
            raise RlnbError(
                f"{cls.__name__} has no field {key!r}. Fields: {', '.join(hints)}.{did_you_mean(key, hints)}"
            )
        hint, plain = hints[key]
        if type(value) in plain:
            continue
        try:
            values[key] = _restore(hint, value, ignore_unknown)
        except (TypeError, ValueError) as exc:
            text, kind = reprlib.repr(value), type_name(hint)
            raise RlnbError(f"{cls.__name__}: {key}={text} is not a value of type {kind}. Correct it.") from exc
    try:
        return cls(**values)
    except TypeError as exc:
        raise RlnbError(f"{cls.__name__}: {exc}") from exc


@functools.cache
def _hints(cls: type) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return each field's type hint with the types whose values need no conversion.

    Cached, because a list of a thousand runs needs the same hints a thousand times.
    """
    hints = typing.get_type_hints(cls)
    return {
        name: (hint, typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,))
        for name, hint in hints.items()
    }


def _restore(hint: Any, value: Any, ignore_unknown: bool) -> Any:
    """Convert a JSON value to the type of a field.

    Raises:
        TypeError: The value has the wrong type.
    """
    if hint is Any or type(value) is hint or (hint is float and type(value) is int):
        return value
    if hint is int and isinstance(value, float) and value.is_integer():  # JSON does not distinguish int from float
        return int(value)
    if isinstance(value, Mapping) and dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_json(hint, value, ignore_unknown=ignore_unknown)
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal and value in parts:
        return value
    if origin in (types.UnionType, typing.Union):
        for part in parts:
            with contextlib.suppress(TypeError):
                return _restore(part, value, ignore_unknown)
    if isinstance(value, list) and origin is tuple:
        plain = typing.get_args(parts[0]) if isinstance(parts[0], types.UnionType) else parts[:1]
        if parts[-1] is ... and set(map(type, value)) <= set(plain):  # fast for one number per episode
            return tuple(value)
        kinds = parts[:1] * len(value) if parts[-1] is ... else parts
        if kinds[:1] == (str,):  # older runs can have numbers as tags, which were not checked
            value = [str(item) if type(item) in (int, float) else item for item in value]
        return tuple(_restore(kind, item, ignore_unknown) for kind, item in zip(kinds, value, strict=True))
    if isinstance(value, Mapping) and origin is Mapping:
        return {key: _restore(parts[1], item, ignore_unknown) for key, item in value.items()}
    raise TypeError(hint)


# -- types of values -------------------------------------------------------------------------------------------------


def wrong_fields(item: object) -> list[str]:
    """Return a clause for each field of a dataclass whose value does not have the field's type.

    A list may stand for a tuple, and a whole number for a float.
    """
    return [
        f"{name}={reprlib.repr(value)} is not {type_name(hint)}"
        for name, hint in _types(type(item))  # type: ignore[arg-type]  # a class is hashable
        if not _fits(value := getattr(item, name), hint)
    ]


def type_name(hint: Any) -> str:
    """Return a type hint as text, e.g. ``"Mapping[str, str]"``."""
    text = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    return text.replace("typing.", "").replace("collections.abc.", "")


@functools.cache
def _types(cls: type) -> list[tuple[str, Any]]:
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
