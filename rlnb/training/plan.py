"""From a request to what would be started: manifest, launcher, task card, and every problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rlnb import plugins
from rlnb.contracts import Launcher
from rlnb.errors import Problem, RlnbError
from rlnb.launch.local import LocalLauncher
from rlnb.settings import Root, options
from rlnb.spec import Json, Manifest
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

    root: Root
    """Folder of runs."""
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
        RlnbError: The task is not one.
        CheckError: The script does not fit.
    """
    root, launcher = options.folders, request.launcher or LocalLauncher()
    measures = request.nproc_per_node == "auto" and isinstance(launcher, LocalLauncher)
    problems = [*_odd_arguments(request)] if request.args or isinstance(request.tags, str) else []
    origin, agent = Origin(), dict[str, Json]()
    if request.script is None:
        task, library = as_task(request.task, root), request.library
    else:
        task = script_task(request.script, request.args, request.refused_by_a_script())
        library = plugins.SCRIPT.name
    try:
        agent = agent_values(request.agent)
    except RlnbError as exc:
        problems.append(Problem(what=str(exc)))
    try:
        origin = origin_of(request.init_from, library)
    except RlnbError as exc:
        problems.append(Problem(what=str(exc)))
    ranks = request.nproc_per_node
    if ranks is None or ranks == "auto":
        ranks = 1 if measures else launcher.nproc_per_node or 1
    manifest = make_manifest(request, task, library, launcher, ranks=ranks, agent=agent, parent=origin.parent)
    card, further = find_problems(manifest, launcher, root)
    return Plan(
        root=root,
        manifest=manifest,
        launcher=launcher,
        options={"init_from": origin.checkpoint, "trust": request.trust} if origin.checkpoint else {},
        card=card,
        problems=(*problems, *further),
        measure_ranks=measures,
    )


def _odd_arguments(request: TrainRequest) -> Iterator[Problem]:
    """Find arguments that do not go with the others."""
    if request.args and request.script is None:
        yield Problem(
            what=f"args={request.args!r}, but there is no script to give them to.",
            fix='script="train.py"; what a task takes is agent={...} and rlnb.task(..., overrides={...}).',
        )
    if isinstance(request.tags, str):
        what = f"tags={request.tags!r} is a string, not a list."
        yield Problem(what=what, fix=f"tags=[{request.tags!r}]")
