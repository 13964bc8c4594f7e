"""Detection of the front end: an interactive notebook, a program that executes a notebook, or a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlnb.display import marimo_page
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
    return _kernel() is not None or marimo_page.in_marimo()


def is_live() -> bool:
    """Return whether an interactive front end shows the output. It gets widgets; all others get pictures.

    JupyterLab, Notebook and VS Code send the cell's id with every request, and only a front end sends widget
    messages. papermill, nbconvert and other programs send no cell id, even if they were started from a
    notebook and inherited its environment. Front ends that show no widget that a thread updates get pictures too:
    Spyder's console has no widgets, and Colab's pages drop such updates (googlecolab/colabtools#3373).
    """
    if options.display != "auto":
        return options.display == "live"
    if marimo_page.in_marimo():
        return marimo_page.has_page()
    request = _request()
    return request.kind.startswith("comm_") or bool(request.cell)


def has_ipywidgets() -> bool:
    """Return whether the front end shows the controls of ipywidgets. marimo shows only widgets of anywidget."""
    return is_live() and not marimo_page.in_marimo()


def cell() -> tuple[str, str]:
    """Return the ids of the running cell and of its current execution; empty if the front end sends none."""
    if marimo_page.in_marimo():
        return marimo_page.cell()
    request = _request()
    return request.cell or request.colab_cell, request.id


def page() -> str:
    """Return the id of the page that executes the running cell; empty outside of Jupyter."""
    return "" if marimo_page.in_marimo() else _request().page


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
    if marimo_page.in_marimo():
        marimo_page.append(bundle, raw=True)
    elif in_notebook():
        from IPython.display import display

        display(dict(bundle), raw=True)
