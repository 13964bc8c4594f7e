"""``rlnb.define``: save Python source as a task, as ``%%task`` does, for notebooks and scripts without magics."""

from __future__ import annotations

import html
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Mapping
from pathlib import Path

from rlnb.display import front_end
from rlnb.errors import RlnbError, unknown
from rlnb.settings import options
from rlnb.spec import Task
from rlnb.storage.files import source_hash
from rlnb.tasks.source import fail_cell, run_here, write_module
from rlnb.tasks.task import task

_SHOWN_DIGITS = 12
# Not modules: nothing here imports them, and they import Isaac Lab. docs/scratch.md prints them.
_TEMPLATES = Path(__file__).parent / "templates"
_SUFFIX = ".py.txt"


def define(name: str, source: str | Path | None = None, *, template: str | None = None) -> Task:
    """Save Python source as a task, as the magic ``%%task`` does with its cell, and return the task.

    Use it where there are no magics: in marimo, or in a script. The source is not executed here: another process
    imports it. It needs its own imports, and sees no variable of this notebook.

    Args:
        name: Name of the task, without spaces, e.g. ``"Lift-Cube-RGB"``.
        source: Python source with the task's env config, whose common indentation is removed; or the path of a file
            with it.
        template: Name of a task that runs as it is, in place of a source: ``"manager-based"``, ``"direct"`` or
            ``"direct-camera"``. The magic writes it into the cell: ``%%task Lift-Cube --template direct``.

    Raises:
        NotFoundError: There is no such template.
        RlnbError: The name is not valid, the file cannot be read, the source has a syntax error, or a task of another
            name has the module's file; or neither or both of a source and a template are given.
    """
    if (source is None) == (template is None):
        raise RlnbError("rlnb.define takes a source or template=. Use rlnb.define(name, source), or template='direct'.")
    if template is not None:
        source = template_of(template)
    if not isinstance(source, str | Path):
        raise RlnbError(f"source={source!r} is neither text nor a path. Use the text of a module, or Path('puck.py').")
    if isinstance(source, str) and re.fullmatch(r"\S+\.py", source):
        raise RlnbError(f"source={source!r} is the name of a file. Use Path({source!r}) to read it.")
    try:
        text = source.read_text(encoding="utf-8") if isinstance(source, Path) else textwrap.dedent(source)
    except (OSError, UnicodeDecodeError) as exc:
        raise RlnbError(f"{source} cannot be read: {exc}. Use the path of a file with Python source.") from None
    return save(name, text, of=_here(), where="source", call="rlnb.define")


def save(name: str, body: str, *, of: str, where: str, call: str) -> Task:
    """Save the source of a task, show its path and hash, and return the task.

    Args:
        name: Name of the task.
        body: Python source. It is compiled, but not executed.
        of: Notebook or script that the source belongs to.
        where: Word for the text whose lines an error counts, e.g. ``"cell"``.
        call: Call or magic that an error names, e.g. ``"%%task"``.

    Raises:
        RlnbError: The name is not valid, the source has a syntax error, or a task of another name has the file.
    """
    check_name(name, call)
    name = name.strip()
    offset = 1 if call.startswith("%%") else 0
    # Check the syntax here too, under a name that is not a file: for a file name, the traceback would quote the line of
    # the older file on disk. An empty first line stands for the line of the magic and keeps line numbers right.
    try:
        compile("\n" * offset + body, f"<{call} {name}>", "exec", dont_inherit=True)
    except SyntaxError as exc:
        fail_cell(options.folders, name, f"{exc.msg} (line {exc.lineno} of the {where})")
        _, *code, error = traceback.format_exception_only(exc)
        # Not a SyntaxError: IPython would show the whole cell as one long string above it.
        raise RlnbError(f"{call} {name}, line {exc.lineno}: {error}\n{''.join(code)}") from None
    notices: list[str] = []
    path = write_module(options.folders, name, body, of, notices.append)
    digest = source_hash(run_here()[path])  # not that of the file, which another notebook may have written since
    text = f"saved as {path}, sha256 {digest[:_SHOWN_DIGITS]}{''.join(f'. {notice}' for notice in notices)}"
    page = f"<small><b>{html.escape(name)}</b> {html.escape(text)}</small>"
    front_end.show_bundle({"text/html": page, "text/plain": f"{name} {text}"})
    return task(name)


def template_of(name: str) -> str:
    """Return the source of a task that runs as it is.

    Raises:
        NotFoundError: There is no such template. The message lists them.
    """
    names = sorted(path.name.removesuffix(_SUFFIX) for path in _TEMPLATES.glob(f"*{_SUFFIX}"))
    if name not in names:
        raise unknown("template of a task", str(name), names, has="Templates")
    return (_TEMPLATES / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def owner(user_ns: Mapping[str, object]) -> str:
    """Return the notebook that a kernel belongs to, or the kernel's folder if the front end names no notebook."""
    # VS Code comes first: with a remote server, its JPY_SESSION_NAME has a random part that is new in each session.
    vscode, papermill = user_ns.get("__vsc_ipynb_file__"), user_ns.get("PAPERMILL_INPUT_PATH")
    notebook = vscode or papermill or os.environ.get("JPY_SESSION_NAME") or os.environ.get("PAPERMILL_INPUT_PATH")
    return str(notebook) if notebook else f"notebook in {Path.cwd()}"


def _here() -> str:
    """Return the notebook or the script that runs now."""
    ipython = sys.modules.get("IPython")
    if (shell := ipython.get_ipython() if ipython else None) is not None:
        return owner(shell.user_ns)
    # marimo puts the file of its notebook there too.
    script = getattr(sys.modules["__main__"], "__file__", None)
    return str(script) if script else owner({})


def check_name(name: str, call: str) -> None:
    """Refuse a name that is not one word with a letter or a digit."""
    example = "Write the task's name after it: %%task Lift-Cube-RGB"
    if not call.startswith("%%"):
        example = 'Use rlnb.define("Lift-Cube-RGB", source).'
    if not isinstance(name, str) or not name.strip():
        raise RlnbError(f"{call} has no name. {example}")
    if len(name.split()) > 1:
        raise RlnbError(f"{call} takes one name without spaces, not {name!r}. Did you mean {'-'.join(name.split())!r}?")
    if not re.search(r"[^\W_]", name):
        raise RlnbError(f"{call} {name!r} has no letter or digit. {example}")
