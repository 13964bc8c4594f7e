"""Check the selectors and config values of a task against its task card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rlnb.errors import CheckError, Problem, did_you_mean
from rlnb.registration.library import Library
from rlnb.spec import Json, Manifest, Task
from rlnb.tasks import launcher_args
from rlnb.tasks.card import AgentCard, ConfigField, Fields, Kind, TaskCard


def check_task(task: Task, card: TaskCard) -> None:
    """Refuse a task whose selectors, overrides, launcher arguments or assets have problems.

    Raises:
        CheckError: The task has problems. It lists all of them.
    """
    problems = check(task, card)
    if problems:
        raise CheckError(task.id, problems)


AUTO = "auto"
"""Value of a config that leaves a number to the library, such as skrl's interval between checkpoints."""
_ACCEPTS: Mapping[Kind, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "list": (list, tuple),
    "any": (object,),
}


def check(task: Task, card: TaskCard) -> list[Problem]:
    """Return the problems of a task's selectors, overrides, launcher arguments and assets."""
    problems = []
    for selector in ("physics", "renderer", "presets"):
        value, names = getattr(task, selector), getattr(card.presets, selector)
        for name in value if isinstance(value, tuple) else [value] if value else []:
            if card.presets.error:
                problems.append(
                    Problem(what=f"{selector}={name!r}: {card.presets.error}", fix=f"Leave {selector} out.")
                )
            elif name not in names:
                choices = ", ".join(names) or "none"
                problems.append(
                    Problem(
                        what=f"{selector}={name!r}: {task.id} has {choices}.{did_you_mean(name, names)}",
                        fix=f"Use one of these, or leave {selector} out.",
                    )
                )
    problems += check_values(task.overrides, card.fields, f"override of {task.id}")
    if task.launcher_args:
        problems += launcher_args.check(task.launcher_args)
    problems += [
        Problem(
            what=f"asset {name} is missing: {asset.path}",
            fix=f"{asset.fix} (The root was chosen because: {card.asset_root.reason}.)",
        )
        for name, asset in card.assets.items()
        if asset.exists is False
    ]
    return problems


def check_agent(manifest: Manifest, library: Library | None, agent: AgentCard | None) -> list[Problem]:
    """Return the problems of the values that a run sets in its agent config; none if there is no such config."""
    if library is None or agent is None or agent.error:
        return []
    subject, former = f"agent config of {library.name}", library.former_names
    return check_values(manifest.agent, agent.fields, subject, takes_more=agent.takes_more, former_names=former)


def check_values(
    values: Mapping[str, Json],
    fields: Fields,
    subject: str,
    *,
    takes_more: Sequence[str] = (),
    former_names: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> list[Problem]:
    """Return a problem for each value whose path does not exist or whose type does not fit.

    Args:
        values: Values by dotted path. As in Hydra, a path with a ``+`` before it need not exist.
        fields: Values of the config, from a task card.
        subject: Name of the config, for the problems.
        takes_more: Groups that are dicts, so that values can be added to them; ``""`` is the whole config.
        former_names: Paths of older versions, each mapped to its present paths.
    """
    groups = {*takes_more, *(group for name in fields for group in _groups_of(name))}
    problems = []
    for name, value in values.items():
        path, adds = name.removeprefix("+"), name.startswith("+")
        if path not in fields:
            inside = max((group for group in _groups_of(path) if group in groups), key=len, default="")
            free = all(path.split(".")) and path not in groups and not fields.keys() & {*_groups_of(path)}
            if adds and free and inside in takes_more:
                continue
            if path in former_names:
                what = f"{subject}: {path!r} is the name of an older version."
                problems.append(Problem(what=what, fix=f"Use {' and '.join(map(repr, former_names[path]))}."))
                continue
            below = [name for name in fields if name.startswith(f"{path}.")]
            hint = f" It is a group: {', '.join(below[:5])}, ..." if below else did_you_mean(path, fields)
            fix = "Correct the path."
            if adds and inside not in takes_more:
                fix = f"Correct the path: {inside or 'this config'} is a class, to which nothing can be added."
            elif not adds and free and inside in takes_more and not hint:  # a path with a close match is a typo
                fix = f"Correct the path, or add it: '+{path}'."
            problems.append(Problem(what=f"{subject}: no config value {path!r}.{hint}", fix=fix))
            continue
        kind = fields[path].type
        if value is not None and not _fits(value, fields[path]):
            problems.append(
                Problem(
                    what=f"{subject}: {path} takes {kind} (now {fields[path].value!r}), not {value!r}.",
                    fix=f"Pass {'an' if kind == 'int' else 'a'} {kind}.",
                )
            )
    return problems


def _fits(value: object, field: ConfigField) -> bool:
    """Return whether a value has the type of a field. ``"auto"`` in a config stands for a number."""
    types = (str, int, float) if field.value == AUTO else _ACCEPTS[field.type]
    is_truth = isinstance(value, bool) and bool not in types and field.type != "any"
    is_nan = isinstance(value, float) and math.isnan(value)
    return isinstance(value, types) and not is_truth and not is_nan


def _groups_of(path: str) -> list[str]:
    """Return the groups that contain a path, the whole config first: ``""``, ``"a"``, ``"a.b"`` for ``"a.b.c"``."""
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(len(parts))]
