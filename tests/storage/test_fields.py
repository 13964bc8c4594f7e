"""The types of a dataclass's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from rlnb.contracts.libraries import Library
from rlnb.contracts.plugin_types import AssetPack, LauncherType, Panel
from rlnb.errors import Problem
from rlnb.spec import Command, Task
from rlnb.storage.serial import wrong_fields


@dataclass(kw_only=True)
class Thing:
    text: str = ""
    ratio: float = 0.0
    count: int = 0
    flag: bool = False
    path: str | None = None
    kind: Literal["a", "b"] = "a"
    names: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    rows: Sequence[bool | float] | None = None
    function: Callable[[], Any] = print
    anything: Any = None


@pytest.mark.parametrize(
    "values",
    [
        {},
        {
            "ratio": 1,
            "names": ["a"],
            "sizes": {"a": 1},
            "path": "a",
            "kind": "b",
            "rows": [1, True, 0.5],
            "function": list,
            "anything": object(),
        },
    ],
)
def test_values_of_the_right_types_are_accepted(values: dict[str, Any]) -> None:
    assert wrong_fields(Thing(**values)) == []


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("text", None, "text=None is not str"),
        ("ratio", "1", "ratio='1' is not float"),
        ("count", 1.5, "count=1.5 is not int"),
        ("count", True, "count=True is not int"),
        ("flag", 1, "flag=1 is not bool"),
        ("path", 3, "path=3 is not str | None"),
        ("kind", "c", "kind='c' is not Literal['a', 'b']"),
        ("names", "abc", "names='abc' is not tuple[str, ...]"),
        ("names", [1], "names=[1] is not tuple[str, ...]"),
        ("sizes", {"a": "b"}, "sizes={'a': 'b'} is not Mapping[str, int]"),
        ("sizes", 3, "sizes=3 is not Mapping[str, int]"),
        ("rows", ["1"], "rows=['1'] is not Sequence[bool | float] | None"),
        ("rows", "11", "rows='11' is not Sequence[bool | float] | None"),
        ("function", 3, "function=3 is not Callable[[], Any]"),
    ],
)
def test_a_value_of_another_type_is_named_with_the_right_one(name: str, value: object, text: str) -> None:
    assert wrong_fields(Thing(**{name: value})) == [text]


@pytest.mark.parametrize(
    "item",
    [
        Library(name="a", backend="b:C"),
        LauncherType(name="a", factory="b:C"),
        Task(id="a"),
        AssetPack(name="a", version="1", build="b:c", files={"a": "MIT"}),
        Command(argv=("a",)),
        Problem(what="a"),
        Panel(title="a", figure=list),
    ],
    ids=lambda item: type(item).__name__,
)
def test_the_defaults_of_what_hooks_return_have_the_right_types(item: object) -> None:
    assert wrong_fields(item) == []
