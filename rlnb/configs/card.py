"""The task card: the worker's description of a task, for the kernel, which cannot import the task."""

from __future__ import annotations

import difflib
import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from rlnb.configs import launcher_args
from rlnb.contracts.libraries import Library, Space
from rlnb.display.table import cell, shortened, table
from rlnb.errors import CheckError, Problem, did_you_mean
from rlnb.machine.packages import install_line
from rlnb.settings import options
from rlnb.spec import Json, Manifest, Task
from rlnb.storage import files

OWN_TASKS = (
    'Tasks of your own package need imports="my_project.tasks" (in a shell --import my_project.tasks), or its entry '
    'point in isaaclab.tasks. An env config needs neither: rlnb.task("my_project.module:EnvCfg").'
)
"""How to use tasks that Isaac Lab does not know."""
CARD_SCHEMA = 17
"""Version of the fields of a task card, also of :class:`rlnb.plugin.Space`. Increase it with each change of them: a
cached card of another version is not read."""

MULTI_AGENT = "multi-agent"
"""Workflow in the task card of a task with several agents."""

Kind = Literal["bool", "int", "float", "str", "list", "any"]
"""Type of a config value; ``any`` if the config's default is None, which does not tell the type."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigField:
    """One value of an env config or an agent config."""

    type: Kind
    """Type of the value."""
    value: Json = None
    """The config's default; the ``repr`` of a value that JSON cannot hold."""
    required: bool = False
    """Whether the config has no default, in a group of :attr:`AgentCard.openings`."""


Fields = Mapping[str, ConfigField]
"""The values of a config, by dotted path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CameraCard:
    """A camera of a task."""

    data_types: tuple[str, ...] = ()
    """Isaac Lab's names of the camera's outputs."""
    width: int
    """Width of a frame, pixels."""
    height: int
    """Height of a frame, pixels."""


DEFAULT_LIBRARY = "rsl_rl"
"""Library of a training that names none, on a task whose registration names none either."""
GENERIC = "generic"
"""Name by which ``agent=`` chooses the generic agent config of a library's plugin."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentCard:
    """An agent config for a task."""

    source: str = ""
    """Origin of the config as text, e.g. ``"rsl_rl_cfg_entry_point of the task"``."""
    generic: bool = False
    """Whether the config is the generic one of the library's plugin, which no task brings."""
    needs_choice: bool = False
    """Whether the user has to choose the config by name, because it is generic, other tasks bring configs for the
    library, and this one brings configs for other libraries only."""
    fields: Fields = field(default_factory=dict)
    """Values of the config, by dotted path."""
    takes_more: tuple[str, ...] = ()
    """Groups that are dicts, so that values can be added to them; ``""`` is the whole config."""
    openings: Mapping[str, Fields] = field(default_factory=dict)
    """Values without a default that may be groups, each with the fields of the group; without fields, a group takes any
    value. An RSL-RL config has ``algorithm.rnd_cfg``, which is None, and ``obs_groups``, which may be missing."""
    missing: tuple[str, ...] = ()
    """Requirements of the library that the worker's interpreter does not meet; empty if it meets all, and for the
    configs in :attr:`TaskCard.named_agents`."""
    error: str = ""
    """Reason why the config does not load; empty if it loads."""

    def trained_by(self, library: Library) -> str:
        """Return the library that trains this config of a library: another one of its plugin, or the library itself."""
        for path, others in library.handed_over.items():
            if (value := self.fields.get(path)) is not None and (other := others.get(str(value.value))):
                return other
        return library.name

    @property
    def usable(self) -> bool:
        """Whether the library can train the task in the worker's interpreter."""
        return not self.error and not self.missing


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """A robot or scene file that a task needs."""

    path: str
    """Path or URL of the file."""
    exists: bool | None
    """Whether the file exists; None for a remote file, which is not checked."""
    fix: str = ""
    """Command that provides a missing file."""
    places: tuple[str, ...] = ()
    """Dotted paths in the env config that name the file."""
    fault: str = ""
    """Reason why the file cannot be used, as a clause after its place; empty if it can, and if it is only missing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AssetRoot:
    """The folder or URL that assets come from, and the reason for it."""

    path: str = ""
    """Folder or URL, without a trailing slash."""
    reason: str = ""
    """The rule that chose the root."""

    @property
    def local(self) -> bool:
        """Whether the root is a folder of the worker's machine."""
        return "://" not in self.path


@dataclass(frozen=True, kw_only=True, slots=True)
class Selectors:
    """Names that each selector of a task accepts."""

    physics: tuple[str, ...] = ()
    """Names for ``physics=``."""
    renderer: tuple[str, ...] = ()
    """Names for ``renderer=``."""
    presets: tuple[str, ...] = ()
    """Names for ``presets=``."""
    error: str = ""
    """Reason why the names are unknown; empty if they are known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskCard:
    """A task as the worker resolved it, without the user's overrides."""

    task: str
    """Id of the task."""
    gym_id: str = ""
    """Id of the task in gymnasium's registry."""
    workflow: str = ""
    """``"manager-based"``, ``"direct"`` or ``"multi-agent"``."""
    num_envs: int = 1
    """Default number of envs of the task."""
    fields: Fields = field(default_factory=dict)
    """Values of the env config, by dotted path."""
    observations: Mapping[str, Space] = field(default_factory=dict)
    """Spaces of the observation groups, as far as the env config tells; empty for several agents."""
    actions: Space | None = None
    """Space of the actions; None for several agents, and if the env config does not tell."""
    success: str = ""
    """Source of success, a function or ``"terminations.success"``; empty if the task has neither."""
    presets: Selectors = Selectors()
    """Names that the task's selectors accept."""
    cameras: Mapping[str, CameraCard] = field(default_factory=dict)
    """The task's own cameras, by name."""
    agents: Mapping[str, AgentCard] = field(default_factory=dict)
    """Usual agent config of each library that has one for the task, by library."""
    named_agents: Mapping[str, AgentCard] = field(default_factory=dict)
    """Further agent configs of the task, by the name that ``agent=`` takes, e.g.
    ``"rsl_rl_with_symmetry_cfg_entry_point"``."""
    generic_agents: Mapping[str, AgentCard] = field(default_factory=dict)
    """Generic agent config of each library whose usual one is the task's own, by library."""
    registered_agents: tuple[str, ...] = ()
    """Names of all agent configs that the task's registration or module brings, also those for other libraries."""
    default_library: str = DEFAULT_LIBRARY
    """Library of a training that names none. It is the one that the task's registration names as its default
    (``default_agent``) if the worker's interpreter has its plugin, otherwise RSL-RL."""
    assets: Mapping[str, Asset] = field(default_factory=dict)
    """Asset files that the task names, by path below the asset root."""
    own_assets: Mapping[str, Asset] = field(default_factory=dict)
    """Robot and scene files that are not below the asset root, by dotted path in the env config."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Files of the user's own package that define the task. The values change whenever a file is written
    (:func:`rlnb.storage.files.stamp`)."""
    asset_root: AssetRoot = AssetRoot()
    """The root of robot and scene files."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the worker's packages, by name."""
    warning: str = ""
    """Warning about these versions; empty if rlnb was tested with this release of Isaac Lab."""
    chosen: tuple[str, ...] = ()
    """Settings that rlnb has made because the task leaves them to Isaac Sim, which the worker's interpreter does not
    have, e.g. ``"sim.physics=NewtonCfg()"``."""
    isaac_sim: tuple[str, ...] = ()
    """Parts of the task that need Isaac Sim, if the worker's interpreter does not have it; empty if it can run them."""
    requires: tuple[str, ...] = ()
    """Requirements of the task's soft bodies that the worker's interpreter does not meet, as pip requirements."""
    missing: tuple[str, ...] = ()
    """Packages that the physics of the task needs and the worker's interpreter does not have."""

    def __repr__(self) -> str:
        rows = (row for row in _rows(self, Task(id=self.task)) if row[1])
        return "\n".join([self.task, *(f"  {name}: {shortened(value, 160)}" for name, value in rows)])

    def _repr_html_(self) -> str:
        return card_html(self)


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
    alike = {name: difflib.SequenceMatcher(None, *_apart(path, name)).ratio() for name in fields}
    best = max(alike, key=alike.__getitem__, default="")
    return f" Did you mean {best!r}?" if best and alike[best] >= LIKELY else ""


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
    """Log once the settings that rlnb has chosen in place of Isaac Sim's."""
    if card.chosen:
        left = "its physics" if any("physics" in setting for setting in card.chosen) else "its renderer"
        chosen = " and ".join(card.chosen)
        files.warn_once(f"{card.task} leaves {left} to Isaac Sim, which is not installed. It runs with {chosen}.")


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


# -- HTML ------------------------------------------------------------------------------------------------------------


def card_html(card: TaskCard, task: Task | None = None) -> str:
    """Return a task card as HTML.

    Args:
        card: The card.
        task: The task with the user's changes; None shows the card alone.
    """
    task = task or Task(id=card.task)
    values = [(path, repr(field.value), field.type) for path, field in card.fields.items()]
    return (
        table(("", ""), [row for row in _rows(card, task) if row[1]], caption=card.task)
        + f"<details><summary>{len(values)} config values</summary>{table(('path', 'value', 'type'), values)}</details>"
    )


def _rows(card: TaskCard, task: Task) -> list[tuple[str, str]]:
    return [*_definition(card, task), *_episode(card, task), *_contents(card), *_needs(card)]


def _definition(card: TaskCard, task: Task) -> Iterator[tuple[str, str]]:
    yield "defined in", task.source or (f"Isaac Lab's registry, as {card.gym_id}" if card.gym_id else "")
    yield "workflow", card.workflow
    yield "envs", f"{task.num_envs} (default: {card.num_envs})" if task.num_envs else str(card.num_envs)
    selected = {"presets": ", ".join(task.presets), "physics": task.physics, "renderer": task.renderer}
    yield "selected", ", ".join(f"{name} {value}" for name, value in selected.items() if value)
    yield "overrides", ", ".join(_override(card, path, value) for path, value in task.overrides.items())


def _override(card: TaskCard, path: str, value: Json) -> str:
    field = card.fields.get(path)
    return f"{path} = {cell(value)} ({f'default: {cell(field.value)}' if field else 'the config has no such value'})"


def _episode(card: TaskCard, task: Task) -> Iterator[tuple[str, str]]:
    values = {path: field.value for path, field in card.fields.items()} | dict(task.overrides)
    length_s, dt_s, decimation = (values.get(path) for path in ("episode_length_s", "sim.dt", "decimation"))
    if isinstance(length_s, int | float) and isinstance(dt_s, int | float) and isinstance(decimation, int | float):
        step_s = dt_s * decimation
        yield (
            "episode",
            f"{length_s:g} s, {length_s / step_s:.0f} steps of {step_s * 1000:.3g} ms" if step_s > 0 else "",
        )
    for group in filter(None, _terms(card, "observations").split(", ")):
        yield f"observation terms of {group!r}", _terms(card, f"observations.{group}")
    yield "action terms", _terms(card, "actions")
    weights = {path.split(".")[1]: value for path, value in values.items() if _is_weight(path)}
    yield "reward terms", ", ".join(f"{name} {cell(value)}" for name, value in weights.items())
    for section in ("terminations", "events", "commands", "curriculum"):
        yield section, _terms(card, section)
    yield "success", card.success
    for group, space in card.observations.items():
        yield f"observation {group!r}", str(space)
    yield "action", str(card.actions or "")


def _terms(card: TaskCard, section: str) -> str:
    """Return the terms of a section of a manager-based task's config, such as ``"observations.policy"``."""
    rests = (path.removeprefix(f"{section}.") for path in card.fields if path.startswith(f"{section}."))
    return ", ".join(dict.fromkeys(rest.partition(".")[0] for rest in rests if "." in rest))


def _is_weight(path: str) -> bool:
    return path.startswith("rewards.") and path.endswith(".weight") and path.count(".") == 2


def _contents(card: TaskCard) -> Iterator[tuple[str, str]]:
    for name, camera in card.cameras.items():
        yield f"camera {name}", f"{', '.join(camera.data_types)}, {camera.width} x {camera.height}"
    for name, agent in card.agents.items():
        yield f"library {name}{' (default)' * (name == card.default_library)}", _agent(agent)
    yield "physics=", ", ".join(card.presets.physics)
    yield "renderer=", ", ".join(card.presets.renderer)
    yield "presets=", ", ".join(card.presets.presets)


def _agent(agent: AgentCard) -> str:
    if agent.missing:
        return f"needs {', '.join(agent.missing)} in the worker's interpreter"
    return f"does not load: {agent.error}" if agent.error else agent.source


def _needs(card: TaskCard) -> Iterator[tuple[str, str]]:
    missing = {path: asset for path, asset in card.assets.items() if asset.exists is False}
    count = len(card.assets)
    yield "assets", f"{count} {'file' if count == 1 else 'files'} of {card.asset_root.path}" if count else ""
    for path, asset in missing.items():
        yield "missing asset", f"{path}. {asset.fix}"
    for place, asset in card.own_assets.items():
        if asset.fix:
            yield "missing asset", f"{asset.path} ({place}): {asset.fault or 'there is no such file'}. {asset.fix}"
    yield "needs Isaac Sim for", ", ".join(card.isaac_sim)
    yield "needs", ", ".join(card.missing)
    yield "Isaac Lab", card.versions.get("isaaclab", "")
    yield "warning", card.warning
