"""The task card: the worker's description of a task, for the kernel, which cannot import the task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from rlnb.contracts.libraries import Library, Space
from rlnb.display.table import cell, shortened, table
from rlnb.spec import Json, Task

OWN_TASKS = (
    'Tasks of your own package need imports="my_project.tasks" (in a shell --import my_project.tasks), or its entry '
    'point in isaaclab.tasks. An env config needs neither: rlnb.task("my_project.module:EnvCfg").'
)
"""How to use tasks that Isaac Lab does not know."""
CARD_SCHEMA = 18
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
    term_sizes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Shape of each observation and action term, such as ``"3 x 64 x 64"``, by ``"observations.<group>"`` or
    ``"actions"`` and its name. Only an env knows them: they are empty until the first preview or deep check."""
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
    registered = f"Isaac Lab's registry, as {card.gym_id}" if card.gym_id else ""
    own = "your own code" if card.gym_id.startswith("rlnb-") else ""  # rlnb makes an id for a cell, a file or a class
    yield "defined in", task.source or own or registered
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
    if card.workflow == "manager-based" and not card.term_sizes:
        yield "sizes of terms", "known after the first preview, or rlnb.check(task, deep=True)"
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
    names = dict.fromkeys(rest.partition(".")[0] for rest in rests if "." in rest)
    sizes = card.term_sizes.get(section, {})
    return ", ".join(f"{name} {sizes[name]}" if name in sizes else name for name in names)


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
