"""The plugin proves that the contract of a library is small; the README states the number of lines."""

import ast
import re
import tokenize
from pathlib import Path

PLUGIN = Path(__file__).parents[1]
BEYOND = {"stock", "spaces", "fitted", "pictures"}
"""Modules that a library need not have: checkpoints of stock, and pictures and other spaces than vectors."""
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(path: Path) -> int:
    """Return the number of lines that are neither blank nor comments nor docstrings."""
    with path.open(encoding="utf-8") as text:
        tokens = [token for token in tokenize.generate_tokens(text.readline) if token.type not in NO_CODE]
    code = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            code -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(code)


def test_the_number_of_lines_is_the_one_in_the_readme() -> None:
    match = re.search(r"in (\d+) lines", (PLUGIN / "README.md").read_text(encoding="utf-8"))
    assert match, "the README has no number of lines"
    paths = [path for path in (PLUGIN / "src").rglob("*.py") if path.stem not in BEYOND]
    counted = sum(map(code_lines, paths))
    assert counted == int(match[1]) < 200
