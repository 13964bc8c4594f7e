"""The form for a new run, and the Python code that starts the same run from a notebook."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlnb.plugin import Manifest
from rlnb_jupyterlab.messages import Json

OF_TASK = ("overrides", "presets", "physics", "renderer", "launcher_args", "imports")
LOCAL = "local"


class Malformed(ValueError):
    """A form that has a field of an unknown name, or a value of the wrong type."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """All fields of the form; a field with its default value becomes no argument."""

    task: str = ""
    library: str = ""
    """Name of the library; empty for the task's default."""
    num_envs: int | None = None
    max_iterations: int | None = None
    max_frames: int | None = None
    seed: int | None = 42
    deterministic: bool = False
    device: str = "auto"
    nproc_per_node: int | str | None = None
    launcher: str = LOCAL
    """A call, such as ``slurm(nodes=2)``."""
    overrides: Mapping[str, Json] = field(default_factory=dict)
    agent_config: str = ""
    """Name of an agent config of the task; empty for the library's usual one."""
    agent: Mapping[str, Json] = field(default_factory=dict)
    presets: Sequence[str] = field(default_factory=list)
    physics: str | None = None
    renderer: str | None = None
    launcher_args: Mapping[str, Json] = field(default_factory=dict)
    imports: Sequence[str] = field(default_factory=list)
    tags: Sequence[str] = field(default_factory=list)


DEFAULTS = Form()
NAMES = tuple(field.name for field in dataclasses.fields(Form))


def read(fields: Mapping[str, Json]) -> Form:
    """Return the form that a page has sent; a field that is null or an empty string gets its default.

    Raises:
        Malformed: A field has an unknown name, or a value of the wrong type.
    """
    if unknown := sorted(set(fields) - set(NAMES)):
        raise Malformed(f"{unknown[0]!r} is not a field of the form.")
    form = Form(**{name: value for name, value in fields.items() if value not in (None, "")})  # type: ignore[arg-type]
    for name in ("overrides", "agent", "launcher_args"):
        table = getattr(form, name)
        if not isinstance(table, Mapping) or not all(isinstance(path, str) for path in table):
            raise Malformed(f"{name} is not a table of names and values.")
    for name in ("task", "library", "agent_config", "device", "launcher"):
        if not isinstance(getattr(form, name), str):
            raise Malformed(f"{name} is not text.")
    if form.agent_config and not re.fullmatch(r"generic|\w+_cfg_entry_point", form.agent_config):  # a file is not read
        raise Malformed(
            f"{form.agent_config!r} is not the name of an agent config. Use generic or a name that ends "
            "with _cfg_entry_point."
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
    values = {name: getattr(form, name) for name in NAMES if name not in ("task", "launcher")}
    changes = {name: value for name, value in values.items() if value != getattr(DEFAULTS, name)}
    if config := changes.pop("agent_config", None):
        changes["agent"] = [config, changes["agent"]] if "agent" in changes else config
    of_task = {name: value for name, value in changes.items() if name in OF_TASK}
    return of_task, {name: value for name, value in changes.items() if name not in OF_TASK}


def code(form: Form) -> str:
    """Return the Python code for a form.

    Raises:
        Malformed: The form's launcher is not a call.
    """
    of_task, of_train = arguments(form)
    name, settings = launcher_of(form.launcher)
    lines = ["import rlnb", ""]
    if of_task:
        lines += ["task = rlnb.task(", f"    {form.task!r},", *_lines(of_task), ")"]
    lines += ["run = rlnb.train(", "    task," if of_task else f"    {form.task!r},", *_lines(of_train)]
    if name != LOCAL:
        lines.append(f"    launcher=rlnb.{name}({_keywords(settings)}),")
    return "\n".join([*lines, ")", "run.watch()"]) + "\n"


def code_of(manifest: Manifest) -> str:
    """Return the Python code that starts such a run again; a comment if another user's manifest has none."""
    if not manifest.script:
        try:
            return code(form_of(manifest))
        except Malformed as exc:
            return f"# {exc}\n"  # in one line: the message quotes what the manifest says
    path, *arguments = manifest.script
    args = f", args={arguments!r}" if arguments else ""
    return f"import rlnb\n\nrun = rlnb.train(script={path!r}{args})\nrun.watch()\n"


def form_of(manifest: Manifest) -> Form:
    """Return the form that starts such a run again."""
    task, resources = manifest.task, manifest.resources
    settings = {
        name: value for name, value in manifest.launcher_settings.items() if value not in (None, [], (), {}, "")
    }
    return Form(
        task=task.id,
        library=manifest.library,
        num_envs=task.num_envs,
        max_iterations=manifest.max_iterations,
        max_frames=manifest.max_frames,
        seed=manifest.seed,
        deterministic=manifest.deterministic,
        device=resources.device,
        nproc_per_node=resources.nproc_per_node if resources.nproc_per_node > 1 else None,
        launcher=LOCAL if manifest.launcher == LOCAL else f"{manifest.launcher}({_keywords(settings)})",
        overrides=_plain(task.overrides),
        agent_config=manifest.agent_name or "",
        agent=_plain(manifest.agent),
        presets=list(task.presets),
        physics=task.physics,
        renderer=task.renderer,
        launcher_args=_plain(task.launcher_args),
        imports=list(task.imports),
        tags=list(manifest.tags),
    )


def _plain(values: Mapping[str, Json]) -> dict[str, Json]:
    """Return values with lists in place of tuples, as JSON has them."""
    plain: dict[str, Json] = json.loads(json.dumps(dict(values), default=str))
    return plain


def _keywords(values: Mapping[str, Json]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _lines(values: Mapping[str, Json]) -> list[str]:
    return [f"    {name}={value!r}," for name, value in values.items()]
