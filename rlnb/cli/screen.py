"""Print text, tables, JSON and errors on the terminal, safe from control sequences in names and logs.

rich is imported inside functions, so that ``rlnb --help`` is quick.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import typer
from typer.core import TyperGroup

from rlnb.display.table import cell
from rlnb.errors import RlnbError
from rlnb.spec import Json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

FAILED = 2
"""Exit status of every ``RlnbError``; 1 is the exit status of a check that fails."""
LONG = 200
"""Rows from which on a table is long."""
PIPE_COLUMNS = 160
"""Width of tables, in characters, in a pipe or a file."""


_output: TextIO | None = None
"""The stdout of the process while a command runs, when ``sys.stdout`` is stderr; otherwise None."""


class Commands(TyperGroup):
    """A command group that prints an ``RlnbError`` as its message, without a traceback.

    Only this module writes to stdout while a command runs. What a plugin prints goes to stderr, so that it cannot
    damage the JSON of a command.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        _keep_output(self)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn an ``RlnbError`` into its message and exit status 2, and a warning into a line."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say_warning
                return super().invoke(ctx)
        except RlnbError as exc:
            if ctx.params.get("debug"):
                raise
            console(stderr=True).print(f"[red]{safe(exc)}[/]", highlight=False, soft_wrap=True)
            raise typer.Exit(FAILED) from exc


def _say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning without the place in rlnb's code, which tells a user nothing."""
    say(f"warning: {message}", stderr=True)


def _keep_output(command: Any) -> None:
    """Let a command of click, or all commands of a group, run with stderr as ``sys.stdout``."""
    for one in getattr(command, "commands", {}).values():
        _keep_output(one)
    if (function := command.callback) is None:
        return

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        global _output
        _output, before = _output or sys.stdout, _output
        try:
            with contextlib.redirect_stdout(sys.stderr):
                return function(*args, **kwargs)
        finally:
            _output = before

    command.callback = run


def console(*, stderr: bool = False) -> Console:
    """Return the console. Output to a pipe or a file is wide enough for tables."""
    from rich.console import Console

    file = sys.stderr if stderr else _output or sys.stdout
    terminal = file.isatty() or "COLUMNS" in os.environ
    return Console(file=file, width=None if terminal else PIPE_COLUMNS, highlight=False)


def safe(text: object) -> str:
    """Return text from elsewhere, escaped so that it contains no rich markup and no control sequences."""
    from rich.markup import escape

    return escape(_printable(text))


def _printable(text: object) -> str:
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in str(text))


def say(text: str, *, stderr: bool = False) -> None:
    """Print text without truncating or wrapping it."""
    console(stderr=stderr).print(safe(text), soft_wrap=True)


def print_log(text: str) -> None:
    """Print lines of a log. On a terminal they keep their colours; all other control sequences are removed."""
    from rich.text import Text

    console().print(Text.from_ansi(text), soft_wrap=True)


def print_json(data: Any) -> None:
    """Print strict JSON: NaN and infinity become null."""
    console().print_json(data=_finite(data))


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _finite(item) for key, item in data.items()}
    if isinstance(data, list):
        return [_finite(item) for item in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str = "", markup: bool = False) -> None:
    """Print a table. The first column is never truncated, because the user types it into the next command."""
    screen = console()
    if len(rows) > LONG and not markup:
        texts = [[_printable(cell(item)) for item in row] for row in rows]
        if (widths := _widths(header, texts, screen.width)) is not None:
            return _print_long(screen, header, texts, widths, title)
    text: Callable[[Any], str] = str if markup else lambda item: safe(cell(item))
    grid = _grid(header, title)
    for row in rows:
        grid.add_row(*map(text, row))
    screen.print(grid)


def _grid(header: Sequence[str], title: str, widths: Sequence[int | None] = ()) -> Table:
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE, title=safe(title) or None, title_justify="left", show_header=any(header))
    for number, (name, width) in enumerate(itertools.zip_longest(header, widths)):
        grid.add_column(name, no_wrap=number == 0, overflow="fold", min_width=width)
    return grid


def _widths(header: Sequence[str], rows: Sequence[Sequence[str]], most: int) -> list[int] | None:
    """Return the width of each column; None if the rows do not fit into lines of ``most`` characters."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    fits = 4 + sum(widths) + 3 * (len(widths) - 1) <= most
    return widths if fits and not any("\n" in text for row in rows for text in row) else None


def _print_long(
    screen: Console, header: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], title: str
) -> None:
    """Print a table as rich does. Of thousands of rows, each of which fits into a line, rich takes seconds."""
    from rich.cells import set_cell_size

    grid = _grid(header, title, widths)
    grid.add_row(*(safe(text) for text in rows[0]))
    with screen.capture() as captured:
        screen.print(grid)
    *head, _, foot = captured.get().splitlines(keepends=True)
    lines = ("   ".join(map(set_cell_size, row, widths)) for row in rows)
    screen.file.write("".join([*head, *(f"  {line}  \n" for line in lines), foot]))


def assigned(pairs: Mapping[str, Json]) -> str:
    """Return values by dotted path as a user types them: ``sim.dt=0.005, a=null``."""
    return ", ".join(f"{path}={json.dumps(item)}" for path, item in pairs.items())


def yes(answer: bool) -> str:
    """Return ``"yes"``, or an empty cell for no, so that the yes stands out."""
    return "yes" if answer else ""
