"""A status line for the time that a cell waits."""

from __future__ import annotations

import contextlib
import functools
import html
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rlnb.display import front_end
from rlnb.display.front_end import in_notebook

if TYPE_CHECKING:
    from rlnb.spec import Json


logger = logging.getLogger(__name__)


class _Shown(threading.local):
    """The status lines that this thread shows now."""

    def __init__(self) -> None:
        self.lines: list[Callable[[str, float], None]] = []
        """Functions that add a reason to a line, the innermost last."""


_shown = _Shown()
_QUIET_S = 0.5
"""Seconds up to which a wait leaves no line in the notebook."""


@contextlib.contextmanager
def status(text: str) -> Iterator[Callable[[Any], None]]:
    """Show a text while the cell waits, and the duration at the end.

    Yields:
        ``function(value)`` that shows an interim value in place of the text. It has no effect outside a notebook.
    """
    with _in_notebook(text) if in_notebook() else _in_console(text) as (show, explain):
        _shown.lines.append(explain)
        try:
            yield show
        finally:
            _shown.lines.remove(explain)


@contextlib.contextmanager
def _in_notebook(text: str) -> Iterator[tuple[Callable[[Any], None], Callable[[str, float], None]]]:
    start_s = time.monotonic()
    output = front_end.show_place(_line(f"{text} ..."), raw=True)
    shown: list[Any] = []

    def show(value: Any) -> None:
        shown.append(value)
        output.update(value)

    def explain(reason: str, waited_s: float) -> None:
        if not shown:  # a picture says more
            output.update(_line(f"{text}: {reason}, {waited_s:.0f} s"), raw=True)

    try:
        yield show, explain
    finally:
        seconds = time.monotonic() - start_s
        output.update(_line(f"{text}: {seconds:.1f} s" if seconds > _QUIET_S else ""), raw=True)


def _line(text: str) -> dict[str, Json]:
    """Return a line of text as a Jupyter mime bundle."""
    return {"text/html": f"<i>{html.escape(text)}</i>" if text else "", "text/plain": text}


@functools.lru_cache(maxsize=256)
def note_once(text: str) -> None:
    """Show a note only the first time."""
    note(text)


def note(text: str) -> None:
    """Show what is good to know in the cell, or in the log where there is no notebook."""
    if in_notebook():
        front_end.show_place(_line(text), raw=True)
    else:
        logger.warning("%s", text)


@contextlib.contextmanager
def _in_console(text: str) -> Iterator[tuple[Callable[[Any], None], Callable[[str, float], None]]]:
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    if not console.is_terminal:  # a log file, which cannot show the spinner
        console.print(f"{text} ...")
    said: list[str] = []
    with console.status(Text(text)) as spinner:

        def explain(reason: str, waited_s: float) -> None:
            if console.is_terminal:
                spinner.update(Text(f"{text}: {reason}, {waited_s:.0f} s"))
            elif reason not in said:
                said.append(reason)
                console.print(f"{text}: {reason}, for {waited_s:.0f} s")

        yield lambda value: None, explain


def say(reason: str, waited_s: float) -> None:
    """Add to the innermost status line of this thread why it takes so long.

    Args:
        reason: The reason, in words.
        waited_s: Seconds since the wait for it began.
    """
    if _shown.lines:
        _shown.lines[-1](reason, waited_s)
