"""Output in marimo, which has no IPython: whether a cell of it runs here, and places in that cell's output.

This module never imports ``marimo`` itself. If marimo is not loaded, no marimo notebook runs in this process.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

from rlnb.display.html import html_of

_PRIVATE = "0.25."
"""Beginning of the versions of marimo whose private runtime context is known to have the fields that are read here."""


def in_marimo() -> bool:
    """Return whether this thread executes a cell of a marimo notebook that has outputs, i.e. not as a script."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(getattr(marimo, "running_in_notebook", bool)())


def has_page() -> bool:
    """Return whether a page shows the output, and not ``marimo export``, which executes the notebook without one."""
    context = _context()
    return context is None or context.virtual_files_supported  # an export has no server that could send such files


def cell() -> tuple[str, str]:
    """Return the ids of the running cell and of its current execution; empty for an unknown version of marimo."""
    context = _context()
    execution = context.execution_context if context is not None else None
    if execution is None:
        return "", ""
    from marimo._messaging.context import RUN_ID_CTX

    return str(execution.cell_id), str(RUN_ID_CTX.get(None))


def _context() -> Any:
    """Return marimo's runtime context; None if this version of marimo is not known."""
    if not sys.modules["marimo"].__version__.startswith(_PRIVATE):
        return None
    from marimo._runtime.context import get_context

    return get_context()


def append(value: object, *, raw: bool = False) -> None:
    """Add a value, or a Jupyter mime bundle if ``raw`` is true, to the output of the running cell."""
    marimo = sys.modules["marimo"]
    marimo.output.append(marimo.Html(html_of(value, raw=raw)))


class MarimoPlace:
    """A place in the output of the running cell, which is replaced from any thread.

    marimo itself replaces outputs only while their cell runs. A widget has no such limit.

    Args:
        value: A widget, or an object as for :func:`rlnb.display.html.html_of`. The first update replaces a widget.
        raw: Whether the value is a Jupyter mime bundle.
    """

    def __init__(self, value: Any, *, raw: bool) -> None:
        output = sys.modules["marimo"].output
        if is_widget := hasattr(value, "_esm"):
            output.append(value)
        self._text = _widget()(
            html="" if is_widget else html_of(value, raw=raw), replaces=value.model_id if is_widget else ""
        )
        output.append(self._text)

    def update(self, value: object, *, raw: bool = False) -> None:
        """Replace the shown value."""
        self._text.html = html_of(value, raw=raw)


@functools.cache
def _widget() -> Any:
    """Return the widget class. It is made on first use, because importing anywidget is slow."""
    import anywidget
    import traitlets

    class Place(anywidget.AnyWidget):
        """An element of the page with HTML."""

        _esm = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
        html = traitlets.Unicode().tag(sync=True)
        replaces = traitlets.Unicode().tag(sync=True)

    return Place
