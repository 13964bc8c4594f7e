"""Plants faults into two checkouts, and counts those that the tests of the second one catch among those of the first.

    python benchmarks/mutants.py BEFORE AFTER [--count 40] [--seed HASH] [--drawn 0]

Each checkout has an environment of its own in ``.venv``. A fault is a changed expression or a deleted statement of a
function that both checkouts have, with the same text. The tests of the function's folder look for it; with ``--whole``,
all quick tests look for a fault that those of the folder do not catch in AFTER. The seed is the commit of BEFORE.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import functools
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import results

QUICK = "not isaaclab and not slow and not gpu"
LIMIT_S = 300.0
"""Seconds for the tests of one fault. Code that hangs is caught."""
OPPOSITES = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
}


@dataclass(frozen=True)
class Function:
    """A function of a checkout."""

    path: Path
    """File, relative to the checkout."""
    name: str
    first: int
    last: int
    text: str
    """Its source, as :func:`ast.unparse` writes it."""
    column: int


def functions(checkout: Path) -> Iterator[Function]:
    """Yield the functions of rlnb, without those inside other functions."""
    for path in sorted((checkout / "rlnb").rglob("*.py")):
        if "templates" in path.parts:
            continue
        yield from _functions(ast.parse(path.read_text()), path.relative_to(checkout), "")


def _functions(tree: ast.AST, path: Path, name: str) -> Iterator[Function]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield Function(path, f"{name}{node.name}", first, node.end_lineno or 0, ast.unparse(node), node.col_offset)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, path, f"{name}{node.name}.")


def planted(text: str, draw: random.Random) -> str | None:
    """Return the text of a function with one fault; None if it has no place for one."""
    tree = ast.parse(text)
    body = tree.body[0]
    assert isinstance(body, ast.FunctionDef)
    if ast.get_docstring(body) is not None:
        body.body = body.body[1:] or [ast.Pass()]
    body.returns, body.decorator_list, decorators = None, [], body.decorator_list
    places = [node for statement in body.body for node in ast.walk(statement) if _is_place(node)]
    if not places:
        return None
    before = ast.unparse(tree)
    _plant(draw.choice(places))
    if ast.unparse(ast.fix_missing_locations(tree)) == before:
        return None
    body.decorator_list = decorators
    return ast.unparse(tree)


def _is_place(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp):
        return type(node.ops[0] if isinstance(node, ast.Compare) else node.op) in OPPOSITES
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and node.value is not None
    return isinstance(node, ast.If | ast.Return | ast.Expr | ast.While) and not (
        isinstance(node, ast.Return) and node.value is None
    )


def _plant(node: ast.AST) -> None:
    if isinstance(node, ast.Compare):
        node.ops[0] = OPPOSITES[type(node.ops[0])]()
    elif isinstance(node, ast.BoolOp | ast.BinOp):
        node.op = OPPOSITES[type(node.op)]()
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1  # type: ignore[operator]
    elif isinstance(node, ast.If | ast.While):
        node.test = ast.UnaryOp(ast.Not(), copy.deepcopy(node.test))
    elif isinstance(node, ast.Return | ast.Expr):
        node.value = ast.Constant(None)


@contextlib.contextmanager
def with_fault(checkout: Path, function: Function, text: str) -> Iterator[None]:
    """Replace the source of a function for a while."""
    path = checkout / function.path
    before = path.read_text()
    lines = before.splitlines(keepends=True)
    new = "".join(f"{' ' * function.column}{line}\n" if line else "\n" for line in text.splitlines())
    path.write_text("".join([*lines[: function.first - 1], new, *lines[function.last :]]))
    try:
        yield
    finally:
        path.write_text(before)


def is_caught(checkout: Path, folders: Sequence[str]) -> bool:
    """Return whether quick tests fail, do not end, or are not there."""
    argv = [str(checkout / ".venv/bin/python"), "-m", "pytest", "-q", "-x", "-n", "2", "-m", QUICK, *folders]
    process = subprocess.Popen(
        argv, cwd=checkout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait(LIMIT_S) != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@functools.cache
def is_sound(checkout: Path, folders: tuple[str, ...]) -> bool:
    """Return whether there are tests, and all of them pass without a fault."""
    return not is_caught(checkout, folders)


def tests_of(checkout: Path, function: Function) -> list[str]:
    """Return the folder of the tests of a function, or the tests of the modules of ``rlnb`` itself."""
    folder = Path("tests", *function.path.parts[1:-1])
    if folder == Path("tests"):
        return sorted(str(path.relative_to(checkout)) for path in checkout.glob("tests/test_*.py"))
    return [str(folder)] if (checkout / folder).is_dir() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", default="")
    parser.add_argument("--drawn", type=int, default=0, help="faults of an earlier call, left out now")
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    head = subprocess.run(
        ["git", "-C", options.before, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    seed = options.seed or head.stdout.strip()
    draw = random.Random(seed)
    there = {(function.name, function.text): function for function in functions(options.after)}
    both = [(function, there.get((function.name, function.text))) for function in functions(options.before)]
    kept, caught, drawn = 0, 0, 0
    while kept < options.count:
        function, other = draw.choice(both)
        text = planted(function.text, draw)
        if text is None or other is None:
            continue
        ours = tuple(tests_of(options.before, function))
        theirs = tuple(sorted({*tests_of(options.after, other), *tests_of(options.after, function)}))
        if not (is_sound(options.before, ours) and is_sound(options.after, theirs)):
            print(f"{function.path}: its tests fail, or there are none, without a fault", flush=True)
            continue
        drawn += 1
        if drawn <= options.drawn:
            continue
        with with_fault(options.before, function, text):
            if not is_caught(options.before, ours):
                continue
        kept += 1
        with with_fault(options.after, other, text):
            found = is_caught(options.after, theirs)
            if not found and options.whole:
                found = is_caught(options.after, ["tests", "plugins"])
        caught += found
        answer = "caught" if found else "NOT CAUGHT"
        print(f"{kept}: {function.path}:{function.name}: {answer} ({drawn} drawn)", flush=True)
        if not found:
            print(text, flush=True)
    results.record(
        f"faults that the tests of {seed[:8]} catch, planted into both checkouts",
        f"{caught} of {kept} are caught ({drawn} drawn)",
        "all",
        caught == kept,
    )


if __name__ == "__main__":
    sys.exit(main())
