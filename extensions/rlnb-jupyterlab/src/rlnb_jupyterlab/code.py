"""The form for a new run, and the Python code that starts the same run from a notebook."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import rlnb
from rlnb.plugin import TRAIN_ARGUMENTS, Manifest, recorded_arguments
from rlnb_jupyterlab.messages import Json

Form: TypeAlias = "Mapping[str, Json]"
"""The fields of the form by name, without those at their default. They are the arguments of ``rlnb.task`` and
``rlnb.train``, but the launcher is a call, such as ``slurm(nodes=2)``, and ``agent_config`` names an agent config."""
OF_TASK = ("overrides", "presets", "physics", "renderer", "launcher_args", "imports")
TABLES, TEXTS = ("overrides", "agent", "launcher_args"), ("task", "library", "agent_config", "device", "launcher")
LOCAL = "local"
OF_A_FUNCTION = "function "
"""Beginning of the name of an alert rule that is a function, which only the notebook that started the run has."""


@functools.cache
def names() -> frozenset[str]:
    """Return the names of the fields."""
    of_train = (name for name, argument in TRAIN_ARGUMENTS.items() if argument.of_pages)
    return frozenset({"task", "launcher", "agent", "agent_config", *OF_TASK, *of_train})


@functools.cache
def defaults() -> Mapping[str, Any]:
    """Return the default of each argument of ``rlnb.train``."""
    return {name: parameter.default for name, parameter in inspect.signature(rlnb.train).parameters.items()}


class Malformed(ValueError):
    """A form that has a field of an unknown name, or a value of the wrong type."""


def read(fields: Mapping[str, Json]) -> Form:
    """Return the form that a page has sent.

    Raises:
        Malformed: A field has an unknown name, or a value of the wrong type.
    """
    if unknown := sorted(set(fields) - names()):
        raise Malformed(f"{unknown[0]!r} is not a field of the form.")
    form = {
        name: value
        for name, value in fields.items()
        if value not in (None, "", {}, []) and value != defaults().get(name, "")
    }
    for name in TABLES:
        table = form.get(name, {})
        if not isinstance(table, Mapping) or not all(isinstance(path, str) for path in table):
            raise Malformed(f"{name} is not a table of names and values.")
    for name in TEXTS:
        if not isinstance(form.get(name, ""), str):
            raise Malformed(f"{name} is not text.")
    if not re.fullmatch(r"\w[\w.-]*", str(form.get("init_from", "run"))):
        raise Malformed(f"{form['init_from']!r} is not the id of a run.")
    config = str(form.get("agent_config", "generic"))
    if not re.fullmatch(r"generic|\w+_cfg_entry_point", config):  # a file is not read
        raise Malformed(
            f"{config!r} is not the name of an agent config. Use generic or a name that ends with _cfg_entry_point."
        )
    return form


def launcher_of(text: str) -> tuple[str, dict[str, Json]]:
    """Return the name and the arguments of a launcher such as ``slurm(nodes=2, walltime="08:00:00")``.

    Only literals are evaluated.

    Raises:
        Malformed: The text is not such a call.
    """
    try:
        tree = ast.parse(text.strip() or LOCAL, mode="eval").body
        call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
        if not isinstance(call.func, ast.Name) or call.args or not all(keyword.arg for keyword in call.keywords):
            raise ValueError
        return call.func.id, {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (ValueError, SyntaxError):
        raise Malformed(f'{text!r} is not a launcher. Use one such as slurm(nodes=2, walltime="08:00:00").') from None


def arguments(form: Form) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the arguments of ``rlnb.task`` and of ``rlnb.train`` for a form, without the task and the launcher."""
    values = {name: value for name, value in form.items() if name not in ("task", "launcher")}
    if config := values.pop("agent_config", None):
        values["agent"] = [config, values["agent"]] if "agent" in values else config
    of_task = {name: value for name, value in values.items() if name in OF_TASK}
    return of_task, {name: value for name, value in values.items() if name not in OF_TASK}


def code(form: Form, init_from: str | None = None) -> str:
    """Return the Python code for a form.

    Args:
        form: The form.
        init_from: Run or file that the first weights come from; None for fresh weights.

    Raises:
        Malformed: The form's launcher is not a call.
    """
    of_task, of_train = arguments(form)
    of_train |= {} if init_from is None else {"init_from": init_from}
    name, settings = launcher_of(str(form.get("launcher", LOCAL)))
    task = form.get("task", "")
    lines = ["import rlnb", ""]
    if of_task:
        lines += ["task = rlnb.task(", f"    {task!r},", *_lines(of_task), ")"]
    lines += ["run = rlnb.train(", "    task," if of_task else f"    {task!r},", *_lines(of_train)]
    if name != LOCAL:
        lines.append(f"    launcher=rlnb.{name}({_keywords(settings)}),")
    return "\n".join([*lines, ")", "run.watch()"]) + "\n"


def code_of(manifest: Manifest) -> str:
    """Return the Python code that starts such a run again; a comment if another user's manifest has none."""
    if not manifest.script:
        try:
            return code(form_of(manifest), manifest.parent)
        except Malformed as exc:
            return f"# {exc}\n"  # in one line: the message quotes what the manifest says
    path, *arguments = manifest.script
    args = f", args={arguments!r}" if arguments else ""
    return f"import rlnb\n\nrun = rlnb.train(script={path!r}{args})\nrun.watch()\n"


def form_of(manifest: Manifest) -> Form:
    """Return the form that starts such a run again.

    Raises:
        Malformed: The manifest, which may be another user's, has a value that no form can have.
    """
    task, settings = manifest.task, _plain(manifest.launcher_settings)
    given = ", ".join(f"{name}={value!r}" for name, value in settings.items() if value not in (None, [], {}, ""))
    values = {
        **recorded_arguments(manifest),
        **{name: getattr(task, name) for name in OF_TASK},
        "task": task.id,
        "launcher": LOCAL if manifest.launcher == LOCAL else f"{manifest.launcher}({given})",
        "agent_config": manifest.agent_name,
        "agent": manifest.agent,
        "alerts": [rule for rule in manifest.alerts if not rule.startswith(OF_A_FUNCTION)],
    }
    if manifest.resources.nproc_per_node == 1:
        del values["nproc_per_node"]
    return read({name: value for name, value in _plain(values).items() if name in names()})


def _plain(values: Mapping[str, Json]) -> dict[str, Json]:
    """Return values with lists in place of tuples, as JSON has them."""
    plain: dict[str, Json] = json.loads(json.dumps(dict(values), default=str))
    return plain


def _keywords(values: Mapping[str, Json]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _lines(values: Mapping[str, Json]) -> list[str]:
    return [f"    {name}={value!r}," for name, value in values.items()]
