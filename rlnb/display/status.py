"""A line that says what is being waited for."""

from __future__ import annotations

import contextlib
import html
import time
from collections.abc import Callable, Iterator
from typing import Any

from rlnb.display.front_end import in_notebook

_QUIET_S = 0.5
"""What takes less than this is not worth a word."""


@contextlib.contextmanager
def status(text: str) -> Iterator[Callable[[Any], None]]:
    """Say what is being waited for, and in the end how long it took.

    Yields:
        ``function(value)`` that shows something in the meantime, in a notebook.
    """
    begun = time.monotonic()
    if in_notebook():
        from IPython.display import HTML, display

        shown = display(HTML(f"<i>{html.escape(text)} ...</i>"), display_id=True)
        try:
            yield shown.update
        finally:
            seconds = time.monotonic() - begun
            done = f"<i>{html.escape(text)}: {seconds:.1f} s</i>" if seconds > _QUIET_S else ""
            shown.update(HTML(done))
    else:
        from rich.console import Console

        console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
        if not console.is_terminal:  # a log: of a spinner nothing would be left
            console.print(f"{text} ...")
        with console.status(text):
            yield lambda value: None
