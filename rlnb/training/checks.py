"""Find everything that would make a training fail, before anything is written."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from rlnb import plugins
from rlnb.contracts import Launcher
from rlnb.errors import Problem, RlnbError, linux_only, unknown, whole_number
from rlnb.launch.hosted import HostedLauncher
from rlnb.launch.local import LocalLauncher
from rlnb.settings import Root
from rlnb.simulation.card import card_of
from rlnb.spec import MULTI_AGENT, Json, Library, Manifest
from rlnb.storage.installation import install_line
from rlnb.storage.serial import to_json
from rlnb.tasks import overrides
from rlnb.tasks.card import ConfigField, Fields, TaskCard
from rlnb.version import __version__

MOST_SEED = 2**32 - 1
"""The largest seed that numpy accepts."""
OVERRULED = {"scene.num_envs": "num_envs", "seed": "seed", "sim.device": "device"}
"""Env config paths that rlnb sets from an argument of ``rlnb.train``, to the name of that argument."""
_NO_FIELD = ConfigField(type="any")
LEAST_FREE_BYTES = 50 * 2**20
"""Free disk space that a run needs to start, bytes."""


def find_problems(manifest: Manifest, launcher: Launcher, root: Root) -> tuple[TaskCard | None, list[Problem]]:
    """Return the task card, if any, and every problem that would make a run fail. Nothing is written.

    Args:
        manifest: The run.
        launcher: Launcher of the run.
        root: Folder for the run.
    """
    library, card, of_task = None, None, list[Problem]()
    if not manifest.script:  # rlnb cannot check a script
        library, card, of_task = _look_up(manifest, root)
    if card is not None:
        of_task += overrides.check(manifest.task, card)
        agent = card.agents.get(library.name) if library is not None else None
        if agent is not None and not agent.error:
            subject = f"agent config of {manifest.library}"
            of_task += overrides.check_values(manifest.agent, agent.fields, subject, takes_more=agent.takes_more)
        of_task += _check_training(manifest, library, card)
        if isinstance(launcher, LocalLauncher):  # the nodes of a cluster, or their image, may have Isaac Sim
            of_task += _check_isaac_sim(manifest, card)
            of_task += _check_ovphysx(manifest, card)
    of_root = [*_check_root(root.path), *_check_distributed(manifest, library)]
    problems = [*_check_arguments(manifest), *of_root, *of_task]
    if sys.platform != "linux" and isinstance(launcher, HostedLauncher):
        problems += linux_only("A training run on this machine")
    else:
        problems += launcher.check(manifest)
    for of_plugin in plugins.manager().hook.rlnb_check(manifest=manifest):
        problems += of_plugin
    return card, problems


def _look_up(manifest: Manifest, root: Root) -> tuple[Library | None, TaskCard | None, list[Problem]]:
    """Return the library and the task card, None if they do not exist, and a problem for each missing one."""
    library, problems = plugins.libraries().get(manifest.library), list[Problem]()
    if library is not None and not library.simulator:
        tasks = _without_simulator()
        if manifest.task.id not in tasks:
            error = unknown("task", manifest.task.id, tasks, has=f"{library.name} trains without a simulator, on")
            problems.append(Problem(what=str(error)))
        return library, None, problems
    if library is None:
        error = unknown("RL library", manifest.library, plugins.libraries())
        problems.append(Problem(what=str(error), fix="`rlnb libraries` lists the installed libraries."))
        if manifest.task.id in _without_simulator():
            return None, None, problems
    try:
        return library, card_of(root, manifest.task, manifest.python, manifest.asset_root), problems
    except RlnbError as exc:
        without = [name for name, spec in plugins.libraries().items() if not spec.simulator]
        trains = without and manifest.task.id in _without_simulator()
        fix = f"Without a simulator: library={without[0]!r}." if trains else ""
        return library, None, [*problems, Problem(what=str(exc), fix=fix)]


def _without_simulator() -> set[str]:
    """Return the tasks that a plugin trains without Isaac Lab.

    A plugin's entry for an Isaac Lab task has a success function; one for its own task has none.
    """
    return {name for name, task in plugins.tasks().items() if task.success is None}


_EXAMPLES = {"max_iterations": 150, "num_envs": 64, "nproc_per_node": 1, "keep": 5}


def _check_arguments(manifest: Manifest) -> Iterator[Problem]:
    if isinstance(manifest.seed, bool) or not isinstance(manifest.seed, int) or not 0 <= manifest.seed <= MOST_SEED:
        yield Problem(what=f"seed={manifest.seed!r} is not a whole number from 0 to {MOST_SEED}.", fix="seed=42")
    if not isinstance(manifest.deterministic, bool):
        yield Problem(what=f"deterministic={manifest.deterministic!r} is not True or False.", fix="deterministic=True")
    if not all(isinstance(tag, str) and tag.strip() for tag in manifest.tags):
        yield Problem(what=f"tags={list(manifest.tags)!r} is not a list of non-empty strings.", fix='tags=["baseline"]')
    for path, setting in manifest.agent.items():
        try:
            to_json(setting)
        except RlnbError as exc:
            yield Problem(what=f"agent value {path!r}: {exc}")
    device = manifest.resources.device
    if device not in ("auto", "cpu", "cuda") and not (device.startswith("cuda:") and device[5:].isdigit()):
        yield Problem(what=f"device={device!r} is not one of 'auto', 'cpu', 'cuda', 'cuda:N'.", fix='device="auto"')
    numbers = {
        "max_iterations": manifest.max_iterations,
        "num_envs": manifest.task.num_envs,
        "nproc_per_node": manifest.resources.nproc_per_node,
        "keep": manifest.keep,
    }
    for name, value in numbers.items():
        if value is not None:
            yield from whole_number(name, value, example=_EXAMPLES[name])


def _check_root(root: Path) -> Iterator[Problem]:
    existing = next(folder for folder in (root, *root.parents) if os.path.exists(folder))
    fix = "Set rlnb.options.root, or RLNB_ROOT, to a folder of yours."
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield Problem(what=f"the run folder {root} cannot be written by this user.", fix=fix)
    elif (free := shutil.disk_usage(existing).free) < LEAST_FREE_BYTES:
        yield Problem(what=f"the disk of {root} is full: {free / 2**20:.0f} MiB free.", fix=f"Make room. {fix}")


def _check_training(manifest: Manifest, library: Library | None, card: TaskCard) -> list[Problem]:
    """Return the problems of a task's overrides and, if the library exists, of the training."""
    values, subject = manifest.task.overrides, f"override of {manifest.task.id}"
    problems = [*_check_overruled(manifest, values, card.fields, OVERRULED, subject)]
    if library is not None:
        problems += _check_ranks(manifest, card)
        problems += _check_agent(manifest, library, card)
        problems += _check_version(manifest, card)
    return problems


def _check_distributed(manifest: Manifest, library: Library | None) -> Iterator[Problem]:
    """Find several ranks for a library that trains in one process."""
    ranks = manifest.resources.nproc_per_node
    if library is None or not library.simulator:  # a library without a simulator may use ranks as it likes
        return
    if isinstance(ranks, int) and ranks > 1 and not library.distributed:
        yield Problem(what=f"{library.name} trains in one process, not in {ranks}.", fix="nproc_per_node=1")


def _check_ranks(manifest: Manifest, card: TaskCard) -> Iterator[Problem]:
    """Find a number of envs that the ranks cannot share equally."""
    ranks, nodes = manifest.resources.nproc_per_node, manifest.resources.nodes
    if not isinstance(ranks, int) or ranks * nodes <= 1:
        return
    num_envs, world = manifest.task.num_envs or card.num_envs, manifest.resources.world_size
    if isinstance(num_envs, int) and num_envs % world:
        yield Problem(
            what=f"{num_envs} envs cannot be shared by {world} ranks.",
            fix=f"num_envs={num_envs // world * world or world}",
        )


def _check_agent(manifest: Manifest, library: Library, card: TaskCard) -> Iterator[Problem]:
    """Find the problems of a library's agent config for a task."""
    agent = card.agents.get(library.name)
    libraries = ", ".join(sorted(card.agents)) or "none"
    if library.multi_agent and card.workflow != MULTI_AGENT:
        what = f"{library.name} trains tasks with several agents, but {manifest.task.id} has one."
        yield Problem(what=what, fix=f"Libraries for this task: {libraries}.")
    elif agent is None:
        yield Problem(what=f"{manifest.task.id} has no agent config for {library.name}; it has: {libraries}.")
    elif agent.error:
        yield Problem(what=f"the agent config of {library.name} does not load: {agent.error}")
    else:
        if agent.missing:
            python = manifest.python or sys.executable
            packages = " ".join(shlex.quote(requirement) for requirement in library.requires)
            yield Problem(
                what=f"{library.name} needs {', '.join(agent.missing)} in the worker's interpreter {python}.",
                fix=f"{python} -m pip install {packages}",
            )
        subject = f"agent config of {library.name}"
        yield from _check_overruled(manifest, manifest.agent, agent.fields, library.overruled, subject)


def _check_isaac_sim(manifest: Manifest, card: TaskCard) -> Iterator[Problem]:
    """Find a task that needs Isaac Sim, if the worker's interpreter does not have it."""
    if not card.isaac_sim:
        return
    python = manifest.python or sys.executable
    fixes = []
    if any("physics" in part or "default" in part for part in card.isaac_sim):
        others = sorted((name for name in card.presets.physics if "physx" not in name), reverse=True)
        fixes.append(f"physics={others[0]!r}" if others else "sim.physics=NewtonCfg() in the task's config")
    if any("renderer" in part for part in card.isaac_sim):
        others = [name for name in card.presets.renderer if "rtx" not in name]
        fixes.append(f"renderer={others[0]!r}" if others else "renderer_cfg=NewtonWarpRendererCfg() in its cameras")
    fix = " and ".join(fixes) or f"fewer launcher_args than {', '.join(manifest.task.launcher_args)}"
    yield Problem(
        what=f"{manifest.task.id} needs Isaac Sim, which {python} does not have: it uses {', '.join(card.isaac_sim)}.",
        fix=f"{fix}, or python= with an interpreter that has Isaac Sim.",
    )


def _check_ovphysx(manifest: Manifest, card: TaskCard) -> Iterator[Problem]:
    """Find a task with OvPhysX, if the worker's interpreter does not have it."""
    if not card.missing:
        return
    python = manifest.python or sys.executable
    isaacsim = "isaacsim" in card.versions
    preferred = ("isaacsim_physx", "newton_mjwarp") if isaacsim else ("newton_mjwarp",)
    other = next((name for name in preferred if name in card.presets.physics), None)
    fix = install_line("rlnb[physx]", python=manifest.python, isaacsim=isaacsim)
    yield Problem(
        what=f"{manifest.task.id} uses OvPhysX, which needs {' and '.join(card.missing)} in {python}.",
        fix=f"physics={other!r}, or {fix}" if other else fix,
    )


def _check_version(manifest: Manifest, card: TaskCard) -> Iterator[Problem]:
    """Find a worker with another version of rlnb."""
    theirs = card.versions.get("rlnb", "none")
    if theirs != __version__:
        python = manifest.python or sys.executable
        yield Problem(
            what=f"this process has rlnb {__version__}, but the worker's interpreter {python} has rlnb {theirs}.",
            fix=install_line("rlnb", python=python, isaacsim="isaacsim" in card.versions),
        )


def _check_overruled(
    manifest: Manifest, values: Mapping[str, Json], fields: Fields, overruled: Mapping[str, str], subject: str
) -> Iterator[Problem]:
    """Find config values that an argument of ``rlnb.train`` would silently overrule."""
    arguments = {
        "seed": manifest.seed,
        "max_iterations": manifest.max_iterations,
        "num_envs": manifest.task.num_envs,
        "device": manifest.resources.device,
    }
    for name, value in values.items():
        path = name.removeprefix("+")
        argument = overruled.get(path, "")
        ruling = arguments.get(argument)
        exists = path in fields or name != path  # a path with a + need not exist
        if not exists or ruling is None or not isinstance(value, type(ruling)):
            continue
        # A value equal to the config's default is not a request: it appears in every dumped config file.
        if value not in (ruling, fields.get(path, _NO_FIELD).value):
            yield Problem(
                what=f"{subject}: {path} is {value!r}, but rlnb.train has {argument}={ruling!r}.",
                fix=f"Leave it out here, and pass {argument}= to rlnb.train.",
            )
