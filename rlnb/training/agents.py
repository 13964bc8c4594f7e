"""Find the problems of a training's agent config: the choice of the config, and the values to set in it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping

from rlnb import plugins
from rlnb.errors import Problem, did_you_mean
from rlnb.simulation.agent import names_for
from rlnb.spec import MULTI_AGENT, Json, Library, Manifest
from rlnb.tasks import overrides
from rlnb.tasks.agent_config import libraries_of
from rlnb.tasks.card import GENERIC, AgentCard, ConfigField, Fields, TaskCard

_NO_FIELD = ConfigField(type="any")


def check(manifest: Manifest, library: Library, card: TaskCard) -> Iterator[Problem]:
    """Find the problems of a library's agent config for a task, and of the values to set in it."""
    agent = card.agent(library.name, manifest.agent_name)
    if library.multi_agent and card.workflow != MULTI_AGENT:
        what = f"{library.name} trains tasks with several agents, but {manifest.task.id} has one."
        yield Problem(what=what, fix=f"Libraries for this task: {', '.join(sorted(card.agents)) or 'none'}.")
    elif manifest.agent_name is not None and (agent is None or not _fits(manifest.agent_name, library)):
        yield _wrong_name(manifest.agent_name, library, card)
    elif agent is None:
        libraries = ", ".join(sorted(card.agents)) or "none"
        yield Problem(what=f"{manifest.task.id} has no agent config for {library.name}; it has: {libraries}.")
    else:
        if manifest.agent_name is None and card.foreign(library.name):
            yield _generic_beside_others(library, card)
        yield from _check_config(manifest, library, agent)


def _fits(name: str, library: Library) -> bool:
    return name == GENERIC or library.name in libraries_of(name, plugins.libraries())


def _wrong_name(name: str, library: Library, card: TaskCard) -> Problem:
    """Return the problem of the name of an agent config that the task lacks, or that is for another library."""
    owners = libraries_of(name, plugins.libraries()) if name in card.registered_agents else ()
    if owners and library.name not in owners:
        what = f"agent={name!r} is not a config for {library.name}, but for {' and '.join(owners)}."
        return Problem(what=what, fix=f"library={owners[0]!r}, agent={name!r}")
    names = names_for(card, library.name)
    what = f"{card.task} has no agent config named {name!r} for {library.name}. It has: {', '.join(names) or 'none'}."
    return Problem(what=what + did_you_mean(name, names), fix="Use one of these, or leave the name out.")


def _generic_beside_others(library: Library, card: TaskCard) -> Problem:
    """Return the problem of a generic config for a task that brings configs of other libraries only."""
    what = (
        f"{card.task} brings no agent config for {library.name}, only {', '.join(card.registered_agents)}. "
        "rlnb's generic config is not made for this task."
    )
    names = [name for name in card.registered_agents if libraries_of(name, plugins.libraries())]
    choices = [f"library={name!r}" for name in card.own_libraries()]
    if not choices and names:
        choices = [f"library={libraries_of(names[0], plugins.libraries())[0]!r}, agent={names[0]!r}"]
    return Problem(what=what, fix=" or ".join([*choices, 'agent="generic" to train with the generic config']))


def _check_config(manifest: Manifest, library: Library, agent: AgentCard) -> Iterator[Problem]:
    """Find a config that does not load, packages that the worker lacks, and values that the config cannot have."""
    if agent.missing:
        python = manifest.python or sys.executable
        packages = " ".join(shlex.quote(requirement) for requirement in library.requires)
        yield Problem(
            what=f"{library.name} needs {', '.join(agent.missing)} in the worker's interpreter {python}.",
            fix=f"{python} -m pip install {packages}",
        )
    if agent.error:
        yield Problem(what=f"the agent config of {library.name} ({agent.origin}) does not load: {agent.error}")
        return
    subject = f"agent config of {library.name}"
    yield from overrides.check_values(
        manifest.agent, agent.fields, subject, takes_more=agent.takes_more, former_names=library.former_names
    )
    yield from check_overruled(manifest, manifest.agent, agent.fields, library.overruled, subject)


def check_overruled(
    manifest: Manifest, values: Mapping[str, Json], fields: Fields, overruled: Mapping[str, str], subject: str
) -> Iterator[Problem]:
    """Find config values that rlnb, or an argument of ``rlnb.train``, would silently overrule.

    Args:
        manifest: The run.
        values: Values that the user passed, by dotted path.
        fields: Values of the config, from a task card.
        overruled: Paths to arguments, as in :attr:`rlnb.Library.overruled`.
        subject: Name of the config, for the problems.
    """
    arguments = {
        "seed": manifest.seed,
        "max_iterations": manifest.max_iterations,
        "num_envs": manifest.task.num_envs,
        "device": manifest.resources.device,
    }
    for name, value in values.items():
        path = name.removeprefix("+")
        argument = next((overruled[key] for key in overruled if matches(path, key)), None)
        exists = path in fields or name != path  # a path with a + need not exist
        # A value equal to the config's default is not a request: it appears in every dumped config file.
        if argument is None or not exists or value == fields.get(path, _NO_FIELD).value:
            continue
        if not argument:
            yield Problem(what=f"{subject}: {path} is {value!r}, but rlnb sets it itself.", fix="Leave it out.")
            continue
        ruling = arguments[argument]
        if ruling is not None and isinstance(value, type(ruling)) and value != ruling:
            yield Problem(
                what=f"{subject}: {path} is {value!r}, but rlnb.train has {argument}={ruling!r}.",
                fix=f"Leave it out here, and pass {argument}= to rlnb.train.",
            )


def matches(path: str, pattern: str) -> bool:
    """Return whether a path of :attr:`rlnb.Library.overruled` stands for a path of an agent config."""
    return path.startswith(pattern[:-1]) if pattern.endswith(".*") else path == pattern
