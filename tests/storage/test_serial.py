"""Dataclasses to JSON and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

import rlnb
from rlnb.contracts.libraries import Library
from rlnb.contracts.plugin_types import AssetPack, LauncherType, Panel
from rlnb.errors import Problem, RlnbError
from rlnb.plugin import Manifest
from rlnb.spec import SCHEMA, Command, Result, Started, Task
from rlnb.storage.serial import from_json, to_json, wrong_fields

MANIFEST = Manifest(
    run_id="20260101-000000-echo-echo-abcd",
    created="2026-01-01T00:00:00.000+00:00",
    task=rlnb.Task(id="Echo"),
    library="echo",
)


def test_an_unknown_key_is_refused_with_the_closest_one() -> None:
    with pytest.raises(rlnb.RlnbError, match=r"Task has no field 'num_env'.*Did you mean 'num_envs'\?"):
        from_json(rlnb.Task, {"id": "Echo", "num_env": 4})


def test_an_unknown_nested_key_is_refused() -> None:
    data = to_json(MANIFEST)
    data["task"]["sources"] = "x"
    with pytest.raises(rlnb.RlnbError, match=r"Task has no field 'sources'.*Did you mean 'source'\?"):
        from_json(Manifest, data)


def test_a_missing_key_is_refused_with_its_name() -> None:
    with pytest.raises(rlnb.RlnbError, match=r"Task: .*'id'"):
        from_json(rlnb.Task, {})


def test_a_newer_schema_is_refused_with_the_fix() -> None:
    data = {**to_json(MANIFEST), "schema": SCHEMA + 1, "something_new": 1}
    with pytest.raises(rlnb.RlnbError, match=rf"Manifest has schema {SCHEMA + 1}, .* up to {SCHEMA}. Update rlnb"):
        from_json(Manifest, data)


def test_paths_and_tuples_become_plain_json() -> None:
    assert to_json({1: (Path("a"), None, True)}) == {"1": ["a", None, True]}


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", lambda: None])
def test_a_value_that_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(rlnb.RlnbError, match="cannot be written as JSON"):
        to_json({"deep": [value]})


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("run_id", 5, "str"),
        ("run_id", None, "str"),
        ("seed", "42", "int"),
        ("seed", True, "int"),
        ("seed", 1.5, "int"),
        ("seed", float("nan"), "int"),
        ("seed", float("inf"), "int"),
        ("max_iterations", "50", r"int \| None"),
        ("script", "train.py", r"tuple\[str, \.\.\.\]"),
        ("script", [None], r"tuple\[str, \.\.\.\]"),
        ("agent", ["a"], r"Mapping\[str, Any\]"),
        ("git", {"commit": 5}, r"Mapping\[str, str\]"),
        ("task", "Echo", "Task"),
        ("resources", None, "Resources"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_field(name: str, value: Any, kind: str) -> None:
    data = {"run_id": "r", "created": "", "task": {"id": "Echo"}, "library": "echo", name: value}
    with pytest.raises(rlnb.RlnbError, match=rf"^Manifest: {name}=.* is not a value of type {kind}\."):
        from_json(Manifest, data)


def test_the_error_for_a_wrong_literal_lists_the_allowed_ones() -> None:
    with pytest.raises(rlnb.RlnbError, match=r"^Result: outcome='great' .* Literal\['completed', 'failed', "):
        from_json(Result, {"outcome": "great"})


def test_whole_numbers_are_accepted_as_float_and_int() -> None:
    data = {"hosts": [], "devices": [], "world_size": 1.0, "num_envs": 4, "horizon": 16, "frames_per_step": 64}
    started = from_json(Started, data)
    assert (started.world_size, started.frames_per_step) == (1, 64)
    assert isinstance(started.world_size, int)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Numbers:
    """A record with lists of numbers."""

    floats: tuple[float, ...] = ()
    flags: tuple[bool | float, ...] = ()


def test_a_list_of_numbers_keeps_its_values_and_is_checked_item_by_item() -> None:
    assert from_json(Numbers, {"floats": [0.5, 1, 2.0]}).floats == (0.5, 1, 2.0)
    assert from_json(Numbers, {"floats": [0.5, 1.5]}).floats == (0.5, 1.5)
    assert from_json(Numbers, {"flags": [True, 0, 1.0]}).flags == (True, 0, 1.0)
    for value in ([0.5, "1"], [0.5, None], [[0.5]]):
        with pytest.raises(rlnb.RlnbError, match=r"Numbers: floats=.* is not a value of type"):
            from_json(Numbers, {"floats": value})


# -- fields ----------------------------------------------------------------------------------------------------------


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


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(RlnbError, match="Task has to be an object with fields, not list"):
        from_json(Task, [1])  # type: ignore[arg-type]
