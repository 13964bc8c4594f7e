"""``python -m rlnb_jupyterlab.check``: check the run of a form, in a process of its own since this may take long.

Reads the form as JSON from standard input, and writes ``{"problems": [...], "agent": {...}}`` to standard output. It
calls an installed launcher and imports the task's own module. It executes nothing else that a form names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rlnb
from rlnb.launchers import make_launcher
from rlnb.plugin import Problem
from rlnb_jupyterlab.code import Form, Malformed, arguments, launcher_of, read
from rlnb_jupyterlab.messages import Json, encoded

WRONG_TYPE = (AttributeError, TypeError, ValueError)
"""Errors of a value of the wrong type, such as a number where text is expected."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FormProblem:
    """A problem of a form; the names of the fields are those of ``ts/server/protocol.ts``."""

    what: str
    fix: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FormAgent:
    """The agent config that a form's run would use."""

    source: str = ""
    """Origin of the config as text; empty if there is none."""
    names: Sequence[str] = ()
    """Names of the task's other agent configs for the library."""


def agent(fields: Mapping[str, Json]) -> FormAgent:
    """Return the agent config of a form; an empty one if the form has a problem that hides the config."""
    try:
        form = read(fields)
        if "task" not in form:
            return FormAgent()
        names: Any = form
        config = _task(form).agent(names.get("library"), names.get("agent_config"))
    except (Malformed, rlnb.RlnbError, *WRONG_TYPE):
        return FormAgent()  # the problems of the form say why
    return FormAgent(source=config.source, names=config.others)


def problems(fields: Mapping[str, Json]) -> list[FormProblem]:
    """Return the problems of a form, each with its fix."""
    rlnb.options.warm = False
    items: Sequence[Problem]
    try:
        form = read(fields)
        name, settings = launcher_of(str(form.get("launcher", "")))
        if "task" not in form:
            return [FormProblem(what="No task is chosen.", fix="Choose a task, or type its name.")]
        launcher = make_launcher(name, settings)
        task = _task(form)
        _, given = arguments(form)
        of_train: dict[str, Any] = {**given}
        if "init_from" in given:
            of_train["init_from"] = rlnb.get_run(str(given["init_from"]))  # an id as text may also be a file's name
        items = rlnb.check(task, deep=False, launcher=launcher, **of_train)
    except rlnb.CheckError as exc:
        items = exc.problems
    except (Malformed, rlnb.RlnbError) as exc:
        items = [Problem(what=str(exc))]
    except WRONG_TYPE as exc:
        fix = "Use the types that help(rlnb.train) and the help of the launcher list, such as help(rlnb.slurm)."
        items = [Problem(what=f"A field has a value of the wrong type: {exc}.", fix=fix)]
    return [FormProblem(what=problem.what, fix=problem.fix or "") for problem in items]


def _task(form: Form) -> rlnb.Task:
    of_task: Any
    of_task, _ = arguments(form)
    return rlnb.task(str(form["task"]), **of_task)


if __name__ == "__main__":
    form_fields = json.load(sys.stdin)
    sys.stdout.write(encoded({"problems": problems(form_fields), "agent": agent(form_fields)}))
