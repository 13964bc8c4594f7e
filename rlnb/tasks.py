"""What a task is to the kernel: a name, a module on disk, selectors and overrides, checked against its card."""

from __future__ import annotations

import ast
import hashlib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb.errors import CheckError, RlnbError, did_you_mean
from rlnb.records.layout import Root
from rlnb.serial import to_json
from rlnb.settings import options
from rlnb.spec import Problem, Task

Card = Mapping[str, Any]
"""What the worker says of a task; see :func:`rlnb.worker.resolve.card`."""

_SHIPPED = (
    ".usd",
    ".usda",
    ".usdc",
    ".usdz",
    ".urdf",
    ".xml",
    ".yaml",
    ".yml",
    ".json",
    ".obj",
    ".stl",
    ".png",
    ".hdr",
)
_ACCEPTS: Mapping[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "list": (list, tuple),
    "any": (object,),
}


def task(
    name: str,
    *,
    num_envs: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    presets: Sequence[str] | str = (),
    physics: str | None = None,
    renderer: str | None = None,
    success: str | None = None,
) -> Task:
    """Describe a task. Quick: nothing of it is imported here.

    Args:
        name: The name given to ``%%task``; ``"package.module:EnvCfg"``; or a registered id, also of
            Isaac Lab 2.x.
        num_envs: Environments in total; None keeps the task's own number.
        overrides: Env config values by dotted path, e.g. ``{"sim.dt": 0.005}``.
        presets: Isaac Lab's global presets.
        physics: Isaac Lab's physics selector, e.g. ``"newton_mjwarp"``.
        renderer: Isaac Lab's renderer selector, e.g. ``"newton_renderer"``.
        success: ``"module:function"`` that says per env whether an ending episode succeeded.

    Raises:
        CheckError: ``num_envs`` is not positive, or an override is no JSON value.
    """
    problems = []
    if num_envs is not None and (isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1):
        problems.append(Problem(what=f"num_envs={num_envs!r} is not a positive whole number.", mend="num_envs=64"))
    if not isinstance(overrides, Mapping | None):
        problems.append(Problem(what=f"overrides={overrides!r} is no mapping.", mend='overrides={"sim.dt": 0.005}'))
        overrides = None
    for path, value in (overrides or {}).items():
        try:
            to_json(value)
        except RlnbError as exc:
            problems.append(Problem(what=f"override {path!r}: {exc}"))
    if problems:
        raise CheckError(f"task {name!r}", problems)
    module = module_path(options.folders, name)
    source = str(module) if os.path.isfile(module) else None  # also where the root cannot be entered
    return Task(
        id=name,
        source=source,
        source_sha256=sha256(module) if source else None,
        files=local_files(module) if source else {},
        num_envs=num_envs,
        presets=(presets,) if isinstance(presets, str) else tuple(presets),
        physics=physics,
        renderer=renderer,
        overrides=dict(overrides or {}),
        success=success,
    )


def module_path(root: Root, name: str) -> Path:
    """Return where the module of a ``%%task`` cell lies: ``tasks/lift_cube_rgb.py``."""
    return root.tasks / (re.sub(r"\W+", "_", name).strip("_").lower() + ".py")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_module(root: Root, name: str, body: str, owner: str) -> Path:
    """Save the body of a ``%%task`` cell as a module, syntax-checked and not executed.

    Args:
        root: Where task modules lie.
        name: Name of the task.
        body: The cell.
        owner: The notebook it stands in.

    Raises:
        SyntaxError: The body is no Python.
        RlnbError: Another notebook holds a different task of that name.
    """
    path = module_path(root, name)
    compile(body, str(path), "exec")
    header = f"# rlnb task {name!r} of {owner!r}\n"
    if path.is_file():
        first, _, old_body = path.read_text(encoding="utf-8").partition("\n")
        if first.startswith("# rlnb task ") and not first.startswith(f"# rlnb task {name!r} of "):
            raise RlnbError(f"{path} holds another task already ({first[2:]}). Names that share a file are one name.")
        old_owner = re.search(r" of (['\"])(.*)\1$", first)
        if old_owner and old_owner.group(2) != owner and old_body != body:
            raise RlnbError(
                f"The task {name!r} is held by {old_owner.group(2)} with another body ({path}). "
                "Give this one another name, or delete that file."
            )
    root.tasks.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(header + body, encoding="utf-8")
    temporary.replace(path)
    return path


def local_files(module: Path) -> dict[str, str]:
    """Return the files beside a module that it imports or names, by relative path, with their SHA-256."""
    found: dict[str, str] = {}
    todo = [module]
    while todo:
        current = todo.pop()
        for path in _named_files(current, module.parent):
            relative = str(path.relative_to(module.parent))
            if relative not in found and path != module:
                found[relative] = sha256(path)
                if path.suffix == ".py":
                    todo.append(path)
    return dict(sorted(found.items()))


def _named_files(module: Path, folder: Path) -> Iterable[Path]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [f"{alias.name.split('.')[0]}.py" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module.split('.')[0]}.py"]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(_SHIPPED):
            names = [node.value]
        for name in names:
            path = folder / name
            if not Path(name).is_absolute() and ".." not in Path(name).parts and path.is_file():
                yield path


# -- against its card ---------------------------------------------------------------------------------------


def check(task: Task, card: Card) -> list[Problem]:
    """Return what is wrong with a task's selectors, overrides and assets."""
    problems = []
    for selector in ("physics", "renderer", "presets"):
        wanted = getattr(task, selector)
        for name in wanted if isinstance(wanted, tuple) else [wanted] if wanted else []:
            known = card["presets"].get(selector, [])
            if name not in known:
                listed = ", ".join(known) or "none"
                problems.append(
                    Problem(
                        what=f"{selector}={name!r}: {task.id} has {listed}.{did_you_mean(name, known)}",
                        mend=f"Use one of these, or leave {selector} out.",
                    )
                )
    problems += check_values(task.overrides, card["fields"], f"override of {task.id}")
    problems += [
        Problem(
            what=f"asset {name} is missing: {asset['path']}",
            mend=f"{asset['mend']} (The root was chosen because: {card['asset_root']['reason']}.)",
        )
        for name, asset in card["assets"].items()
        if asset["there"] is False
    ]
    return problems


def check_values(
    values: Mapping[str, Any], fields: Mapping[str, Any], subject: str, *, takes_more: Sequence[str] = ()
) -> list[Problem]:
    """Return the values whose path does not exist or whose type does not fit.

    Args:
        values: Value by dotted path. A path with a + before it, as Hydra has it, need not exist.
        fields: What there is, of a task card.
        subject: Whose values they are, in words.
        takes_more: Groups to which values can be added, since they are dicts and no classes; "" is the whole config.
    """
    groups = {*takes_more, *(group for name in fields for group in _groups_of(name))}
    problems = []
    for asked, value in values.items():
        path, adds = asked.removeprefix("+"), asked.startswith("+")
        if path not in fields:
            inside = max((group for group in _groups_of(path) if group in groups), key=len, default="")
            free = all(path.split(".")) and path not in groups and not fields.keys() & {*_groups_of(path)}
            if adds and free and inside in takes_more:
                continue
            below = [name for name in fields if name.startswith(f"{path}.")]
            hint = f" It is a group: {', '.join(below[:5])}, ..." if below else did_you_mean(path, fields)
            mend = "Correct the path."
            if adds and inside not in takes_more:
                mend = f"Correct the path: {inside or 'this config'} is a class, to which nothing can be added."
            elif not adds and free and inside in takes_more and not hint:  # what is close is a typo
                mend = f"Correct the path, or add it: '+{path}'."
            problems.append(Problem(what=f"{subject}: no config value {path!r}.{hint}", mend=mend))
            continue
        kind = fields[path]["type"]
        fits = isinstance(value, _ACCEPTS[kind]) and not (isinstance(value, bool) and kind in ("int", "float"))
        fits = fits and not (isinstance(value, float) and math.isnan(value))
        if value is not None and not fits:
            problems.append(
                Problem(
                    what=f"{subject}: {path} takes {kind} (now {fields[path]['value']!r}), not {value!r}.",
                    mend=f"Pass {'an' if kind == 'int' else 'a'} {kind}.",
                )
            )
    return problems


def _groups_of(path: str) -> list[str]:
    """Return the groups that a path lies in, the whole config first: "", "a", "a.b" of "a.b.c"."""
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(len(parts))]
