"""One line that names what the cell waits for."""

from __future__ import annotations

import contextlib
import html
import time
from collections.abc import Callable, Iterator
from typing import Any

from rlnb.display.front_end import in_notebook

_QUIET_S = 0.5
"""A shorter wait leaves no line behind."""


@contextlib.contextmanager
def status(text: str) -> Iterator[Callable[[Any], None]]:
    """Show what the cell waits for, and in the end how long that took.

    Yields:
        ``function(value)`` that shows something in the meantime, in a notebook.
    """
    start_s = time.monotonic()
    if in_notebook():
        from IPython.display import HTML, display

        output = display(HTML(f"<i>{html.escape(text)} ...</i>"), display_id=True)
        try:
            yield output.update
        finally:
            seconds = time.monotonic() - start_s
            done = f"<i>{html.escape(text)}: {seconds:.1f} s</i>" if seconds > _QUIET_S else ""
            output.update(HTML(done))
    else:
        from rich.console import Console

        console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
        if not console.is_terminal:  # a log: of a spinner nothing would be left
            console.print(f"{text} ...")
        with console.status(text):
            yield lambda value: None
