"""Every hook is documented with its exact signature, and has a test."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from rlnb.hooks import hookspecs

REPO = Path(__file__).parents[2]
HOOKS = {name: spec for name, spec in vars(hookspecs).items() if name.startswith("rlnb_")}


def signature(name: str) -> str:
    return f"{name}({', '.join(inspect.signature(HOOKS[name]).parameters)})"


def test_there_are_hooks() -> None:
    assert len(HOOKS) >= 11


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_documented_with_its_exact_signature(name: str) -> None:
    headings = [line for line in (REPO / "docs/hooks.md").read_text().splitlines() if line.startswith("#")]
    assert f"### `{signature(name)}`" in headings


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_has_a_test_named_after_it(name: str) -> None:
    tree = ast.parse((REPO / "tests/test_hookspecs.py").read_text())
    tests = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert any(test.startswith(f"test_{name}_") for test in tests)


def test_every_documented_hook_exists() -> None:
    lines = (REPO / "docs/hooks.md").read_text().splitlines()
    documented = [line.removeprefix("### `").partition("(")[0] for line in lines if line.startswith("### `rlnb_")]
    assert documented == list(HOOKS)
