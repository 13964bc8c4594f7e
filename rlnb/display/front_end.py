"""Detection of the front end: an interactive notebook, a program that executes a notebook, or a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


def in_notebook() -> bool:
    """Return whether this process is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


def is_live() -> bool:
    """Return whether an interactive front end shows the output. It gets widgets; all others get pictures.

    JupyterLab, Notebook and VS Code send the cell's id with every request, and only a front end sends widget
    messages. papermill, nbconvert and other programs send no cell id, even if they were started from a
    notebook and inherited its environment.
    """
    if options.display != "auto":
        return options.display == "live"
    if not in_notebook():
        return False
    request = _request()
    return request.kind.startswith("comm_") or bool(request.cell)


def cell() -> tuple[str, str]:
    """Return the ids of the running cell and of its current execution; empty if the front end sends none."""
    request = _request() if in_notebook() else _Request()
    return request.cell, request.id


def _request() -> _Request:
    """Return the Jupyter message that is being handled; see "execute_request" in the messaging protocol."""
    try:
        parent = sys.modules["IPython"].get_ipython().kernel.get_parent("shell")
    except (AttributeError, LookupError):
        parent = {}
    header, metadata = parent.get("header") or {}, parent.get("metadata") or {}
    return _Request(kind=header.get("msg_type", ""), id=header.get("msg_id", ""), cell=metadata.get("cellId", ""))


def show_bundle(bundle: Mapping[str, Json]) -> None:
    """Display a Jupyter mime bundle in the notebook. On a terminal, nothing is shown."""
    if in_notebook():
        from IPython.display import display

        display(dict(bundle), raw=True)
