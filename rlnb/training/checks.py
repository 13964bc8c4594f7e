"""Everything that would make a training fail, found before anything is written."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb.contracts import Launcher
from rlnb.errors import Problem, RlnbError, unknown
from rlnb.settings import options
from rlnb.simulation.card import task_card
from rlnb.spec import MULTI_AGENT, Library, Manifest
from rlnb.storage.serial import to_json
from rlnb.tasks import overrides
from rlnb.tasks.overrides import Card
from rlnb.version import __version__

OUR_LIBRARIES = ("rsl_rl", "rl_games", "skrl", "sb3")
"""Libraries whose plugins are packages named ``rlnb-<library>``."""
MOST_SEED = 2**32 - 1
"""The largest that numpy takes."""
OVERRULED = {"scene.num_envs": "num_envs", "seed": "seed", "sim.device": "device"}
"""Path in an env config to the argument of ``rlnb.train`` that it is set to."""
LEAST_FREE_BYTES = 50 * 2**20
"""Free space without which a run is not started."""


def find_problems(manifest: Manifest, launcher: Launcher) -> tuple[Card | None, list[Problem]]:
    """Return the task card, where there is one, and everything that would make a run fail. Nothing is written.

    Args:
        manifest: What would run.
        launcher: Where it would run.
    """
    problems = [*_check_arguments(manifest), *_check_root(options.folders.path)]
    card = None
    if not manifest.script:  # what a script needs and does is its own affair
        card, found = _check_library(manifest)
        problems += found
    problems += launcher.check(manifest)
    for found in plugins.manager().hook.rlnb_check(manifest=manifest):
        problems += found
    return card, problems


def _check_library(manifest: Manifest) -> tuple[Card | None, list[Problem]]:
    """Return the task card, unless the library has no simulator, and what is wrong with library and task."""
    spec = plugins.libraries().get(manifest.library)
    if spec is None:
        error = unknown("RL library", manifest.library, plugins.libraries())
        # Only names of ours: whoever owns another name on the package index is not known.
        ours = manifest.library in OUR_LIBRARIES
        fix = f"pip install rlnb-{manifest.library.replace('_', '-')}" if ours else "`rlnb libraries` lists them."
        missing = [Problem(what=str(error), fix=fix)]
        if manifest.task.id in _without_simulator():
            return None, missing
        card, found = _check_task(manifest, None)
        return card, [*missing, *found]
    if spec.simulator:
        return _check_task(manifest, spec)
    known = _without_simulator()
    if manifest.task.id in known:
        return None, []
    error = unknown("task", manifest.task.id, known, has=f"{spec.name} trains without a simulator, on")
    return None, [Problem(what=str(error))]


def _without_simulator() -> set[str]:
    """Return the tasks of plugins' own: what they say of Isaac Lab's is when they succeed, of their own nothing."""
    return {name for name, task in plugins.tasks().items() if task.success is None}


_EXAMPLES = {"max_iterations": 150, "num_envs": 64, "nproc_per_node": 1, "keep": 5}


def _check_arguments(manifest: Manifest) -> Iterator[Problem]:
    numbers = {
        "max_iterations": manifest.max_iterations,
        "num_envs": manifest.task.num_envs,
        "nproc_per_node": manifest.resources.nproc_per_node,
        "keep": manifest.keep,
    }
    for name, value in numbers.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            yield Problem(what=f"{name}={value!r} is not a positive whole number.", fix=f"{name}={_EXAMPLES[name]}")
    if isinstance(manifest.seed, bool) or not isinstance(manifest.seed, int) or not 0 <= manifest.seed <= MOST_SEED:
        yield Problem(what=f"seed={manifest.seed!r} is not a whole number from 0 to {MOST_SEED}.", fix="seed=42")
    if not all(isinstance(tag, str) and tag.strip() for tag in manifest.tags):
        yield Problem(what=f"tags={list(manifest.tags)!r} are not words.", fix='tags=["baseline"]')
    for path, setting in manifest.agent.items():
        try:
            to_json(setting)
        except RlnbError as exc:
            yield Problem(what=f"agent value {path!r}: {exc}")
    device = manifest.resources.device
    if device not in ("auto", "cpu", "cuda") and not (device.startswith("cuda:") and device[5:].isdigit()):
        yield Problem(what=f"device={device!r} is none of 'auto', 'cpu', 'cuda', 'cuda:N'.", fix='device="auto"')


def _check_root(root: Path) -> Iterator[Problem]:
    existing = next(folder for folder in (root, *root.parents) if os.path.exists(folder))
    fix = "Set rlnb.options.root, or RLNB_ROOT, to a folder of yours."
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield Problem(what=f"the run folder {root} cannot be written by user {os.getuid()}.", fix=fix)
    elif (free := shutil.disk_usage(existing).free) < LEAST_FREE_BYTES:
        yield Problem(what=f"the disk of {root} is full: {free / 2**20:.0f} MiB free.", fix=f"Make room. {fix}")


def _check_task(manifest: Manifest, library: Library | None) -> tuple[Card | None, list[Problem]]:
    """Return the task card, and what is wrong with a task and, unless there is no such library, with its training."""
    ranks, problems = manifest.resources.nproc_per_node, []
    if library is not None and isinstance(ranks, int) and ranks > 1 and not library.distributed:
        what = f"{library.name} trains in one process, not in {ranks}."
        problems.append(Problem(what=what, fix="nproc_per_node=1"))
    try:
        card = task_card(manifest.task, python=manifest.python, asset_root=manifest.asset_root)
    except RlnbError as exc:
        without = [name for name, spec in plugins.libraries().items() if not spec.simulator]
        own = manifest.task.id in _without_simulator()
        fix = f"Without a simulator: library={without[0]!r}." if own and without else ""
        return None, [*problems, Problem(what=str(exc), fix=fix)]
    problems += overrides.check(manifest.task, card)
    subject = f"override of {manifest.task.id}"
    problems += _check_overruled(manifest, manifest.task.overrides, card["fields"], OVERRULED, subject)
    if library is not None:
        problems += [
            *_check_shares(manifest, card),
            *_check_agent(manifest, library, card),
            *_check_version(manifest, card),
        ]
    return card, problems


def _check_shares(manifest: Manifest, card: Card) -> Iterator[Problem]:
    """Find envs that the ranks cannot share."""
    num_envs = manifest.task.num_envs or card["num_envs"]
    world = manifest.resources.world_size if isinstance(manifest.resources.nproc_per_node, int) else 1
    if isinstance(num_envs, int) and world > 1 and num_envs % world:
        yield Problem(
            what=f"{num_envs} envs cannot be shared by {world} ranks.",
            fix=f"num_envs={num_envs // world * world or world}",
        )


def _check_agent(manifest: Manifest, library: Library, card: Card) -> Iterator[Problem]:
    """Find what is wrong with the agent config of a library for a task."""
    agent = card["agents"].get(library.name)
    listed = ", ".join(sorted(card["agents"])) or "none"
    if library.multi_agent and card["workflow"] != MULTI_AGENT:
        what = f"{library.name} trains tasks of several agents, {manifest.task.id} has one."
        yield Problem(what=what, fix=f"Libraries for this task: {listed}.")
    elif agent is None:
        yield Problem(what=f"{manifest.task.id} has no agent config for {library.name}; it has: {listed}.")
    elif "error" in agent:
        yield Problem(what=f"the agent config of {library.name} does not load: {agent['error']}")
    else:
        if agent.get("missing"):
            python = manifest.python or sys.executable
            needed = " ".join(shlex.quote(requirement) for requirement in library.requires)
            yield Problem(
                what=f"{library.name} needs {', '.join(agent['missing'])} in the worker's interpreter {python}.",
                fix=f"{python} -m pip install {needed}",
            )
        subject, fields = f"agent config of {library.name}", agent["fields"]
        yield from overrides.check_values(manifest.agent, fields, subject, takes_more=agent.get("takes_more", ()))
        yield from _check_overruled(manifest, manifest.agent, fields, library.overruled, subject)


def _check_version(manifest: Manifest, card: Card) -> Iterator[Problem]:
    """Find that the worker has another rlnb."""
    theirs = card["versions"].get("rlnb", "none")
    if theirs != __version__:
        python = manifest.python or sys.executable
        yield Problem(
            what=f"rlnb {__version__} runs here, rlnb {theirs} in the worker's interpreter {python}.",
            fix=f"{python} -m pip install rlnb=={__version__}",
        )


def _check_overruled(
    manifest: Manifest, values: Mapping[str, Any], fields: Mapping[str, Any], overruled: Mapping[str, str], subject: str
) -> Iterator[Problem]:
    """Find values that would be overruled in silence by an argument of train()."""
    arguments = {
        "seed": manifest.seed,
        "max_iterations": manifest.max_iterations,
        "num_envs": manifest.task.num_envs,
        "device": manifest.resources.device,
    }
    for asked, value in values.items():
        path = asked.removeprefix("+")
        argument = overruled.get(path, "")
        given = arguments.get(argument)
        there = path in fields or asked != path  # with a + it is added
        if not there or given is None or not isinstance(value, type(given)):
            continue
        own = fields.get(path, {}).get("value")  # is no wish: it stands there in whole files
        if value not in (given, own):
            yield Problem(
                what=f"{subject}: {path} is {value!r}, but {argument}={given!r} of rlnb.train holds.",
                fix=f"Leave it out here, and say {argument}= to rlnb.train.",
            )
