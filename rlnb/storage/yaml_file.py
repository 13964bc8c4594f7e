"""YAML files of other people: bounded before they are loaded.

A few hundred bytes of YAML can stand for more values than fit into memory, because an alias repeats what its anchor
holds. The parser's events tell how many values a file stands for, without making them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlnb.errors import RlnbError
from rlnb.spec import Json
from rlnb.storage import files

if TYPE_CHECKING:
    from ruamel.yaml.constructor import SafeConstructor
    from ruamel.yaml.events import Event

LARGEST_BYTES = 1 << 20
"""Largest YAML file that is read, in bytes. The largest config of Isaac Lab 3.0.0, of
`Isaac-Reorient-KukaAllegro-Camera`, has 112 kB and 6,486 values."""
MOST_VALUES = 20_000
"""Largest number of values in a YAML file, with those that its aliases repeat."""
TUPLE = "tag:yaml.org,2002:python/tuple"
"""Tag of a tuple in the files of PyYAML, with which Isaac Lab writes the config of a run."""
DEEPEST = 100
"""Largest depth of nested values."""


def load(path: Path, kind: Literal["safe", "rt"]) -> Any:
    """Return the content of a YAML file (version 1.2).

    Args:
        path: The file.
        kind: ruamel's loader: ``"safe"`` refuses tags of Python objects but tuples, which become lists, and ``"rt"``
            ignores them.

    Raises:
        RlnbError: The file is not valid YAML, or is too large, too deep, or contains itself.
        OSError: The file cannot be read.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    with files.open_regular(path) as file:
        content = file.read(LARGEST_BYTES + 1)
    if len(content) > LARGEST_BYTES:
        raise RlnbError(f"{path} is larger than {LARGEST_BYTES >> 20} MiB. Use a smaller file.")
    try:
        text = content.decode("utf-8")
        _check(path, YAML(typ="safe", pure=True).parse(text))
        yaml = YAML(typ=kind, pure=True)
        if kind == "safe":
            yaml.Constructor = _constructor()
        return yaml.load(text)
    except (YAMLError, ValueError) as exc:  # a number with thousands of digits is a ValueError
        raise RlnbError(f"{path} is not plain YAML: {exc}") from exc


def _constructor() -> type[SafeConstructor]:
    """Return ruamel's constructor of plain values, which also takes the tuples that Isaac Lab writes into configs."""
    from ruamel.yaml.constructor import SafeConstructor

    class Constructor(SafeConstructor):
        pass

    Constructor.add_constructor(TUPLE, lambda constructor, node: constructor.construct_sequence(node, deep=True))
    return Constructor


def _check(path: Path, events: Iterator[Event]) -> None:
    """Refuse a file that stands for too many values."""
    sizes: dict[str, int] = {}  # of the anchors' values
    parents: list[tuple[str | None, int]] = []  # by depth: anchor, and the count where the value begins
    count = 0
    for event in events:
        name, anchor = type(event).__name__, getattr(event, "anchor", None)
        if name == "AliasEvent":
            if anchor not in sizes:
                raise RlnbError(f"{path} contains itself at *{anchor}. Remove that alias.")
            count += sizes[anchor]
        elif name in ("MappingStartEvent", "SequenceStartEvent"):
            parents.append((anchor, count))
            count += 1
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            begun, start = parents.pop()
            if begun is not None:
                sizes[begun] = count - start
        elif name == "ScalarEvent":
            count += 1
            if anchor is not None:
                sizes[anchor] = 1
        if count > MOST_VALUES:
            raise RlnbError(f"{path} stands for more than {MOST_VALUES:,} values. Use a smaller file.")
        if len(parents) > DEEPEST:
            raise RlnbError(f"{path} is nested deeper than {DEEPEST} levels. Use a flatter file.")


def read_agent(path: Path) -> dict[str, Json]:
    """Return the agent config in a YAML file, nested as in the file.

    Raises:
        RlnbError: The file cannot be read, or does not hold a mapping.
    """
    try:
        values = load(path, "safe")
    except OSError as exc:
        raise RlnbError(f"The agent config {path} cannot be read: {exc}.") from exc
    except RlnbError as exc:
        raise RlnbError(f"The agent config {exc}") from exc
    if not isinstance(values, dict):
        raise RlnbError(f"The agent config {path} holds a {type(values).__name__}, not a mapping of names to values.")
    return values
