"""``%%task Name``: save a cell as a task module on disk. The cell's syntax is checked, but it is not executed."""

from __future__ import annotations

import html
import os
import re
import traceback
from pathlib import Path
from typing import Any

from rlnb.errors import RlnbError
from rlnb.settings import options
from rlnb.tasks.cell import fail, sha256, write_module

_SHOWN_DIGITS = 12


def register_magics(ipython: Any) -> None:
    """Register ``%%task``; called by ``%load_ext rlnb``."""

    def task(line: str, cell: str) -> None:
        """Save this cell as the task ``%%task Name``; it is not executed in this kernel."""
        from IPython.display import HTML, display

        name = _name(line)
        # Check the syntax here too, under a name that is not a file: for a file name, the traceback would quote the
        # line of the older file on disk. The empty first line stands for the %%task line and keeps line numbers right.
        try:
            compile(f"\n{cell}", f"<%%task {name}>", "exec", dont_inherit=True)
        except SyntaxError as exc:
            fail(options.folders, name, f"{exc.msg} (line {exc.lineno} of the cell)")
            _, *code, error = traceback.format_exception_only(exc)
            # Not a SyntaxError: IPython would show the whole cell as one long string above it.
            raise RlnbError(f"%%task {name}, line {exc.lineno}: {error}\n{''.join(code)}") from None
        notices: list[str] = []
        path = write_module(options.folders, name, cell, owner(ipython.user_ns), notices.append)
        text = f"saved as {path}, sha256 {sha256(path)[:_SHOWN_DIGITS]}{''.join(f'. {notice}' for notice in notices)}"
        display(HTML(f"<small><b>{html.escape(name)}</b> {html.escape(text)}</small>"))

    ipython.register_magic_function(task, magic_kind="cell", magic_name="task")


def owner(user_ns: dict[str, Any]) -> str:
    """Return the notebook that a kernel belongs to, or the kernel's folder if the front end names no notebook."""
    # VS Code comes first: with a remote server, its JPY_SESSION_NAME has a random part that is new in each session.
    vscode, papermill = user_ns.get("__vsc_ipynb_file__"), user_ns.get("PAPERMILL_INPUT_PATH")
    notebook = vscode or papermill or os.environ.get("JPY_SESSION_NAME") or os.environ.get("PAPERMILL_INPUT_PATH")
    return str(notebook) if notebook else f"notebook in {Path.cwd()}"


def _name(line: str) -> str:
    name = line.strip()
    example = "Write the task's name after it: %%task Lift-Cube-RGB"
    if not name:
        raise RlnbError(f"%%task has no name. {example}")
    if len(name.split()) > 1:
        raise RlnbError(f"%%task takes one name without spaces, not {name!r}. Did you mean {'-'.join(name.split())!r}?")
    if not re.search(r"[^\W_]", name):
        raise RlnbError(f"%%task {name!r} has no letter or digit. {example}")
    return name
