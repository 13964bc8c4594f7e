"""Rules for the source: short modules, clear names, no local paths, and Isaac Lab's version in one file."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
MODULES = sorted((REPO / "rlnb").rglob("*.py"))
SOURCES = [*MODULES, *sorted(REPO.glob("plugins/*/src/**/*.py")), *sorted(REPO.glob("extensions/*/src/**/*.py"))]

LINES = 600
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
KNOWS_ISAACLAB = "rlnb/version.py"
VERSION = re.compile(r"(?<![\d.])3\.0(?![\d])|isaaclab(\[\w+\])?\s*[=<>~!]=")
# Joined from parts, so that this file does not contain the paths itself.
SOMEBODYS_PATH = re.compile("|".join([r"(?<![\w.>}*])/" + name + "/" for name in ("work", "root", "tmp/" + "lab")]))
WORKER = sorted((REPO / "rlnb" / "worker").rglob("*.py"))
NOT_PRIVATE = {"_exit"}
"""Documented names of Python that begin with an underscore."""
LOCK_NAMES = re.compile(r"(\.lock|-lock\.(json|ya?ml)|\.lockb)$")


def tracked() -> list[Path]:
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git checkout")
    return [REPO / name for name in listed.stdout.split("\0") if name and (REPO / name).is_file()]


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_modules_are_short_and_have_no_vague_names() -> None:
    assert not [path for path in MODULES if path.stem in VAGUE]
    lines = {str(path.relative_to(REPO)): len(text_of(path).splitlines()) for path in MODULES}
    assert not {name: count for name, count in lines.items() if count > LINES}, "split them"


def test_no_tracked_file_contains_a_local_path() -> None:
    found = [
        f"{path.relative_to(REPO)}:{number}: {line.strip()[:120]}"
        for path in tracked()
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if SOMEBODYS_PATH.search(line)
    ]
    assert not found, "\n".join(found)


def test_no_lock_file_holds_addresses() -> None:
    locks = [path for path in tracked() if LOCK_NAMES.search(path.name) or path.name == "constraints.txt"]
    found = [str(path.relative_to(REPO)) for path in locks if "://" in text_of(path)]
    assert not found


def test_only_one_file_names_the_version_of_isaac_lab() -> None:
    found = []
    for path in SOURCES:
        tree = ast.parse(text_of(path))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        named = [each for each in strings if id(each) not in docs and VERSION.search(each.value)]
        found += [f"{path.relative_to(REPO)}:{each.lineno}: {each.value!r}" for each in named]
    assert {line.partition(":")[0] for line in found} == {KNOWS_ISAACLAB}, "\n".join(found)


def private_names(trees: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Return the private attributes that modules read, and the private names that they define."""
    reads, definitions = set[str](), set[str]()
    for node in itertools.chain.from_iterable(map(ast.walk, trees)):
        if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            (definitions if own else reads if isinstance(node.ctx, ast.Load) else set()).add(node.attr)
        elif isinstance(node, ast.FunctionDef):
            definitions.add(node.name)
    return reads, definitions


def test_the_worker_reads_private_attributes_of_other_packages_only_where_a_missing_one_is_named() -> None:
    reads, definitions = private_names(ast.parse(text_of(path)) for path in WORKER)
    assert reads - definitions - NOT_PRIVATE == set(), "use rlnb.worker.isaac.release.required"
    assert private_names([ast.parse("env._reset_idx()")])[0] == {"_reset_idx"}
