"""A status line for the time that a cell waits."""

from __future__ import annotations

import contextlib
import html
import time
from collections.abc import Callable, Iterator
from typing import Any

from rlnb.display.front_end import in_notebook

_QUIET_S = 0.5
"""Seconds up to which a wait leaves no line in the notebook."""


@contextlib.contextmanager
def status(text: str) -> Iterator[Callable[[Any], None]]:
    """Show a text while the cell waits, and the duration at the end.

    Yields:
        ``function(value)`` that shows an interim value in place of the text. It has no effect outside a notebook.
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
        from rich.text import Text

        console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
        if not console.is_terminal:  # a log file, which cannot show the spinner
            console.print(f"{text} ...")
        with console.status(Text(text)):
            yield lambda value: None
