"""From a request to what would be started: manifest, launcher, task card, and every problem."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rlnb import plugins
from rlnb.contracts import Launcher
from rlnb.errors import CheckError, Problem, RlnbError
from rlnb.launch.local import LocalLauncher
from rlnb.spec import Json, Manifest, Task
from rlnb.tasks.agent_config import agent_values
from rlnb.tasks.card import TaskCard
from rlnb.tasks.script import script_task
from rlnb.tasks.task import as_task
from rlnb.training.checks import find_problems
from rlnb.training.manifest import Origin, make_manifest, origin_of
from rlnb.training.request import TrainRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A training that would be started."""

    manifest: Manifest
    launcher: Launcher
    options: Mapping[str, Json]
    """Options of its first job."""
    card: TaskCard | None
    """The task card; None for a script, a library without a simulator, and a task that does not resolve."""
    problems: tuple[Problem, ...]
    """Reasons why it would fail."""
    measure_ranks: bool
    """Whether the number of ranks is still to be found by trying."""


def make_plan(request: TrainRequest) -> Plan:
    """Return what a request would start, with everything that is wrong with it. Nothing is written.

    Raises:
        RlnbError: There is neither a task nor a script, or the launcher is not one.
        CheckError: The script does not fit.
    """
    launcher = _launcher_of(request)
    measures = request.nproc_per_node == "auto" and isinstance(launcher, LocalLauncher)
    problems: list[Problem] = []
    origin, agent = Origin(), dict[str, Json]()
    if request.script is None:
        task, library = as_task(_task_of(request, problems)), request.library
    else:
        task = script_task(request.script, request.args, request.refused_by_a_script())
        library = plugins.SCRIPT.name
    with _into(problems):
        origin = origin_of(request.init_from, library)
    with _into(problems):
        agent = agent_values(request.agent)
    ranks = request.nproc_per_node
    if ranks is None or ranks == "auto":
        ranks = 1 if measures else launcher.nproc_per_node or 1
    manifest = make_manifest(request, task, library, launcher, ranks=ranks, agent=agent, parent=origin.parent)
    if isinstance(request.tags, str):
        what = f"tags={request.tags!r} is one word, and not several."
        problems.append(Problem(what=what, fix=f"tags=[{request.tags!r}]"))
    card, further = find_problems(manifest, launcher)
    return Plan(
        manifest=manifest,
        launcher=launcher,
        options={"init_from": origin.checkpoint, "trust": request.trust} if origin.checkpoint else {},
        card=card,
        problems=(*problems, *further),
        measure_ranks=measures,
    )


def refuse(plan: Plan) -> None:
    """Raise the problems of a plan.

    Raises:
        CheckError: There are any; with all of them.
    """
    if plan.problems:
        raise CheckError(f"{plan.manifest.task.id} with {plan.manifest.library}", plan.problems)


def _launcher_of(request: TrainRequest) -> Launcher:
    if isinstance(request.launcher, str):
        calls = ", ".join(f"rlnb.{name}(...)" for name in sorted(plugins.launchers()))
        raise RlnbError(f"launcher={request.launcher!r} is a name; a launcher is made by one of {calls}.")
    return request.launcher or LocalLauncher()


def _task_of(request: TrainRequest, problems: list[Problem]) -> Task | str:
    """Return the task of a request, which has to have one."""
    if request.task is None:
        raise RlnbError('rlnb.train() needs a task, such as rlnb.train("Isaac-Cartpole-Direct"), or a script.')
    if request.args:
        what = f"args={request.args!r}, but there is no script to give them to."
        fix = 'script="train.py"; what a task takes is agent={...} and rlnb.task(..., overrides={...}).'
        problems.append(Problem(what=what, fix=fix))
    return request.task


@contextlib.contextmanager
def _into(problems: list[Problem]) -> Iterator[None]:
    """Add what is raised inside to the problems, so that it is reported with the others."""
    try:
        yield
    except RlnbError as exc:
        problems.append(Problem(what=str(exc)))
