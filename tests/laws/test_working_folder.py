"""No process of rlnb imports from its working folder, which another user may write: ``python -P -m MODULE``."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
FOLDERS = ("rlnb", "plugins", "extensions")
PASSED_OVER = {"tests", "testing", "templates", "node_modules"}
"""Folders of tests, which run in the folder of the plugin that they test, and of what is not rlnb's own code."""
OTHERS = {
    ("rlnb/launch/command.py", "'-m', WORKER"): "-P comes before it or before torchrun; or it is compared",
    ("rlnb/launch/command.py", "'-m', TORCHRUN"): "-P comes before it, but for scripts with an older Python",
    ("rlnb/launch/command.py", "'-m', NODE"): "it is compared",
    ("rlnb/machine/gpus.py", "'-c', EXECUTE"): "the Python may be too old for -P, and the code itself does it",
    ("rlnb/doctor/interpreter.py", "'-c', EXECUTE"): "the Python may be too old for -P, and the code itself does it",
    ("plugins/rlnb-ssh/src/rlnb_ssh/install.py", "-m venv"): "the folder is the user's home",
    ("plugins/rlnb-ssh/src/rlnb_ssh/install.py", "-m pip"): "the folder is the user's home",
}
"""Arguments without -P, each with its reason."""
ADVICE = re.compile(r"-m (pip|venv|pytest|compileall)\b|python -m rlnb\.pods RUN_DIR")
"""Commands that a user is told to execute."""
IN_TEXT = re.compile(r"(?<!\S)-m \w+")
PROGRAMS = "plugins/rlnb-ssh/src/rlnb_ssh/install.py"
"""File whose text is executed by a shell, although it looks like advice."""


@functools.cache
def every_fault() -> frozenset[tuple[str, str]]:
    """Return each file of rlnb and its plugins with the arguments in it that have no ``-P``."""
    found: set[tuple[str, str]] = set()
    for path in sorted(path for folder in FOLDERS for path in (REPO / folder).rglob("*.py")):
        name = path.relative_to(REPO)
        text = path.read_text(encoding="utf-8")
        if not PASSED_OVER & {*name.parts} and ("-m" in text or "-c" in text):
            found |= {(name.as_posix(), fault) for fault in faults(ast.parse(text), name.as_posix())}
    return frozenset(found)


def faults(tree: ast.AST, file: str = "") -> Iterator[str]:
    """Yield the arguments and the texts that start Python on a module or on code without ``-P``."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple):
            for index, element in enumerate(node.elts):
                before = node.elts[index - 1] if index else None
                if _value(element) in ("-m", "-c") and _value(before) not in ("-P", "sh", "bash"):
                    yield ", ".join(map(ast.unparse, node.elts[index : index + 2]))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            for match in IN_TEXT.finditer(node.value):
                is_safe = node.value[: match.start()].endswith("-P ")
                if not is_safe and (file == PROGRAMS or not ADVICE.search(node.value)):
                    yield match.group()


def _value(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def test_no_process_imports_from_its_working_folder() -> None:
    assert every_fault() <= {*OTHERS}, "Put '-P' before it."


@pytest.mark.parametrize(
    "code",
    [
        'argv = [sys.executable, "-m", "rlnb.node"]',
        'argv = (*python, "-c", code)',
        'argv = [*python, *("-u", "-m"), "rlnb"]',
        'line = f"exec {python} -m rlnb_dask.host"',
    ],
)
def test_the_law_finds_a_process_that_does(code: str) -> None:
    assert [*faults(ast.parse(code), "")]


@pytest.mark.parametrize(
    "code",
    [
        'argv = [sys.executable, "-P", "-m", "rlnb.node"]',
        'argv = ["bash", "-c", line]',
        'fix = "python -m pip install x"',
    ],
)
def test_the_law_passes_what_does_not(code: str) -> None:
    assert not [*faults(ast.parse(code), "")]


def test_every_exception_is_needed() -> None:
    assert {*OTHERS} <= every_fault()
