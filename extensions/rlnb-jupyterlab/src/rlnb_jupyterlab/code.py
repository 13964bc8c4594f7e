"""What was clicked, as the lines of a notebook that do the same."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from rlnb import Manifest

DEFAULTS: Mapping[str, Any] = {
    "task": "",
    "library": "rsl_rl",
    "num_envs": None,
    "max_iterations": None,
    "seed": 42,
    "device": "auto",
    "nproc_per_node": None,
    "launcher": "local",
    "overrides": {},
    "agent": {},
    "presets": [],
    "physics": None,
    "renderer": None,
    "tags": [],
}
"""Every field of the form, and what leaves an argument out."""
OF_TASK = ("overrides", "presets", "physics", "renderer")
LOCAL = "local"


class Malformed(ValueError):
    """A field that is not what its name says."""


def read(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return a form's fields, all of them.

    Raises:
        Malformed: It has fields that no form has, or values of another kind.
    """
    if unknown := set(form) - set(DEFAULTS):
        raise Malformed(f"There is no field {sorted(unknown)[0]!r}.")
    found = {**DEFAULTS, **{name: value for name, value in form.items() if value not in (None, "")}}
    for name in ("overrides", "agent"):
        if not isinstance(found[name], Mapping) or not all(isinstance(path, str) for path in found[name]):
            raise Malformed(f"{name} is not a table of names and values.")
    for name in ("task", "library", "device", "launcher"):
        if not isinstance(found[name], str):
            raise Malformed(f"{name} is not text.")
    return found


def launcher_of(text: str) -> tuple[str, dict[str, Any]]:
    """Return name and arguments of a launcher that was written as ``slurm(nodes=2, walltime="08:00:00")``.

    Nothing is evaluated but literals.

    Raises:
        Malformed: It is something else.
    """
    try:
        tree = ast.parse(text.strip() or LOCAL, mode="eval").body
        call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
        if not isinstance(call.func, ast.Name) or call.args or not all(word.arg for word in call.keywords):
            raise ValueError
        return call.func.id, {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (ValueError, SyntaxError):
        raise Malformed(f'{text!r} is not a launcher, such as slurm(nodes=2, walltime="08:00:00").') from None


def arguments(form: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of ``rlnb.task`` and of ``rlnb.train`` that a form stands for, without the launcher."""
    fields = {name: value for name, value in read(form).items() if value != DEFAULTS[name]}
    of_task = {name: fields.pop(name) for name in OF_TASK if name in fields}
    fields.pop("launcher", None)
    fields.pop("task", None)
    return of_task, fields


def code(form: Mapping[str, Any]) -> str:
    """Return the Python that a form stands for."""
    fields = read(form)
    of_task, of_train = arguments(form)
    name, settings = launcher_of(fields["launcher"])
    lines = ["import rlnb", ""]
    if of_task:
        lines += ["task = rlnb.task(", f"    {fields['task']!r},", *_words(of_task), ")"]
    lines += ["run = rlnb.train(", "    task," if of_task else f"    {fields['task']!r},", *_words(of_train)]
    if name != LOCAL:
        said = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        lines.append(f"    launcher=rlnb.{name}({said}),")
    return "\n".join([*lines, ")", "run.watch()"]) + "\n"


def code_of(manifest: Manifest) -> str:
    """Return the Python that asks for what a run was asked for."""
    if not manifest.script:
        return code(form_of(manifest))
    path, *words = manifest.script
    args = f", args={words!r}" if words else ""
    return f"import rlnb\n\nrun = rlnb.train(script={path!r}{args})\nrun.watch()\n"


def form_of(manifest: Manifest) -> dict[str, Any]:
    """Return the form that asks for what a run was asked for."""
    task, settings = manifest.task, manifest.launcher_settings
    said = ", ".join(f"{key}={value!r}" for key, value in settings.items() if value not in (None, [], (), {}, ""))
    found = {
        "task": task.id,
        "library": manifest.library,
        "num_envs": task.num_envs,
        "max_iterations": manifest.max_iterations,
        "seed": manifest.seed,
        "device": manifest.resources.device,
        "nproc_per_node": manifest.resources.nproc_per_node if manifest.resources.nproc_per_node > 1 else None,
        "launcher": LOCAL if manifest.launcher == LOCAL else f"{manifest.launcher}({said})",
        "overrides": dict(task.overrides),
        "agent": dict(manifest.agent),
        "presets": list(task.presets),
        "physics": task.physics,
        "renderer": task.renderer,
        "tags": list(manifest.tags),
    }
    plain: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return plain


def _words(values: Mapping[str, Any]) -> list[str]:
    return [f"    {name}={value!r}," for name, value in values.items()]
