"""Which front end shows the output: a notebook that a person looks at, a program that executes one, or a terminal."""

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
    """The parts of a Jupyter message that rlnb reads; empty where the front end leaves them out."""

    kind: str = ""
    """Its ``msg_type``."""
    id: str = ""
    """Its ``msg_id``: one execution."""
    cell: str = ""
    """The ``cellId`` that JupyterLab, Notebook and VS Code give."""


def in_notebook() -> bool:
    """Return whether this process is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


def is_live() -> bool:
    """Return whether a person is looking: widgets then, pictures otherwise.

    JupyterLab, Notebook and VS Code say with every request which cell it comes from, and only a front end
    sends messages of widgets. papermill, nbconvert and other programs run code without a cell to show it
    in, also where they were themselves started from a notebook and inherited its environment.
    """
    if options.display != "auto":
        return options.display == "live"
    if not in_notebook():
        return False
    request = _request()
    return request.kind.startswith("comm_") or bool(request.cell)


def cell() -> tuple[str, str]:
    """Return the cell that is running and this very execution of it; empty where a front end names none."""
    request = _request() if in_notebook() else _Request()
    return request.cell, request.id


def _request() -> _Request:
    """Return the Jupyter message that is being answered; see "execute_request" in the messaging protocol."""
    try:
        parent = sys.modules["IPython"].get_ipython().kernel.get_parent("shell")
    except (AttributeError, LookupError):
        parent = {}
    header, metadata = parent.get("header") or {}, parent.get("metadata") or {}
    return _Request(kind=header.get("msg_type", ""), id=header.get("msg_id", ""), cell=metadata.get("cellId", ""))


def show_bundle(bundle: Mapping[str, Json]) -> None:
    """Display a Jupyter mime bundle in the notebook; on a terminal nothing is shown."""
    if in_notebook():
        from IPython.display import display

        display(dict(bundle), raw=True)
