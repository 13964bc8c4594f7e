"""Mappings are typed, and functions fit on a screen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
CORE = sorted((REPO / "rlnb").rglob("*.py"))
SOURCES = [*CORE, *sorted(REPO.glob("plugins/*/src/**/*.py")), *sorted(REPO.glob("extensions/*/src/**/*.py"))]

MOST_LINES = 40
"""Largest number of lines in a function's body, without its docstring."""
UNTYPED = frozenset({"dict[str, Any]", "dict[str, object]", "Mapping[str, Any]", "Mapping[str, object]"})
MOST_UNTYPED = 40
"""Largest number of untyped mappings in annotations. Keys that rlnb does not know need some; commit 2fe4a19 had 215."""


def untyped(tree: ast.AST) -> int:
    """Return the number of annotations with an untyped mapping."""
    return sum(isinstance(node, ast.Subscript) and ast.unparse(node) in UNTYPED for node in ast.walk(tree))


def long_functions(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            if body and (node.end_lineno or 0) - body[0].lineno + 1 > MOST_LINES:
                yield node.name


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}


def test_mappings_are_typed(trees: dict[Path, ast.Module]) -> None:
    counts = {str(path.relative_to(REPO)): untyped(trees[path]) for path in CORE}
    listing = "\n".join(f"{path}: {count}" for path, count in counts.items() if count)
    assert sum(counts.values()) <= MOST_UNTYPED, f"{sum(counts.values())} annotations are untyped mappings:\n{listing}"


def test_a_function_fits_on_a_screen(trees: dict[Path, ast.Module]) -> None:
    names = [f"{path.relative_to(REPO)}: {name}" for path, tree in trees.items() for name in long_functions(tree)]
    assert not names, "\n".join(names)


def test_the_counters_count_examples() -> None:
    body = "\n".join(f"    line_{number} = {number}" for number in range(MOST_LINES + 1))
    tree = ast.parse(
        f'def long(found: dict[str, Any]) -> None:\n    """Say it."""\n{body}\n    for said in found: pass'
    )
    assert [*long_functions(tree)] == ["long"]
    assert untyped(tree) == 1
