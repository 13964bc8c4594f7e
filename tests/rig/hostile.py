"""Hostile values in records: what other users may write in a field, and where the fields of a record are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

VALUES = (
    "--user=x",
    "-oProxyCommand=id",
    "../../elsewhere",
    "$(id)",
    "`id`;reboot",
    "x\ny",
    "x\0--user=x",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\x1b]0;x\x07\x1b[31m",
    "17_[--user=x]",
    "long" * 100,
    -7919,
    2**70,
)
MARKUP = re.compile("<script>alert|<img src=x", re.IGNORECASE)
"""What no page may contain."""
CONTROLS = re.compile(r"\x1b\]0;x|\x1b\[31m")
"""What no terminal may get."""


def fields(record: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each field of a record, also of those that are in a field, and of the first item of a list."""
    if isinstance(record, Mapping):
        items = list(record.items())
    else:
        items = list(enumerate(record[:1])) if isinstance(record, list) else []
    for name, value in items:
        yield (*path, name)
        yield from fields(value, (*path, name))


def put(record: Any, path: tuple[str | int, ...], value: object) -> Any:
    """Return a record with another value in a field, as a list or a mapping where the field has one."""
    if not path:
        return [value] if isinstance(record, list) else {"a": value} if isinstance(record, dict) else value
    name, *rest = path
    if isinstance(record, list):
        return [put(one, tuple(rest), value) if number == name else one for number, one in enumerate(record)]
    return {**record, name: put(record[name], tuple(rest), value)}
