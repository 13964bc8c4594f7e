"""The front end: its detection, outputs that are replaced later, and the thread that hears pages."""

from __future__ import annotations

import asyncio
import base64
import functools
import html
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from rlnb.settings import options

if TYPE_CHECKING:
    from rlnb.spec import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class _Request:
    """The parts of a Jupyter message that rlnb reads; empty if the front end does not send them."""

    kind: str = ""
    """The ``msg_type``."""
    id: str = ""
    """The ``msg_id``, which identifies an execution."""
    cell: str = ""
    """The ``cellId``, which JupyterLab, Notebook and VS Code send."""
    page: str = ""
    """The session of the sender, which a page makes anew each time it is loaded."""
    colab_cell: str = ""
    """The cell's id that Colab sends instead (``google/colab/_history.py``)."""


def in_notebook() -> bool:
    """Return whether this process is a kernel of Jupyter, or this thread executes a cell of marimo."""
    return _kernel() is not None or in_marimo()


def is_live() -> bool:
    """Return whether an interactive front end shows the output. It gets widgets; all others get pictures.

    JupyterLab, Notebook and VS Code send the cell's id with every request, and only a front end sends widget
    messages. papermill, nbconvert and other programs send no cell id, even if they were started from a
    notebook and inherited its environment. Front ends that show no widget that a thread updates get pictures too:
    Spyder's console has no widgets, and Colab's pages drop such updates (googlecolab/colabtools#3373).
    """
    if options.display != "auto":
        return options.display == "live"
    if in_marimo():
        return marimo_has_page()
    request = _request()
    return request.kind.startswith("comm_") or bool(request.cell)


def has_ipywidgets() -> bool:
    """Return whether the front end shows the controls of ipywidgets. marimo shows only widgets of anywidget."""
    return is_live() and not in_marimo()


def cell() -> tuple[str, str]:
    """Return the ids of the running cell and of its current execution; empty if the front end sends none."""
    if in_marimo():
        return marimo_cell()
    request = _request()
    return request.cell or request.colab_cell, request.id


def page() -> str:
    """Return the id of the page that executes the running cell; empty outside of Jupyter."""
    return "" if in_marimo() else _request().page


def _kernel() -> Any:
    """Return this process's Jupyter kernel; None without one.

    Colab, Spyder, Databricks and others have shells of their own classes, but every shell in a kernel names its kernel.
    """
    ipython = sys.modules.get("IPython")
    return getattr(ipython.get_ipython(), "kernel", None) if ipython else None


def _request() -> _Request:
    """Return the Jupyter message that is being handled; see "execute_request" in the messaging protocol."""
    try:
        parent = _kernel().get_parent("shell")
    except (AttributeError, LookupError):
        parent = {}
    header, metadata = parent.get("header") or {}, parent.get("metadata") or {}
    return _Request(
        kind=header.get("msg_type", ""),
        id=header.get("msg_id", ""),
        page=header.get("session", ""),
        cell=metadata.get("cellId", ""),
        colab_cell=(metadata.get("colab") or {}).get("cell_id", ""),
    )


def show_bundle(bundle: Mapping[str, Json]) -> None:
    """Display a Jupyter mime bundle in the notebook. On a terminal, nothing is shown."""
    if in_marimo():
        marimo_append(bundle, raw=True)
    elif in_notebook():
        from IPython.display import display

        display(dict(bundle), raw=True)


# -- marimo ----------------------------------------------------------------------------------------------------------
# This module never imports ``marimo`` itself. If marimo is not loaded, no marimo notebook runs in this process.


_PRIVATE = "0.25."
"""Beginning of the versions of marimo whose private runtime context is known to have the fields that are read here."""


def in_marimo() -> bool:
    """Return whether this thread executes a cell of a marimo notebook that has outputs, i.e. not as a script."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(getattr(marimo, "running_in_notebook", bool)())


def marimo_has_page() -> bool:
    """Return whether a page shows the output, and not ``marimo export``, which executes the notebook without one."""
    context = _context()
    return context is None or context.virtual_files_supported  # an export has no server that could send such files


def marimo_cell() -> tuple[str, str]:
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


def marimo_append(value: object, *, raw: bool = False) -> None:
    """Add a value, or a Jupyter mime bundle if ``raw`` is true, to the output of the running cell."""
    marimo = sys.modules["marimo"]
    marimo.output.append(marimo.Html(html_of(value, raw=raw)))


class MarimoPlace:
    """A place in the output of the running cell, which is replaced from any thread.

    marimo itself replaces outputs only while their cell runs. A widget has no such limit.

    Args:
        value: A widget, or an object as for :func:`rlnb.display.front_end.html_of`. The first update replaces a widget.
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

        _esm = Path(__file__).with_name("marimo_page.js").read_text(encoding="utf-8")
        html = traitlets.Unicode().tag(sync=True)
        replaces = traitlets.Unicode().tag(sync=True)

    return Place


# -- HTML of an object -----------------------------------------------------------------------------------------------


def html_of(value: object, *, raw: bool = False) -> str:
    """Return an object as HTML: its own HTML, or its picture, or else its text, escaped.

    Args:
        value: An object with ``_repr_html_`` or ``_repr_png_``; or a Jupyter mime bundle, whose picture is base64.
        raw: Whether the value is a mime bundle.
    """
    bundle = _bundle_of(value) if not raw or not isinstance(value, Mapping) else value
    if (page := bundle.get("text/html")) is not None:
        return str(page)
    text = html.escape(str(bundle.get("text/plain", "")))
    if picture := bundle.get("image/png"):
        return f"<img alt='{text}' src='data:image/png;base64,{picture}'>"
    return text


def _bundle_of(value: object) -> Mapping[str, str]:
    if to_html := getattr(value, "_repr_html_", None):
        return {"text/html": to_html()}
    if to_png := getattr(value, "_repr_png_", None):
        return {"image/png": base64.b64encode(to_png()).decode(), "text/plain": type(value).__name__}
    return {"text/plain": str(value)}


# -- outputs that are replaced later ---------------------------------------------------------------------------------


class Place(Protocol):
    """A place in a cell's output."""

    def update(self, value: object, *, raw: bool = False) -> None:
        """Replace the value. Any thread may do so, also after the cell has ended.

        Args:
            value: A picture, an object with ``_repr_html_``, or a Jupyter mime bundle.
            raw: Whether the value is a mime bundle.
        """


def show_place(value: object, *, raw: bool = False) -> Place:
    """Show a value in the output of the running cell and return its place.

    Args:
        value: A widget, a picture, an object with ``_repr_html_``, or a Jupyter mime bundle. The bundle needs a
            ``text/plain`` that a person can read, because some consoles show nothing else of HTML.
        raw: Whether the value is a mime bundle.
    """
    if in_marimo():
        return MarimoPlace(value, raw=raw)
    from IPython.display import display

    return cast(Place, display(value, raw=raw, display_id=True))


# -- the thread that hears pages -------------------------------------------------------------------------------------


BUSY_S = 2.0
"""Seconds after which a running cell, or a thread that has not answered, counts as busy."""


class MainThread:
    """Whether the thread in which this object is made is busy with a cell, so that it does not hear pages.

    A cell that awaits something lets the thread's event loop run, but messages of pages wait for its end too.
    """

    def __init__(self) -> None:
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        self._asked_s, self._answered = time.monotonic(), True
        self._cells = _cells()

    def is_busy(self) -> bool:
        """Return whether a cell has run, or the thread has not answered, for some time; ask for the next answer."""
        if self._loop is None or self._loop.is_closed():
            return True
        if self._answered:
            self._asked_s, self._answered = time.monotonic(), False
            self._loop.call_soon_threadsafe(self._answer)
        return time.monotonic() - min(self._asked_s, self._cells.since_s) > BUSY_S

    def _answer(self) -> None:
        self._answered = True


class _Cells:
    """When IPython began to run the cell that runs now."""

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s

    def begin(self) -> None:
        self.since_s = time.monotonic()

    def end(self) -> None:
        self.since_s = float("inf")


@functools.cache
def _cells() -> _Cells:
    """Return the state of this process's cells. The first call is made in a cell, if there are any."""
    ipython = sys.modules.get("IPython")  # marimo has none
    shell = ipython.get_ipython() if ipython is not None else None
    cells = _Cells(float("inf") if shell is None else time.monotonic())
    if shell is not None:
        shell.events.register("pre_execute", cells.begin)
        shell.events.register("post_execute", cells.end)
    return cells
