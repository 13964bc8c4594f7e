"""Turn a request into a plan: manifest, launcher, task card, and every problem."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from rlnb.configs import checks
from rlnb.configs.agent import AgentChoice, agent_choice, without_ruled
from rlnb.configs.card import TaskCard
from rlnb.contracts.launchers import Launcher
from rlnb.errors import Problem, RlnbError
from rlnb.hooks import plugins
from rlnb.launch.local import LocalLauncher
from rlnb.records.facts import RunFacts
from rlnb.settings import Root, options
from rlnb.spec import Json, Manifest, Task
from rlnb.tasks.task import as_task
from rlnb.training.arguments import TrainArguments
from rlnb.training.checks import find_problems
from rlnb.training.inputs import InputFile, find_inputs
from rlnb.training.lookup import Lookup, look_up
from rlnb.training.manifest import first_origin, make_manifest
from rlnb.training.repeat import as_recorded, first_weights, linked
from rlnb.training.script import script_task, with_interpreter

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A training that is ready to start, or the reasons why it is not."""

    root: Root
    """Folder of runs."""
    manifest: Manifest
    """Manifest of the run."""
    launcher: Launcher
    """Launcher of the run."""
    options: Mapping[str, Json]
    """Options of the first job."""
    card: TaskCard | None
    """Task card; None for a script, for a library without a simulator, and for a task that does not resolve."""
    problems: tuple[Problem, ...]
    """Reasons why the training would fail."""
    measure_ranks: bool
    """Whether the number of ranks is still to be measured."""
    inputs: Mapping[str, InputFile] = field(default_factory=dict)
    """Inputs of the library, by name."""
    like: RunFacts | None = None
    """Run to repeat; None for any other training."""


def make_plan(request: TrainArguments) -> Plan:
    """Return the plan of a request, with all its problems. Nothing is written.

    Raises:
        RlnbError: ``task`` is neither a task nor a name.
        CheckError: The script does not exist, or an argument does not apply to a script.
    """
    problems = [*_odd_arguments(request)]
    root, launcher = options.folders, request.launcher or LocalLauncher()
    auto = request.nproc_per_node == "auto" and isinstance(launcher, LocalLauncher)
    task, lookup, agent = _looked_up(request, root, problems)
    like = request.like if isinstance(request.like, RunFacts) else None
    if like is not None and task.id == like.task:
        agent = as_recorded(agent, like, lookup)
    inputs, of_inputs = find_inputs(request, task, lookup, agent.values, root)
    origin, of_weights = first_origin(request.init_from, lookup.name)
    origin = first_weights(origin, like) if like else origin
    manifest = make_manifest(request, task, lookup, launcher, inputs, auto=auto, agent=agent, parent=origin.parent)
    manifest = linked(manifest, like, root.runs) if like else manifest
    if manifest.script:
        manifest, of_interpreter = with_interpreter(manifest, launcher)
        problems += of_interpreter
    further = find_problems(manifest, launcher, root, lookup)
    weights: dict[str, Json] = {"init_from": origin.checkpoint} if origin.checkpoint else {}
    return Plan(
        root=root,
        manifest=manifest,
        launcher=launcher,
        options={**weights, "trust": request.trust} if weights or inputs else {},
        card=lookup.card,
        problems=(*problems, *of_inputs, *of_weights, *further),
        measure_ranks=auto,
        inputs=inputs,
        like=like,
    )


def _looked_up(request: TrainArguments, root: Root, problems: list[Problem]) -> tuple[Task, Lookup, AgentChoice]:
    """Return the task of a request, or that of its script, its library with the task card, and its agent config.

    Args:
        request: The request.
        root: Folder of runs and tasks.
        problems: A problem of the argument ``agent`` is added to it.
    """
    python, asset_root = request.python or options.python, request.asset_root or options.asset_root
    agent = AgentChoice()
    try:
        agent = agent_choice(request.agent)
    except RlnbError as exc:
        problems.append(Problem(what=str(exc)))
    if request.script is not None:
        task = script_task(request.script, request.args, request.refused_by_a_script())
        return task, Lookup(name=plugins.SCRIPT.name), agent
    task = as_task(request.task, root)
    lookup = look_up(task, request.library, root, python, asset_root, agent_name=agent.name)
    if lookup.card is not None and lookup.card.chosen:
        checks.tell_chosen(lookup.card)
    if lookup.library is not None and lookup.agent is not None:
        arguments = {name: getattr(request, name) for name in {*lookup.library.overruled.values()} - {""}}
        agent, ruled = without_ruled(agent, lookup.library, lookup.agent, arguments)
        if ruled:
            files = " and ".join(sorted({agent.files[path] for path in ruled}))
            logger.warning("%s is the config of a whole run. Not taken from it: %s.", files, ", ".join(ruled))
    return task, lookup, agent


def _odd_arguments(request: TrainArguments) -> Iterator[Problem]:
    """Find arguments that do not fit the others."""
    are_tags = isinstance(request.tags, Collection) and not isinstance(request.tags, str | bytes)
    if request.args and request.script is None:
        yield Problem(
            what=f"args={request.args!r} needs a script.",
            fix='script="train.py". For a task, use agent={...} or rlnb.task(..., overrides={...}).',
        )
    if not are_tags:
        kind = "a string, not a list" if isinstance(request.tags, str) else "not a list"
        yield Problem(what=f"tags={request.tags!r} is {kind}.", fix=f"tags=[{str(request.tags)!r}]")
