"""Agent configs as the user passes them: by name, by dotted path, nested, or in a YAML file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from rlnb.configs.card import GENERIC, AgentCard
from rlnb.contracts.libraries import Library
from rlnb.errors import RlnbError
from rlnb.spec import Json, Manifest
from rlnb.storage import files, yaml_file
from rlnb.storage.files import builtin

DUMPED = 0.8
"""Share of a config's values from which on a file is the config of a whole run."""
SUFFIX = "_cfg_entry_point"
"""End of the names by which a task's registration refers to its configs."""
AgentValues: TypeAlias = "Mapping[str, Json] | str | Path"
"""Values of an agent config by dotted path or nested, a YAML file of them, or the name of an agent config."""
AgentArgument: TypeAlias = "AgentValues | Sequence[AgentValues] | AgentChoice | None"
"""The argument ``agent`` of :func:`rlnb.train`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentChoice:
    """An agent config, and the values to set in it."""

    name: str | None = None
    """Name of the config: an entry point of the task, or ``"generic"``; None for the library's usual one."""
    values: Mapping[str, Json] = field(default_factory=dict)
    """Values by dotted path."""
    files: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Name of the file with each value, by path, for those that a file has; empty if another part replaces it."""

    @property
    def argument(self) -> Json:
        """The argument ``agent`` that makes this choice; None if it chooses and sets nothing."""
        parts: list[Json] = [part for part in (self.name, dict(self.values)) if part]
        return parts if len(parts) > 1 else parts[0] if parts else None


def horizon_of(values: Mapping[str, Json], library: Library) -> int | None:
    """Return the env steps per iteration in the values of an agent config; None if it does not have them.

    Args:
        values: Values by dotted path. Later ones replace earlier ones.
        library: Library of the config.
    """
    for path, number in {path.removeprefix("+"): number for path, number in values.items()}.items():
        if path.rsplit(".", 1)[-1] == library.horizon_key and isinstance(number, int | float):
            return int(number)
    return None


def agent_choice(agent: AgentArgument) -> AgentChoice:
    """Return the agent config that an argument ``agent`` chooses, and the values that it sets.

    Args:
        agent: Values by dotted path (``{"algorithm.learning_rate": 3e-4}``), nested values, the path of a YAML file
            with nested values (YAML 1.2, so that ``5e-4`` is a number), or the name of an agent config. A ``+`` before
            the path of a value adds a value that the config lacks: ``{"+normalize_input": True}``, ``{"agent":
            {"+kl_threshold": 0.01}}``. In a list of several of these, later values replace earlier ones.

    Raises:
        RlnbError: A file cannot be read, a part is none of the above, a mapping has a value twice, or the list has two
            names.
    """
    if isinstance(agent, AgentChoice):
        return agent  # with the files of its values
    parts = _parts(agent)
    names = [part for part in parts if is_name(part)]
    if len(names) > 1:
        raise RlnbError(f"agent has the names {', '.join(map(repr, names))}. Use one of them.")
    values: dict[str, Json] = {}
    sources: dict[str, str] = {}
    for part in parts:
        if not is_name(part):
            own = _values(part)
            for path in own:
                for twin in _twins(path):
                    values.pop(twin, None)
            values |= own
            file = Path(part).name if isinstance(part, str | Path) else ""
            sources |= dict.fromkeys(own if file else sources.keys() & own.keys(), file)
    return AgentChoice(name=str(names[0]) if names else None, values=values, files=sources)


def without_ruled(
    choice: AgentChoice, library: Library, agent: AgentCard, arguments: Mapping[str, object]
) -> tuple[AgentChoice, tuple[str, ...]]:
    """Return a choice without the values that rlnb sets itself, if they come from the dumped config of a run.

    Every run writes its whole agent config, with its seed and its number of iterations, which say nothing about the
    next run. In a file of a few values, they are requests. Values that the run has added to its config are added again.

    Args:
        choice: The choice.
        library: Library of the config.
        agent: The library's config for the task.
        arguments: The arguments of :func:`rlnb.train` by name; a value that None leaves open is kept.

    Returns:
        The choice, and the paths that were left out.
    """
    known = sum(path in choice.files for path in agent.fields)
    if known < DUMPED * len(agent.fields) or not agent.fields:
        return choice, ()
    rulings = {path: _ruling(path.removeprefix("+"), library) for path in choice.files}
    ruled = tuple(
        path
        for path, argument in rulings.items()
        if choice.files[path] and argument is not None and (not argument or arguments.get(argument) is not None)
    )
    added = {path for path in choice.files if path not in agent.fields and path.rpartition(".")[0] in agent.takes_more}
    values = {
        f"+{path}" if path in added else path: value for path, value in choice.values.items() if path not in ruled
    }
    return dataclasses.replace(choice, values=values), ruled


def _ruling(path: str, library: Library) -> str | None:
    """Return the argument that decides a value, or the group that it is in; see :attr:`Library.overruled`."""
    groups = (path, *(path.rsplit(".", length)[0] for length in range(1, path.count(".") + 1)))
    return next((library.overruled[group] for group in groups if group in library.overruled), None)


def choice_of(manifest: Manifest) -> AgentChoice:
    """Return the agent config of a run, and the values that the user set in it."""
    return AgentChoice(name=manifest.agent_name, values=manifest.agent)


def is_name(agent: object) -> bool:
    """Return whether a part of ``agent=`` is the name of an agent config, and not a file or values."""
    return isinstance(agent, str) and (agent == GENERIC or agent.endswith(SUFFIX))


def libraries_of(name: str, libraries: Mapping[str, Library]) -> tuple[str, ...]:
    """Return the libraries that a named agent config is for; empty if none is.

    The names in a registration begin like the library's own: ``rsl_rl_with_symmetry_cfg_entry_point`` like
    ``rsl_rl_cfg_entry_point``. If several libraries match, such as skrl and skrl_mappo, the longest match counts.

    Args:
        name: Name of the agent config.
        libraries: The installed libraries by name.
    """
    prefixes = {
        library.name: library.agent_key.removesuffix(SUFFIX)
        for library in libraries.values()
        if library.agent_key.endswith(SUFFIX)
    }
    matches = {library: prefix for library, prefix in prefixes.items() if name.startswith(f"{prefix}_")}
    longest = max(map(len, matches.values()), default=0)
    return tuple(sorted(library for library, prefix in matches.items() if len(prefix) == longest))


def _parts(agent: AgentArgument) -> list[AgentValues]:
    """Return the names, files and mappings of an argument ``agent`` in order."""
    if isinstance(agent, AgentChoice):
        return [*([agent.name] if agent.name else []), agent.values]
    if isinstance(agent, list | tuple):
        return [part for item in agent for part in _parts(item)]
    return [] if agent is None else [agent]  # type: ignore[list-item]


def _values(agent: AgentValues) -> dict[str, Json]:
    """Return the values of one part by dotted path."""
    if isinstance(agent, str) and not Path(agent).suffix and not files.there(Path(agent)):
        raise RlnbError(
            f"agent={agent!r} is not a file or the name of an agent config. Use a name that ends with {SUFFIX!r}; "
            'rlnb.task("<name>").agent("<library>") lists them.'
        )
    if isinstance(agent, (str, Path)):
        agent = yaml_file.read_agent(Path(agent))
    if not isinstance(agent, Mapping):
        raise RlnbError(
            f"agent={agent!r} is not a mapping, the path of a YAML file or the name of an agent config. "
            "Use {'algorithm.learning_rate': 3e-4}."
        )
    values: dict[str, Json] = {}
    try:
        rows = _flat(agent)
    except RecursionError:
        raise RlnbError("agent refers to itself or is nested too deeply. Use dotted paths.") from None
    for path, value in rows:
        marked = _marked(path)
        if twins := _twins(marked) & set(values):
            before = values[twins.pop()]
            raise RlnbError(f"The agent config value {marked!r} is given twice, as {before!r} and as {value!r}.")
        values[marked] = value
    return values


def _twins(path: str) -> set[str]:
    """Return the ways to write a path, with ``+`` and without."""
    return {path.removeprefix("+"), f"+{path.removeprefix('+')}"}


def _marked(path: str) -> str:
    """Return a path with its ``+``, if any, at the beginning."""
    parts = path.split(".")
    names = [part.removeprefix("+") for part in parts]
    return ("+" if names != parts else "") + ".".join(names)


def _flat(values: Mapping[str, Json], above: str = "") -> list[tuple[str, Json]]:
    rows: list[tuple[str, Json]] = []
    for name, value in values.items():
        path = f"{above}{name}"
        rows += _flat(value, f"{path}.") if isinstance(value, Mapping) else [(path, builtin(value))]
    return rows
