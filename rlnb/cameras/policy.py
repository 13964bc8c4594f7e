"""The subject of a preview or a 3D view: a task, and the policy of a run that may act in it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from rlnb import plugins
from rlnb.errors import RlnbError
from rlnb.records.facts import RunFacts, checkpoint_of
from rlnb.records.find import find_one
from rlnb.records.layout import RunDir
from rlnb.settings import options
from rlnb.spec import Task
from rlnb.tasks.requests import Policy
from rlnb.tasks.task import as_task


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A task to look at, in an interpreter, with or without a policy."""

    task: Task
    policy: Policy | None
    """The policy that acts; None where none does."""
    python: str | None
    asset_root: str | None


def subject(
    task: Task | RunFacts | str,
    *,
    policy: RunFacts | str | None,
    checkpoint: str | Path | None,
    trust: bool,
    python: str | None,
    asset_root: str | None,
) -> Subject:
    """Return what to look at. A run stands for its task, its policy, its interpreter and its asset root.

    Args:
        task: A task, its name, or a run.
        policy: A run, or its id, whose policy acts.
        checkpoint: Which of that run's checkpoints; None is the last.
        trust: Whether the checkpoint may hold more than weights.
        python: Command of the worker's interpreter; None is the run's.
        asset_root: Folder or URL of robot assets; None is the run's.

    Raises:
        NotFoundError: There is no such run or checkpoint.
        RlnbError: The library of the run has no simulator.
    """
    run = RunFacts.of(find_one(options.folders, policy)) if isinstance(policy, str) else policy
    if run is None and isinstance(task, RunFacts):
        run = task
    return Subject(
        task=task_of(task) if isinstance(task, RunFacts) else as_task(task),
        policy=acting(run, checkpoint, trust),
        python=python or (run.manifest.python if run else None),
        asset_root=asset_root or (run.manifest.asset_root if run else None),
    )


def acting(run: RunFacts | None, checkpoint: str | Path | None, trust: bool) -> Policy | None:
    """Return the policy of a run as a request names it; None for no run.

    Raises:
        RlnbError: The run has no such checkpoint, or its library has no simulator.
    """
    if run is None:
        if checkpoint is not None:
            raise RlnbError(f"checkpoint={str(checkpoint)!r} is not a checkpoint of a known run. Use policy=run too.")
        return None
    path = checkpoint_of(run.record, checkpoint)
    if not plugins.library(run.library).simulator:
        raise RlnbError(f"{run.id} was trained with {run.library}, without a simulator: there is nothing to look at.")
    return Policy(run=str(run.path), checkpoint=path, trust=trust)


def task_of(run: RunFacts) -> Task:
    """Return the task of a run, with the run's own copy of its module: the original may have been edited since."""
    task, folder = run.manifest.task, RunDir(run.path)
    return dataclasses.replace(task, source=str(folder.source / Path(task.source).name)) if task.source else task
