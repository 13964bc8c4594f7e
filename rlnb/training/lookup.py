"""The library, the task card and the agent config of a training, on which all its checks depend."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from rlnb.configs import tree
from rlnb.configs.card import DEFAULT_LIBRARY, AgentCard, TaskCard
from rlnb.contracts.libraries import Library
from rlnb.errors import Problem, RlnbError, WorkerError, unknown, whole_number
from rlnb.hooks import plugins
from rlnb.hooks.plugin import INTERRUPTS
from rlnb.launch.command import interpreter
from rlnb.machine import packages
from rlnb.settings import Root
from rlnb.spec import Manifest, Task
from rlnb.tasks.agent import agent_of
from rlnb.tasks.card_cache import card_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Lookup:
    """The library, the task card and the agent config of a training, as far as they exist."""

    name: str
    """Name of the library, also if it is not installed."""
    library: Library | None = None
    """The library; None for a script and for a library that is not installed."""
    card: TaskCard | None = None
    """Task card; None for a script, for a library without a simulator, and for a task that does not resolve."""
    agent: AgentCard | None = None
    """Agent config of the training, for a library without a simulator its own; None if the task has no such config."""
    problems: tuple[Problem, ...] = ()
    """A problem for a library or a task that does not exist."""


def look_up(
    task: Task,
    name: str | None,
    root: Root,
    python: str | None,
    asset_root: str | None,
    *,
    agent_name: str | None = None,
) -> Lookup:
    """Return the library, the task card and the agent config of a training.

    Args:
        task: The task.
        name: Name of the library; None for the default library of the task's registration, or RSL-RL.
        root: Folder of runs, which has the cached cards.
        python: Command of the worker's interpreter; None is this one.
        asset_root: Folder or URL of robot assets; None searches for one.
        agent_name: Name of the agent config, as in :attr:`rlnb.plugin.Manifest.agent_name`.
    """
    library = plugins.libraries().get(name) if name else None
    if library is not None and not library.simulator:
        of_names = _without_simulator(task, library, agent_name)
        return Lookup(name=library.name, library=library, agent=own_agent_card(library, python), problems=of_names)
    problems: list[Problem] = []
    if name and library is None:
        error = unknown("RL library", name, plugins.libraries())
        problems.append(Problem(what=str(error), fix="`rlnb libraries` lists the installed libraries."))
        if task.id in _tasks_without_simulator():
            return Lookup(name=name, problems=tuple(problems))
    try:
        card = card_of(root, task, python, asset_root)
    except RlnbError as exc:
        problems.append(_problem_of(exc, task))
        return Lookup(name=name or DEFAULT_LIBRARY, library=library, problems=tuple(problems))
    name = name or card.default_library
    agent = card.agents.get(name) if agent_name is None else agent_of(card, name, agent_name)
    return Lookup(name=name, library=plugins.libraries().get(name), card=card, agent=agent, problems=tuple(problems))


def _without_simulator(task: Task, library: Library, agent_name: str | None) -> tuple[Problem, ...]:
    """Return a problem for a task and for an agent config that a library without a simulator does not have."""
    tasks, problems = _tasks_without_simulator(), []
    if task.id not in tasks:
        error = unknown("task", task.id, tasks, has=f"{library.name} trains without a simulator, on")
        problems.append(Problem(what=str(error)))
    if agent_name:
        what = f"agent={agent_name!r} is not an agent config of {library.name}, which trains without Isaac Lab."
        problems.append(Problem(what=what, fix="Leave the name out. agent={...} sets values."))
    return tuple(problems)


def _problem_of(exc: RlnbError, task: Task) -> Problem:
    """Return the problem of a task that does not resolve: for an error in its own code the line, not the traceback."""
    if isinstance(exc, WorkerError) and exc.detail:
        return Problem(what=str(exc).partition("\n")[0], fix=exc.fix or _trainable(task))
    return Problem(what=str(exc), fix=_trainable(task))


def _trainable(task: Task) -> str:
    """Return the fix for a task that does not resolve, if a library trains it without a simulator."""
    libraries = [name for name, library in plugins.libraries().items() if not library.simulator]
    trains = libraries and task.id in _tasks_without_simulator()
    return f"Without a simulator: library={libraries[0]!r}." if trains else ""


def _tasks_without_simulator() -> set[str]:
    """Return the tasks that a plugin trains without Isaac Lab.

    A plugin's entry for an Isaac Lab task has a success function; one for its own task has none.
    """
    return {name for name, task in plugins.tasks().items() if task.success is None}


# -- libraries without a simulator -----------------------------------------------------------------------------------


REQUIREMENTS_TIMEOUT_S = 20.0
"""Seconds in which another interpreter names the requirements that it does not meet."""


def own_agent_card(library: Library, python: str | None) -> AgentCard:
    """Return a description of the library's own agent config, which has no values if the library names none.

    Args:
        library: The library.
        python: Command of the worker's interpreter; None is this one.
    """
    card = AgentCard(missing=unmet_requirements(library, python))
    if not library.default_agent:
        return card
    card = AgentCard(source=f"the library's own, {library.default_agent}", generic=True, missing=card.missing)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            agent_cfg = plugins.agent_config(library.default_agent)
    except INTERRUPTS:
        raise
    except BaseException as exc:  # a plugin may raise anything
        return AgentCard(source=card.source, missing=card.missing, error=f"{type(exc).__name__}: {exc}"[:500])
    fields, groups = tree.fields(agent_cfg), tuple(sorted(tree.dicts(agent_cfg)))
    return AgentCard(source=card.source, generic=True, missing=card.missing, fields=fields, takes_more=groups)


def unmet_requirements(library: Library, python: str | None) -> tuple[str, ...]:
    """Return the requirements of a library that the worker's interpreter does not meet; empty if that is not known.

    An interpreter that only another machine has is not known.
    """
    if python is None or not library.requires:
        return packages.unmet(library.requires)
    argv = interpreter(python)
    if shutil.which(argv[0]) is None:
        return ()
    code = "import json, sys; from rlnb.machine.packages import unmet; print(json.dumps(unmet(sys.argv[1:])))"
    try:
        done = subprocess.run(
            [*argv, "-P", "-c", code, *library.requires],
            capture_output=True,
            text=True,
            timeout=REQUIREMENTS_TIMEOUT_S,
            check=True,
        )
        names: list[str] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):  # the worker itself reports such errors
        return ()
    return tuple(names)


def settings_without_meaning(manifest: Manifest, library: Library) -> Iterator[Problem]:
    """Find settings of envs and of Isaac Lab, which the library does not have."""
    task = manifest.task
    settings = {
        "num_envs": task.num_envs if not whole_number("num_envs", task.num_envs) else None,  # else it is a problem
        "overrides": dict(task.overrides),
        "presets": list(task.presets),
        "physics": task.physics,
        "renderer": task.renderer,
        "launcher_args": dict(task.launcher_args),
        "imports": list(task.imports),
        "success": task.success,
        "film_every": manifest.film_every,
        "deterministic": manifest.deterministic is True or None,
    }
    values = [f"{name}={value!r}" for name, value in settings.items() if value not in (None, {}, [])]
    if values:
        yield Problem(
            what=f"{library.name} trains without a simulator, so it has no use for {' and '.join(values)}.",
            fix=f"Leave {'it' if len(values) == 1 else 'them'} out. agent={{...}} sets values of {library.name}.",
        )
