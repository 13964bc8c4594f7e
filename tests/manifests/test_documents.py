"""Documents are merged at any depth and written as YAML."""

from __future__ import annotations

from rlnb.manifests.job import Document, merged, yaml


def test_objects_are_merged_at_any_depth_and_other_values_are_replaced() -> None:
    base: Document = {"spec": {"a": 1, "b": {"c": 2}}, "kind": "Job"}
    assert merged(base, {"spec": {"b": {"d": 3}, "a": None}}) == {
        "spec": {"a": None, "b": {"c": 2, "d": 3}},
        "kind": "Job",
    }
    assert base["spec"] == {"a": 1, "b": {"c": 2}}, "the base is unchanged"


def test_lists_of_named_objects_are_merged_by_name() -> None:
    first: Document = {"name": "a", "env": [{"name": "X", "value": "1"}]}
    base: Document = {"containers": [first, {"name": "b"}], "args": ["x"]}
    changes: Document = {
        "containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}], "tty": True}, {"name": "c"}]
    }
    containers = [
        {"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}], "tty": True},
        {"name": "b"},
        {"name": "c"},
    ]
    assert merged(base, {**changes, "args": ["y"]}) == {"containers": containers, "args": ["y"]}


def test_yaml_has_no_aliases_and_no_broken_lines() -> None:
    shared = {"x": "a" * 300}
    assert yaml({"one": shared, "two": [shared]}) == f"one:\n  x: {'a' * 300}\ntwo:\n  - x: {'a' * 300}\n"


def test_text_stays_text_for_readers_of_yaml_1_1() -> None:
    texts = ["Y", "YES", "no", "1", "010", "1:30", "true", "null", "0.5"]
    assert yaml({"env": texts, "count": 1}) == "env:\n" + "".join(f'  - "{text}"\n' for text in texts[:6]) + (
        "  - 'true'\n  - 'null'\n  - \"0.5\"\ncount: 1\n"
    )


def test_a_script_is_written_line_by_line() -> None:
    assert yaml({"run": "a\nb\n"}) == "run: |\n  a\n  b\n"
