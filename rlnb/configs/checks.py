"""What is wrong with the user's changes of a task and of an agent config, and with the runtime that the task needs."""

from __future__ import annotations

import difflib
import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType

from rlnb.configs import launcher_args
from rlnb.configs.card import AgentCard, Asset, ConfigField, Fields, Kind, TaskCard
from rlnb.contracts.libraries import Library
from rlnb.display.status import note_once
from rlnb.errors import CheckError, Problem, did_you_mean
from rlnb.machine.packages import install_line
from rlnb.settings import options
from rlnb.spec import Json, Manifest, Task

# -- overrides -------------------------------------------------------------------------------------------------------


def check_task(task: Task, card: TaskCard) -> None:
    """Refuse a task whose selectors, overrides, launcher arguments, assets or runtime have problems.

    Otherwise, say what rlnb has chosen for the task.

    Raises:
        CheckError: The task has problems. It lists all of them.
    """
    problems = [*check_overrides(task, card), *runtime_problems(task, card)]
    if problems:
        raise CheckError(task.id, problems)
    tell_chosen(card)


LIKELY = 0.7
"""Least similarity of a path with the one that an error suggests, 0 to 1."""
MOST_MEANT = 3
"""Most values of the same name that an error suggests."""
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


def check_overrides(task: Task, card: TaskCard) -> list[Problem]:
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
    overridden = {path.removeprefix("+") for path in task.overrides}
    problems += [
        Problem(
            what=f"asset {name} is missing: {asset.path}",
            fix=f"{asset.fix} (The root was chosen because: {card.asset_root.reason}.)",
        )
        for name, asset in card.assets.items()
        if asset.exists is False and not _is_replaced(asset, overridden)
    ]
    problems += [
        Problem(what=f"{task.id}: {place} is {asset.path!r}: {asset.fault or 'there is no such file'}.", fix=asset.fix)
        for place, asset in card.own_assets.items()
        if asset.fix and not _is_replaced(asset, overridden)
    ]
    return problems + _missing_files(task, card)


def _is_replaced(asset: Asset, overridden: Set[str]) -> bool:
    """Return whether overrides replace a file wherever the config names it."""
    return bool(asset.places) and overridden >= {*asset.places}


def _missing_files(task: Task, card: TaskCard) -> list[Problem]:
    """Return the problems of overrides that name a robot or scene file which does not exist on this machine."""
    if options.simulator is not None:  # the files are those of another machine
        return []
    places = {place for asset in (*card.assets.values(), *card.own_assets.values()) for place in asset.places}
    overrides = {path.removeprefix("+"): value for path, value in task.overrides.items()}
    values = {path: overrides[path] for path in places & overrides.keys()}
    return [
        Problem(what=f"override of {task.id}: {path} is {value!r}: there is no such file.", fix="Correct the path.")
        for path, value in sorted(values.items())
        if isinstance(value, str) and "://" not in value and not Path(value).is_file()
    ]


def check_agent(manifest: Manifest, library: Library | None, agent: AgentCard | None) -> list[Problem]:
    """Return the problems of the values that a run sets in its agent config; none if there is no such config."""
    if library is None or agent is None or agent.error:
        return []
    subject, former = f"agent config of {library.name}", library.former_names
    return check_values(
        manifest.agent,
        agent.fields,
        subject,
        takes_more=agent.takes_more,
        openings=agent.openings,
        former_names=former,
    )


def check_values(
    values: Mapping[str, Json],
    fields: Fields,
    subject: str,
    *,
    takes_more: Sequence[str] = (),
    openings: Mapping[str, Fields] = MappingProxyType({}),
    former_names: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> list[Problem]:
    """Return a problem for each value whose path does not exist or whose type does not fit.

    Args:
        values: Values by dotted path. As in Hydra, a path with a ``+`` before it need not exist.
        fields: Values of the config, from a task card.
        subject: Name of the config, for the problems.
        takes_more: Groups that are dicts, so that values can be added to them; ``""`` is the whole config.
        openings: Values that may become groups, as in :attr:`rlnb.configs.card.AgentCard.openings`.
        former_names: Paths of older versions, each mapped to its present paths.
    """
    groups = {*takes_more, *(group for name in fields for group in _groups_of(name))}
    problems: list[Problem] = []
    opened: dict[str, dict[str, Json]] = {}
    for name, value in values.items():
        path, adds = name.removeprefix("+"), name.startswith("+")
        if path not in fields and (group := _opening(path, openings)):
            opened.setdefault(group, {})[path.removeprefix(f"{group}.")] = value
            continue
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
            hint = f" It is a group: {', '.join(below[:5])}, ..." if below else _meant(path, fields)
            fix = "Correct the path."
            if adds and inside not in takes_more:
                fix = f"Correct the path: {inside or 'this config'} is a class, to which nothing can be added."
            elif not adds and free and inside in takes_more:
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
    for group, inner in opened.items():
        problems += _check_group(inner, openings[group], f"{subject}, {group}", group)
    return problems


def _opening(path: str, openings: Mapping[str, Fields]) -> str:
    """Return the value that a path leads through and that may become a group; empty if there is none."""
    return next((group for group in _groups_of(path) if group in openings), "")


def _check_group(values: Mapping[str, Json], fields: Fields, subject: str, group: str) -> list[Problem]:
    """Return the problems of the values of a new group; none if it takes any value."""
    if not fields:
        return []
    lacking = [name for name, field in fields.items() if field.required and values.get(name) is None]
    problems = check_values(values, fields, subject)
    if lacking:
        what = f"{subject}: {' and '.join(lacking)} {'has' if len(lacking) == 1 else 'have'} no default."
        problems.append(Problem(what=what, fix=f"Pass {', '.join(f'{group}.{name}' for name in lacking)} too."))
    return problems


def _meant(path: str, fields: Fields) -> str:
    """Return the hint at the value that a path without one probably stands for; empty if none is likely.

    Only what differs is compared, since the paths of one group have a long beginning in common.
    """
    if group := next((group for group in _groups_of(path) if group in fields), ""):
        return f" Did you mean {group!r}?"
    short = path.rpartition(".")[2]
    same = [name for name in fields if name.rpartition(".")[2] == path]
    if not same and len(short) > 1:
        numbers = (name for name, field in fields.items() if field.type in ("int", "float", "any"))
        same = [name for name in numbers if _initials(name) == short]
    if 0 < len(same) <= MOST_MEANT:
        return f" Did you mean {' or '.join(map(repr, same))}?"
    alike = {name: difflib.SequenceMatcher(None, *_apart(path, name)).ratio() for name in fields}
    best = max(alike, key=alike.__getitem__, default="")
    return f" Did you mean {best!r}?" if best and alike[best] >= LIKELY else ""


def _initials(path: str) -> str:
    """Return the first letters of the words of a value's name, such as ``"lr"`` of ``"algorithm.learning_rate"``."""
    return "".join(word[:1] for word in path.rpartition(".")[2].split("_"))


def _apart(one: str, other: str) -> tuple[str, str]:
    """Return two paths without the groups that they have in common."""
    groups = [group for group in _groups_of(one) if group and group in _groups_of(other)]
    common = len(f"{groups[-1]}.") if groups else 0
    return one[common:], other[common:]


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


# -- runtime ---------------------------------------------------------------------------------------------------------


NEWTON = "from isaaclab_newton.physics import NewtonCfg"
WARP = "from isaaclab_newton.renderers import NewtonWarpRendererCfg"


def runtime_problems(task: Task, card: TaskCard, python: str | None = None) -> list[Problem]:
    """Return a problem for each runtime that the task needs and the interpreter does not have.

    Args:
        task: The task.
        card: Its card.
        python: Command of the worker's interpreter; None is that of ``rlnb.options``, or this one.
    """
    python = python or options.python
    found = [*_of_isaac_sim(task, card, python or sys.executable), *_of_ovphysx(task, card, python)]
    return [*found, *_of_soft_bodies(task, card, python or sys.executable)]


def tell_chosen(card: TaskCard) -> None:
    """Say once which settings rlnb has chosen in place of Isaac Sim's."""
    if card.chosen:
        note_once(f"Without Isaac Sim, {card.task} runs with {' and '.join(card.chosen)}.")


def _of_isaac_sim(task: Task, card: TaskCard, python: str) -> Iterator[Problem]:
    if not card.isaac_sim:
        return
    fixes, imports = [], []
    if any("physics" in part or "default" in part for part in card.isaac_sim):
        others = sorted((name for name in card.presets.physics if "physx" not in name), reverse=True)
        fixes.append(f"physics={others[0]!r}" if others else "sim.physics=NewtonCfg() in the task's config")
        imports += [] if others else [NEWTON]
    if any("renderer" in part for part in card.isaac_sim):
        others = [name for name in card.presets.renderer if "rtx" not in name]
        fixes.append(f"renderer={others[0]!r}" if others else "renderer_cfg=NewtonWarpRendererCfg() in its cameras")
        imports += [] if others else [WARP]
    fix = " and ".join(fixes) or f"fewer launcher_args than {', '.join(task.launcher_args)}"
    fix += f", with {'; '.join(imports)}" if imports else ""
    yield Problem(
        what=f"{task.id} needs Isaac Sim, which {python} does not have: it uses {', '.join(card.isaac_sim)}.",
        fix=f"{fix}, or python= with an interpreter that has Isaac Sim.",
    )


def _of_ovphysx(task: Task, card: TaskCard, python: str | None) -> Iterator[Problem]:
    if not card.missing:
        return
    isaacsim = "isaacsim" in card.versions
    preferred = ("isaacsim_physx", "newton_mjwarp") if isaacsim else ("newton_mjwarp",)
    other = next((name for name in preferred if name in card.presets.physics), None)
    fix = install_line("rlnb[physx]", python=python, isaacsim=isaacsim)
    yield Problem(
        what=f"{task.id} uses OvPhysX, which needs {' and '.join(card.missing)} in {python or sys.executable}.",
        fix=f"physics={other!r}, or {fix}" if other else fix,
    )


def _of_soft_bodies(task: Task, card: TaskCard, python: str) -> Iterator[Problem]:
    if card.requires:
        packages = " ".join(shlex.quote(requirement) for requirement in card.requires)
        yield Problem(
            what=f"{task.id} has a soft body that is cut into tetrahedra, which {python} has no package for.",
            fix=f"{python} -m pip install {packages}",
        )
