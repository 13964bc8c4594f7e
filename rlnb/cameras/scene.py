"""The scene of a preview or a 3D view: a task, and optionally the policy of a run that acts in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.protocol.requests import Policy
from rlnb.records.facts import RunFacts, checkpoint_of, find_run
from rlnb.records.options import env_mode
from rlnb.records.remote import refuse_remote
from rlnb.records.task_copy import task_of
from rlnb.records.trust import require_trusted_owner
from rlnb.simulation import placement
from rlnb.spec import EnvMode, Task
from rlnb.tasks.task import as_task


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """A task to show, with the worker's settings and an optional policy."""

    task: Task
    policy: Policy | None
    """The policy that acts; None without a policy."""
    mode: EnvMode
    """The env to make."""
    python: str | None
    asset_root: str | None


def scene_of(
    task: Task | RunFacts | str,
    *,
    policy: RunFacts | str | None,
    checkpoint: str | Path | None,
    trust: bool,
    mode: EnvMode | None,
    python: str | None,
    asset_root: str | None,
) -> Scene:
    """Return the scene to show. A run stands for its task, its policy, its interpreter and its asset root.

    Args:
        task: A task, its name, or a run.
        policy: A run, or its id, whose policy acts.
        checkpoint: Name or path of one of that run's checkpoints; None is the last.
        trust: Whether to show a run of another user, and to load a checkpoint that holds more than weights.
        mode: Env to make; None is ``"play"`` with a policy, and otherwise the env of a training.
        python: Command of the worker's interpreter; None is the run's.
        asset_root: Folder or URL of robot assets; None is the run's.

    Raises:
        NotFoundError: The run, the checkpoint or the mode does not exist.
        RlnbError: The library of the run has no simulator.
    """
    run = find_run(policy) if isinstance(policy, str) else policy
    if run is None and isinstance(task, RunFacts):
        run = task
    for shown in (task, run):
        if isinstance(shown, RunFacts):
            require_trusted_owner(shown.record, trust=trust)
    return Scene(
        task=task_of(task.record) if isinstance(task, RunFacts) else as_task(task),
        policy=acting(run, checkpoint, trust),
        mode=env_mode(mode, "train" if run is None else "play"),
        python=python or (run.manifest.python if run else None),
        asset_root=asset_root or (run.manifest.asset_root if run else None),
    )


def acting(run: RunFacts | None, checkpoint: str | Path | None, trust: bool) -> Policy | None:
    """Return the policy of a run, for use in a request; None without a run.

    Raises:
        RlnbError: The checkpoint does not exist, or the run's library has no simulator.
    """
    if run is None:
        if checkpoint is not None:
            raise RlnbError(f"checkpoint={str(checkpoint)!r} belongs to no run. Pass the run as well: policy=run.")
        return None
    path = checkpoint_of(run.record, checkpoint)
    if not placement.has_run(run.path):
        refuse_remote(run.record.folder, run.path / path)
    if not plugins.library(run.library).simulator:
        raise RlnbError(f"{run.id} was trained with {run.library}, without a simulator, so there is nothing to show.")
    return Policy(run=str(run.path), checkpoint=path, trust=trust)
