"""Compares the string literals of two commits: a commit that moves modules changes no string but their names.

    python benchmarks/moved.py BEFORE AFTER          # what differs
    python benchmarks/moved.py FIRST^ LAST --each    # for each commit between them

Docstrings and imports are left out. Two strings are equal if they differ only in the names or files of modules.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import re
import subprocess
from collections import Counter
from collections.abc import Iterator

MODULE = re.compile(r"\brlnb(?:_\w+)?(?:[./]\w+)+")
TREES = ("rlnb", "plugins", "extensions")


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def strings_in(text: str) -> Iterator[str]:
    """Yield the string literals of a module, but for docstrings; parts of one literal as one."""
    tree = ast.parse(text)
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(part) for part in node.values}
            left_out |= {id(part.format_spec) for part in node.values if isinstance(part, ast.FormattedValue)}
            if id(node) not in left_out:
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


def strings_of(commit: str) -> Counter[str]:
    """Return the string literals of a commit, with a placeholder for each name of a module."""
    found: Counter[str] = Counter()
    for name in git("ls-tree", "-r", "--name-only", commit, *TREES).splitlines():
        if name.endswith(".py") and "/tests/" not in name and "/templates/" not in name:
            found.update(MODULE.sub("MODULE", one) for one in strings_in(git("show", f"{commit}:{name}")))
    return found


def differences(before: str, after: str) -> list[str]:
    """Return the strings that only one of two commits has, and those that it has more often."""
    old, new = strings_of(before), strings_of(after)
    return [*(f"- {text!r}" for text in (old - new).elements()), *(f"+ {text!r}" for text in (new - old).elements())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--each", action="store_true")
    arguments = parser.parse_args()
    commits = [arguments.before, arguments.after]
    if arguments.each:
        commits[1:] = git("rev-list", "--reverse", f"{arguments.before}..{arguments.after}").split()
    for before, after in itertools.pairwise(commits):
        print(git("log", "-1", "--format=%h %s", after).strip())
        print("".join(f"  {line}\n" for line in differences(before, after)), end="")


if __name__ == "__main__":
    main()
