"""Find everything that would make a training fail, before anything is written."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from rlnb.configs.agent import horizon_of, libraries_of
from rlnb.configs.card import GENERIC, MULTI_AGENT, AgentCard, ConfigField, Fields, TaskCard
from rlnb.configs.checks import check_agent, check_overrides, runtime_problems
from rlnb.contracts.launchers import Launcher
from rlnb.contracts.libraries import Library, Space, Spaces
from rlnb.diagnosis.rules import Rule
from rlnb.errors import Problem, RlnbError, did_you_mean, linux_only, whole_number
from rlnb.hooks import plugins
from rlnb.hooks.plugin import HookError
from rlnb.hooks.registry import call
from rlnb.launch.detached import DetachedLauncher
from rlnb.launch.local import LocalLauncher
from rlnb.machine.packages import install_line
from rlnb.records import notes
from rlnb.settings import Root
from rlnb.simulation import placement
from rlnb.spec import Json, Manifest
from rlnb.storage import access, files
from rlnb.storage.serial import to_json
from rlnb.tasks.agent import names_for
from rlnb.training.arguments import TRAIN_ARGUMENTS, recorded_arguments
from rlnb.training.lookup import Lookup, settings_without_meaning
from rlnb.version import __version__

MOST_SEED = 2**32 - 1
"""The largest seed that numpy accepts."""
OVERRULED = {"scene.num_envs": "num_envs", "seed": "seed", "sim.device": "device"}
"""Env config paths that rlnb sets from an argument of ``rlnb.train``, to the name of that argument."""
_NO_FIELD = ConfigField(type="any")
LEAST_FREE_BYTES = 50 * 2**20
"""Free disk space that a run needs to start, bytes."""


def find_problems(manifest: Manifest, launcher: Launcher, root: Root, lookup: Lookup) -> list[Problem]:
    """Return every problem that would make a run fail. Nothing is written.

    Args:
        manifest: The run.
        launcher: Launcher of the run.
        root: Folder for the run.
        lookup: Library and task card of the run.
    """
    library, card = lookup.library, lookup.card
    problems = [*_check_root(root.path), *lookup.problems]
    if manifest.resources.nproc_per_node != 1 or manifest.resources.nodes != 1 or (library and library.roles):
        problems += check_ranks(manifest, library, card)
    if manifest.max_frames is not None:
        problems += check_frames(manifest, library, card, lookup.agent)
    if card is not None:
        problems += _check_training(manifest, library, card, lookup.agent)
        # The nodes of a cluster, or their image, may have Isaac Sim.
        if isinstance(launcher, LocalLauncher) and (card.isaac_sim or card.missing or card.requires):
            problems += runtime_problems(manifest.task, card, manifest.python)
    elif library is not None and lookup.agent is not None:
        problems += [*settings_without_meaning(manifest, library), *_check_config(manifest, library, lookup.agent)]
    problems = [*_check_arguments(manifest), *problems, *problems_of_fit(manifest, lookup)]
    if card is not None:
        problems += check_overrides(manifest.task, card)
    if card is not None or (library is not None and library.default_agent):
        problems += check_agent(manifest, library, lookup.agent)
    if sys.platform != "linux" and isinstance(launcher, DetachedLauncher):
        problems += linux_only("A training run on this machine")
    else:
        problems += launcher.check(manifest)
    for answer in call("rlnb_check", manifest=manifest):
        problems += [answer.problem] if answer.error else answer.value
    return problems


def _check_arguments(manifest: Manifest) -> Iterator[Problem]:
    if isinstance(manifest.seed, bool) or not isinstance(manifest.seed, int) or not 0 <= manifest.seed <= MOST_SEED:
        yield Problem(what=f"seed={manifest.seed!r} is not a whole number from 0 to {MOST_SEED}.", fix="seed=42")
    if not isinstance(manifest.deterministic, bool):
        yield Problem(what=f"deterministic={manifest.deterministic!r} is not True or False.", fix="deterministic=True")
    if not all(isinstance(tag, str) and tag.strip() and _is_unicode(tag) for tag in manifest.tags):
        yield Problem(what=f"tags={list(manifest.tags)!r} is not a list of non-empty strings.", fix='tags=["baseline"]')
    if problem := notes.name_problem(manifest.name):
        yield Problem(what=f"name={manifest.name!r} {problem}", fix='name="small steps"')
    for rule in manifest.alerts:
        yield from Rule(rule).problems()
    for path, setting in manifest.agent.items():
        try:
            to_json(setting)
        except RlnbError as exc:
            yield Problem(what=f"agent value {path!r}: {exc}")
    device = manifest.resources.device
    if device not in ("auto", "cpu", "cuda") and not (device.startswith("cuda:") and device[5:].isdigit()):
        yield Problem(what=f"device={device!r} is not one of 'auto', 'cpu', 'cuda', 'cuda:N'.", fix='device="auto"')
    for name, value in recorded_arguments(manifest).items():
        if value is not None and (example := TRAIN_ARGUMENTS[name].example) is not None:
            yield from whole_number(name, value, example=example)


def _is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates, which UTF-8 cannot represent."""
    return text.isascii() or not any(0xD800 <= ord(character) < 0xE000 for character in text)


def _check_root(root: Path) -> Iterator[Problem]:
    if not _is_unicode(str(root)):
        yield Problem(what=f"the run folder {str(root)!a} is not Unicode.", fix=files.UTF8)
        return
    existing = next(folder for folder in (root, *root.parents) if os.path.exists(folder))
    fix = "Set rlnb.options.root, or RLNB_ROOT, to a folder of yours."
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield Problem(what=f"the run folder {root} cannot be written by this user.", fix=fix)
    elif (free := shutil.disk_usage(existing).free) < LEAST_FREE_BYTES:
        yield Problem(what=f"the disk of {root} is full: {free / 2**20:.0f} MiB free.", fix=f"Make room. {fix}")
    else:
        yield from access.sharing_problems(root)


def _check_training(
    manifest: Manifest, library: Library | None, card: TaskCard, agent: AgentCard | None
) -> Iterator[Problem]:
    """Find the problems of a task's overrides and, if the library exists, of the training."""
    values, subject = manifest.task.overrides, f"override of {manifest.task.id}"
    yield from _check_overruled(manifest, values, card.fields, OVERRULED, subject)
    if library is not None:
        yield from _check_agent(manifest, library, card, agent)
        yield from _check_version(manifest, card)


def _worker_python(manifest: Manifest) -> str:
    """Return the interpreter that has made the task card."""
    simulator = placement.chosen()
    default = sys.executable if simulator is None else getattr(simulator, "python", None) or "python"
    return manifest.python or str(default)


def _check_version(manifest: Manifest, card: TaskCard) -> Iterator[Problem]:
    """Find a worker with another version of rlnb."""
    theirs = card.versions.get("rlnb", "none")
    if theirs != __version__:
        python = _worker_python(manifest)
        yield Problem(
            what=f"this process has rlnb {__version__}, but the worker's interpreter {python} has rlnb {theirs}.",
            fix=install_line("rlnb", python=python, isaacsim="isaacsim" in card.versions),
        )


def _check_agent(manifest: Manifest, library: Library, card: TaskCard, agent: AgentCard | None) -> Iterator[Problem]:
    """Find the problems of the agent config of a library for a task, and values that would be overruled."""
    if library.multi_agent and card.workflow != MULTI_AGENT:
        what = f"{library.name} trains tasks with several agents, but {manifest.task.id} has one."
        yield Problem(what=what, fix=_other_libraries(card))
    elif manifest.agent_name is not None and (agent is None or not _fits(manifest.agent_name, library)):
        yield _wrong_name(manifest.agent_name, library, card)
    elif agent is None:
        libraries = ", ".join(sorted(card.agents)) or "none"
        what = f"{manifest.task.id} has no agent config for {library.name}. It has: {libraries}."
        yield Problem(what=what, fix=_other_libraries(card))
    else:
        if manifest.agent_name is None and agent.needs_choice:
            yield _generic_beside_others(library, card)
        yield from _check_config(manifest, library, agent)


def _other_libraries(card: TaskCard) -> str:
    """Return the fix that names the libraries of a task; empty if there are none."""
    libraries = plugins.libraries()
    names = {agent.trained_by(libraries[name]) for name, agent in card.agents.items() if name in libraries}
    return f"Use {' or '.join(f'library={name!r}' for name in sorted(names))}." if names else ""


def _fits(name: str, library: Library) -> bool:
    return name == GENERIC or library.name in libraries_of(name, plugins.libraries())


def _wrong_name(name: str, library: Library, card: TaskCard) -> Problem:
    """Return the problem of the name of an agent config that the task lacks, or that is for another library."""
    owners = libraries_of(name, plugins.libraries()) if name in card.registered_agents else ()
    if owners and library.name not in owners:
        what = f"agent={name!r} is not a config for {library.name}, but for {' and '.join(owners)}."
        return Problem(what=what, fix=f"Use library={owners[0]!r}, agent={name!r}.")
    names = names_for(card, library.name)
    what = f"{card.task} has no agent config named {name!r} for {library.name}. It has: {', '.join(names) or 'none'}."
    fix = "Use one of these, or leave the name out." if names else "Leave the name out."
    return Problem(what=what + did_you_mean(name, names), fix=fix)


def _generic_beside_others(library: Library, card: TaskCard) -> Problem:
    """Return the problem of a generic config for a task that brings configs of other libraries only."""
    what = (
        f"{card.task} brings no agent config for {library.name}, only {', '.join(card.registered_agents)}. "
        "The generic config of its plugin is not made for this task."
    )
    names = [name for name in card.registered_agents if libraries_of(name, plugins.libraries())]
    choices = [f"library={name!r}" for name in _own_libraries(card)]
    if not choices and names:
        choices = [f"library={libraries_of(names[0], plugins.libraries())[0]!r}, agent={names[0]!r}"]
    return Problem(what=what, fix=f"Use {' or '.join([*choices, 'agent=' + repr(GENERIC)])}.")


def _own_libraries(card: TaskCard) -> list[str]:
    """Return the libraries for which the task itself brings an agent config, sorted."""
    return sorted(name for name, agent in card.agents.items() if not agent.generic)


def _check_config(manifest: Manifest, library: Library, agent: AgentCard) -> Iterator[Problem]:
    """Find a config that does not load, packages that the worker lacks, and values that would be overruled."""
    if agent.missing:
        python = _worker_python(manifest)
        packages = " ".join(shlex.quote(requirement) for requirement in library.requires)
        yield Problem(
            what=f"{library.name} needs {', '.join(agent.missing)} in the worker's interpreter {python}.",
            fix=f"{python} -m pip install {packages}",
        )
    if agent.error:
        yield Problem(what=f"the agent config of {library.name} ({agent.source}) does not load: {agent.error}")
        return
    if (other := agent.trained_by(library)) != library.name:
        what = f"{agent.source} is a config that {library.name} does not train."
        yield Problem(what=what, fix=f"Use library={other!r}.")
    subject = f"agent config of {library.name}"
    yield from _check_overruled(manifest, manifest.agent, agent.fields, library.overruled, subject)


def _check_overruled(
    manifest: Manifest, values: Mapping[str, Json], fields: Fields, overruled: Mapping[str, str], subject: str
) -> Iterator[Problem]:
    """Find config values that rlnb, or an argument of ``rlnb.train``, would silently overrule.

    Args:
        manifest: The run.
        values: Values that the user passed, by dotted path.
        fields: Values of the config, from a task card.
        overruled: Paths to arguments, as in :attr:`rlnb.plugin.Library.overruled`.
        subject: Name of the config, for the problems.
    """
    arguments = recorded_arguments(manifest)
    for name, value in values.items():
        path = name.removeprefix("+")
        argument = overruled.get(path)
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


# -- frames ----------------------------------------------------------------------------------------------------------


INSTEAD = "Use max_iterations."
"""Fix for a training whose frames cannot be counted."""


def check_frames(
    manifest: Manifest, library: Library | None, card: TaskCard | None, agent: AgentCard | None
) -> Iterator[Problem]:
    """Find reasons why a training cannot end after ``max_frames``.

    Args:
        manifest: The run.
        library: Library of the run; None if it does not exist.
        card: Task card; None without a simulator.
        agent: Agent config of the run; None if there is none.
    """
    if manifest.max_frames is None or library is None:
        return
    if manifest.max_iterations is not None:
        what = f"max_iterations={manifest.max_iterations!r} and max_frames={manifest.max_frames!r} exclude each other."
        yield Problem(what=what, fix="Use one of them.")
    if not library.simulator:
        yield Problem(what=f"{library.name} trains without a simulator, so it has no frames to count.", fix=INSTEAD)
    elif card is not None and agent is not None and not agent.error:
        defaults = {path: field.value for path, field in agent.fields.items()}
        if horizon_of({**defaults, **manifest.agent}, library) is None:
            yield Problem(what=_unknown(library), fix=INSTEAD)
    for name, value in manifest.agent.items():
        path = name.removeprefix("+")
        is_default = agent is not None and path in agent.fields and agent.fields[path].value == value
        if library.overruled.get(path) == "max_iterations" and not is_default:
            what = f"agent config of {library.name}: {name} is {value!r}, but rlnb.train has max_frames."
            yield Problem(what=what, fix="Leave it out here.")


def _unknown(library: Library) -> str:
    return f"the agent config of {library.name} has no {library.horizon_key!r}, so its frames cannot be counted."


# -- ranks -----------------------------------------------------------------------------------------------------------


MOST_RANKS = 16
"""Largest number of ranks on each node that a fix proposes."""


def check_ranks(manifest: Manifest, library: Library | None, card: TaskCard | None) -> Iterator[Problem]:
    """Find a number of ranks that does not fit the library or its roles, and envs that they cannot share equally.

    Args:
        manifest: The run.
        library: Library of the run; None if it does not exist.
        card: Task card; None without a simulator.
    """
    ranks, nodes = manifest.resources.nproc_per_node, manifest.resources.nodes
    if library is None or not isinstance(ranks, int) or ranks * nodes < 1:
        return
    if ranks * nodes > 1 and not library.distributed:
        fix = "nproc_per_node=1" if nodes == 1 else "Use a launcher of one node, and nproc_per_node=1."
        yield Problem(what=f"{library.name} trains in one process, not in {ranks * nodes}.", fix=fix)
        return
    try:
        sharing = _ranks_with_env(manifest, library, ranks)
    except HookError as exc:
        yield Problem(what=f"{exc.what}.", fix=exc.fix)
        return
    except RlnbError as exc:
        yield Problem(what=str(exc), fix=_fewest(manifest, library))
        return
    num_envs = manifest.task.num_envs or (card.num_envs if card else None)
    if library.simulator and isinstance(num_envs, int) and sharing > 1 and num_envs % sharing:
        what = f"{num_envs} envs cannot be shared by {sharing} ranks{' that step envs' if library.roles else ''}."
        yield Problem(what=what, fix=f"num_envs={num_envs // sharing * sharing or sharing}")


def _ranks_with_env(manifest: Manifest, library: Library, nproc_per_node: int) -> int:
    """Return the number of ranks that step envs.

    Raises:
        RlnbError: The number of ranks does not fit the roles.
    """
    world_size = nproc_per_node * manifest.resources.nodes
    if not library.roles:
        return world_size
    roles = plugins.roles_of(library, world_size, manifest.agent)
    sharing = sum(role.env for role in roles)
    if library.simulator and not sharing:
        names = ", ".join(dict.fromkeys(role.name for role in roles))
        ranks = "its only rank" if world_size == 1 else f"all {world_size} ranks"
        raise RlnbError(f"{library.name} gives {ranks} the role {names}, which has no env.")
    return sharing


def _fewest(manifest: Manifest, library: Library) -> str:
    """Return the smallest number of ranks that fits the library's roles, as a fix; empty if there is none."""
    for ranks in range(1, MOST_RANKS + 1):
        try:
            _ranks_with_env(manifest, library, ranks)
        except RlnbError:
            continue
        return f"nproc_per_node={ranks}"
    return ""


# -- sizes and spaces ------------------------------------------------------------------------------------------------


SPACES: Mapping[str, str] = {"observation_space": "policy", "state_space": "critic", "action_space": ""}
"""Values of a direct env's config that are spaces, each with its observation group; empty for the actions."""

MOST_NAMED = 3
"""Most configs that a fix names."""


def problems_of_fit(manifest: Manifest, lookup: Lookup) -> Iterator[Problem]:
    """Find what would make the library fail late, or learn nothing."""
    library, card, agent = lookup.library, lookup.card, lookup.agent
    if library is None or card is None or agent is None or agent.error:
        return
    usual = {path: field.value for path, field in agent.fields.items()}
    values = {**usual, **{path.removeprefix("+"): value for path, value in manifest.agent.items()}}
    resources, num_envs = manifest.resources, manifest.task.num_envs or card.num_envs
    ranks = resources.nodes * resources.nproc_per_node
    try:
        if all(isinstance(count, int) and count > 0 for count in (num_envs, ranks)) and num_envs >= ranks:
            yield from plugins.size_problems(library, values, usual, num_envs // ranks)
        yield from _of_spaces(manifest, library, card, values)
    except HookError as exc:
        yield Problem(what=f"{exc.what}.", fix=exc.fix)


def _of_spaces(manifest: Manifest, library: Library, card: TaskCard, values: Mapping[str, Json]) -> Iterator[Problem]:
    """Find spaces of the task that the networks of the agent config do not fit, and name the configs that do."""
    observations, actions = _overridden(manifest, card)
    if actions is None:
        return  # several agents, or an override that only Isaac Lab can read
    found = plugins.space_problems(library, values, observations, actions)
    fitting = itertools.islice(_fitting(library, card, observations, actions), MOST_NAMED) if found else ()
    others = " or ".join(fitting)
    for problem in found:
        other = f"{'Or use' if problem.fix else 'Use'} {others}." if others else ""
        yield Problem(what=problem.what, fix=" ".join(filter(None, (problem.fix, other))))


def _overridden(manifest: Manifest, card: TaskCard) -> tuple[Spaces, Space | None]:
    """Return the spaces of a task with its overrides; those that an override changes to anything else are unknown."""
    observations, actions = dict(card.observations), card.actions
    for path, group in SPACES.items():
        if path not in manifest.task.overrides:
            continue
        space = _of_value(manifest.task.overrides[path])
        if not group:
            actions = space
        elif space is None:
            observations.pop(group, None)
        else:
            observations[group] = space
    return observations, actions


def _of_value(value: Json) -> Space | None:
    """Return the Box that Isaac Lab makes of a number, or of a list of numbers."""
    sizes = value if isinstance(value, list) else [value]
    if all(isinstance(size, int) and size > 0 for size in sizes):
        return Space(kind="box", shape=tuple(size for size in sizes if isinstance(size, int)))
    return None


def _fitting(library: Library, card: TaskCard, observations: Spaces, actions: Space) -> Iterator[str]:
    """Yield the arguments of a training whose agent config fits the spaces: the library's generic one, or another's."""
    own = card.generic_agents.get(library.name)
    if own is not None and own.usable and not _misfits(library, own, observations, actions):
        yield f"agent={GENERIC!r}"
    for name, other in plugins.libraries().items():
        agent = card.agents.get(name)
        if name == library.name or agent is None or not agent.usable or agent.trained_by(other) != name:
            continue
        if not _misfits(other, agent, observations, actions):
            yield f"library={name!r}" + (f", agent={GENERIC!r}" if agent.needs_choice else "")


def _misfits(library: Library, agent: AgentCard, observations: Spaces, actions: Space) -> list[Problem]:
    values = {path: field.value for path, field in agent.fields.items()}
    return plugins.space_problems(library, values, observations, actions)
