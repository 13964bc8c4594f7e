"""Turn a request into a plan: manifest, launcher, task card, and every problem."""

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
from rlnb.training.script import with_interpreter


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


def make_plan(request: TrainRequest) -> Plan:
    """Return the plan of a request, with all its problems. Nothing is written.

    Raises:
        RlnbError: ``task`` is neither a task nor a name.
        CheckError: The script does not exist, or an argument does not apply to a script.
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
    if manifest.script:
        manifest, of_interpreter = with_interpreter(manifest, launcher)
        problems += of_interpreter
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
    """Find arguments that do not fit the others."""
    if request.args and request.script is None:
        yield Problem(
            what=f"args={request.args!r} needs a script.",
            fix='script="train.py". For a task, use agent={...} or rlnb.task(..., overrides={...}).',
        )
    if isinstance(request.tags, str):
        what = f"tags={request.tags!r} is a string, not a list."
        yield Problem(what=what, fix=f"tags=[{request.tags!r}]")
