"""The magics ``%rlnb``, common commands for runs, and ``%%task``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

from rlnb.curves.live import watch
from rlnb.curves.tensorboard import tensorboard
from rlnb.errors import RlnbError, unknown
from rlnb.interactive.simulator import simulators
from rlnb.notebook import define
from rlnb.reports.report import report
from rlnb.run import selection
from rlnb.run.listing import Runs
from rlnb.run.run import Run

VERBS: dict[str, Callable[[list[Run]], Any]] = {
    "show": lambda runs: runs[0] if len(runs) == 1 else Runs(runs),
    "watch": lambda runs: watch(runs),
    "logs": lambda runs: print("\n".join(run.logs() for run in runs)),
    "cancel": lambda runs: Runs([run.cancel() for run in runs]),
    "report": lambda runs: report(runs),
    "tensorboard": lambda runs: tensorboard(runs),
}


def register_magics(ipython: Any) -> None:
    """Register ``%rlnb`` and ``%%task``; called by ``%load_ext rlnb``."""

    def task(line: str, cell: str = "") -> None:
        """Save this cell as the task ``%%task Name``; it is not executed in this kernel.

        ``%%task Name --template direct`` in an empty cell replaces the cell with a task that runs as it is.
        """
        name, option, template = line.partition("--template")
        define.check_name(name, "%%task")
        if not option and not cell.strip():
            raise RlnbError("The cell has no source. %%task Name --template direct writes a task that runs into it.")
        if not option:
            define.save(line.strip(), cell, of=define.owner(ipython.user_ns), where="cell", call="%%task")
        else:
            ipython.set_next_input(_from_template(name, template := template.strip(" ="), cell), replace=True)
            print(f"The cell is now a task from the template {template!r}. Edit it, and run it to save {name.strip()}.")

    ipython.register_magic_function(line, magic_kind="line", magic_name="rlnb")
    ipython.register_magic_function(task, magic_kind="line_cell", magic_name="task")
    if _as_line not in ipython.input_transformers_cleanup:
        ipython.input_transformers_cleanup.append(_as_line)


def _as_line(lines: list[str]) -> list[str]:
    """Make a line magic of ``%%task`` in a cell of its own: IPython refuses a cell magic without a body."""
    if len(lines) == 1 and re.match(r"%%task(\s|$)", lines[0]):
        return [lines[0][1:]]
    return lines


def _from_template(name: str, template: str, cell: str) -> str:
    """Return the cell of a new task."""
    if cell.strip():
        raise RlnbError("--template would replace this cell. Use it in an empty one, or leave the option out.")
    return f"%%task {name.strip()}\n{define.template_of(template)}"


def line(text: str) -> Any:
    """%rlnb VERB [RUN ...]: runs, show, watch, logs, cancel, report or tensorboard.

    Name a run by its id or a unique part of the id. Without a run, the newest run is used. ``%rlnb simulator`` shows
    where the warm simulators of this kernel are, and ``%rlnb simulator close`` ends them and gives their nodes back.
    """
    verb, *ids = shlex.split(text) or ["help"]
    if verb == "help":
        return print(line.__doc__)
    if wrong := [word for word in ids if word.startswith("-")]:
        raise RlnbError(f"%rlnb has no option {', '.join(wrong)}. Use rlnb.{verb}(...) or run.{verb}(...) in Python.")
    if verb == "simulator":
        if ids not in ([], ["close"]):
            raise RlnbError("%rlnb simulator takes no run. Use %rlnb simulator, or %rlnb simulator close.")
        for simulator in simulators() if ids else ():
            simulator.close()
        return print("\n".join(map(repr, simulators())) or "no warm simulator; the next request starts one")
    if verb == "runs":
        if ids:
            raise RlnbError(f"%rlnb runs takes no filter. Use rlnb.runs(task={ids[0]!r}), or state=, tag= or where=.")
        return selection.runs()
    if verb not in VERBS:
        raise unknown("verb", verb, ["runs", "simulator", *VERBS], has="%rlnb has")
    runs = [selection.get_run(id) for id in ids] or list(selection.runs()[:1])
    if not runs:
        raise RlnbError("There are no runs yet. Start one with rlnb.train(...).")
    return VERBS[verb](runs)
