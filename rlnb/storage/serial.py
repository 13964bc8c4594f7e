"""The nouns of :mod:`rlnb.spec` as JSON, both ways. Standard library only."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import reprlib
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from rlnb.errors import RlnbError, did_you_mean
from rlnb.spec import SCHEMA, Json
from rlnb.storage import files

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Return ``value`` as plain JSON types: dataclasses become dicts, tuples lists, paths strings.

    Raises:
        RlnbError: The value cannot be written as JSON.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    return to_json(files.plain(value))


def from_json(cls: type[T], data: Mapping[str, Json], *, ignore_unknown: bool = False) -> T:
    """Build a dataclass from :func:`to_json`'s output.

    Args:
        cls: The dataclass.
        data: Its fields.
        ignore_unknown: Whether fields that the class does not have are ignored, as in a record that a newer rlnb wrote.

    Raises:
        RlnbError: A key that the class does not have, a missing one, a value of another type, or a newer schema.
    """
    schema = data.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise RlnbError(f"{cls.__name__} has schema {schema}, this rlnb reads up to {SCHEMA}. Update rlnb.")
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
            text, kind = reprlib.repr(value), _name(hint)
            raise RlnbError(f"{cls.__name__}: {key}={text} is not a value of type {kind}. Correct it.") from exc
    try:
        return cls(**values)
    except TypeError as exc:
        raise RlnbError(f"{cls.__name__}: {exc}") from exc


@functools.cache
def _hints(cls: type) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return the fields' types of a class, each with those whose values are taken as they are.

    A list of a thousand runs asks for the same ones each time.
    """
    hints = typing.get_type_hints(cls)
    return {
        name: (hint, typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,))
        for name, hint in hints.items()
    }


def _name(hint: Any) -> str:
    name = hint.__name__ if isinstance(hint, type) else str(hint)
    return name.replace("typing.", "").replace("collections.abc.", "")


def _restore(hint: Any, value: Any, ignore_unknown: bool) -> Any:
    """Return a value of JSON as a field of that type holds it.

    Raises:
        TypeError: It is of another type.
    """
    if hint is Any or type(value) is hint or (hint is float and type(value) is int):
        return value
    if hint is int and isinstance(value, float) and value.is_integer():  # JSON has one kind of number
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
        if parts[-1] is ... and set(map(type, value)) <= set(plain):  # an evaluation has a number for every episode
            return tuple(value)
        kinds = parts[:1] * len(value) if parts[-1] is ... else parts
        if kinds[:1] == (str,):  # tags were numbers too, before they were checked
            value = [str(item) if type(item) in (int, float) else item for item in value]
        return tuple(_restore(kind, item, ignore_unknown) for kind, item in zip(kinds, value, strict=True))
    if isinstance(value, Mapping) and origin is Mapping:
        return {key: _restore(parts[1], item, ignore_unknown) for key, item in value.items()}
    raise TypeError(hint)
