"""Tables, progress and status, in a notebook or on a terminal; every outside string is escaped."""

from __future__ import annotations

import sys
from typing import Any

from rlnb.settings import options


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
    return request["header"].get("msg_type", "").startswith("comm_") or bool(request["metadata"].get("cellId"))


def cell() -> tuple[str, str]:
    """Return the cell that is running and this very execution of it; empty where a front end names none."""
    request = _request() if in_notebook() else {"header": {}, "metadata": {}}
    return request["metadata"].get("cellId", ""), request["header"].get("msg_id", "")


def _request() -> dict[str, Any]:
    """Return the Jupyter message that is being answered; see "execute_request" in the messaging protocol."""
    try:
        parent = sys.modules["IPython"].get_ipython().kernel.get_parent("shell")
    except (AttributeError, LookupError):
        parent = {}
    return {"header": parent.get("header") or {}, "metadata": parent.get("metadata") or {}}


def show(value: Any) -> None:
    """Display a value in the notebook; on a terminal nothing is shown."""
    if in_notebook():
        from IPython.display import display

        display(value)


def show_bundle(bundle: dict[str, Any]) -> None:
    """Display a Jupyter mime bundle in the notebook; on a terminal nothing is shown."""
    if in_notebook():
        from IPython.display import display

        display(bundle, raw=True)
