"""Refuse a plan with problems, or create a run and submit its first job; or start several as one array."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

from rlnb.contracts.launchers import ArrayLauncher, Launcher
from rlnb.errors import CheckError, Problem, RlnbError
from rlnb.jobs.jobs import NewJob
from rlnb.launch.local import LocalLauncher
from rlnb.records.checkpoints import files_of
from rlnb.records.facts import RunFacts
from rlnb.records.layout import HANDLE, JobDir, RunDir, run_dir_of
from rlnb.records.record import RunRecord
from rlnb.records.repetition import copy_records
from rlnb.records.stock_record import ScriptRecord
from rlnb.settings import Root
from rlnb.spec import Job, Json, Manifest, Task
from rlnb.storage import entries, files
from rlnb.storage.entries import files_below
from rlnb.tasks.source import verified
from rlnb.training.arguments import TrainArguments
from rlnb.training.inputs import InputFile
from rlnb.training.plan import Plan, make_plan


def refuse(*plans: Plan) -> None:
    """Raise the problems of plans, if any.

    Raises:
        CheckError: A plan has problems. It lists those of all plans, each once.
    """
    if problems := [*dict.fromkeys(problem for plan in plans for problem in plan.problems)]:
        raise CheckError(f"{plans[0].manifest.task.id} with {plans[0].manifest.library}", problems)


def create_run(
    root: Root,
    manifest: Manifest,
    launcher: Launcher,
    options: Mapping[str, Json] | None = None,
    *,
    inputs: Mapping[str, InputFile] | None = None,
    like: RunRecord | None = None,
    warm: bool | None = None,
) -> RunFacts:
    """Make the folder of a run that has been checked, and start its training.

    Args:
        root: Folder of runs.
        manifest: The request of the run.
        launcher: Launcher of the run.
        options: Options of the first job.
        inputs: Inputs of the library, by name, which the run copies.
        like: Run that this one repeats, whose records the run copies; None if it repeats none.
        warm: Whether the warm simulator may become the run's process; None takes ``rlnb.options.warm``.

    Raises:
        RlnbError: The folder could not be made. Nothing is left of it.
    """
    run_path = root.runs / manifest.run_id
    new = _first_job(root, manifest, launcher, options)
    folder = _create(new, inputs or {}, like)
    new.start(folder, warm=warm, undo=lambda: entries.remove_tree(run_path, ignore_errors=True))
    return RunFacts.of((ScriptRecord if manifest.script else RunRecord)(run_path, manifest))


def create_array(plans: Sequence[Plan], launcher: ArrayLauncher, *, at_once: int | None) -> list[RunFacts]:
    """Make the folders of runs that have been checked, and start their trainings as one array of a queue.

    Args:
        plans: Plans without problems.
        launcher: Launcher of the runs.
        at_once: Largest number of trainings that run at once; None leaves it to the queue.

    Raises:
        RlnbError: A folder could not be made, or the array could not be started. Nothing is left of any run.
    """
    new = [_first_job(plan.root, plan.manifest, launcher, plan.options) for plan in plans]
    folders: list[Path] = []
    try:
        for one, plan in zip(new, plans, strict=True):
            folders.append(_create(one, plan.inputs, plan.like.record if plan.like else None).path)
        handles = launcher.submit_array(folders, at_once=at_once)
    except BaseException:
        for folder in folders:  # the folder that could not be made may be another run's
            entries.remove_tree(run_dir_of(folder).path, ignore_errors=True)
        raise
    for folder, handle in zip(folders, handles, strict=True):
        with contextlib.suppress(OSError):  # a full disk; the state follows from the heartbeat
            files.write_once(folder / HANDLE, handle)
    return [_run(one) for one in new]


def _first_job(root: Root, manifest: Manifest, launcher: Launcher, options: Mapping[str, Json] | None) -> NewJob:
    job = Job(kind="train", options=options or {})
    return NewJob(run_path=root.runs / manifest.run_id, manifest=manifest, job=job, launcher=launcher)


def _run(new: NewJob) -> RunFacts:
    record = ScriptRecord if new.manifest.script else RunRecord
    return RunFacts.of(record(new.run_path, new.manifest))


def _create(new: NewJob, inputs: Mapping[str, InputFile], like: RunRecord | None) -> JobDir:
    """Make the run's folder with its first job under a hidden name, then rename it, so that it appears as a whole."""
    run_path, manifest = new.run_path, new.manifest
    staging = run_path.with_name(f".{manifest.run_id}")
    draft = RunDir(staging)
    record, logs = draft.manifest, draft.logs
    try:
        files.make_folder(staging.parent)
        entries.make(staging)
        files.make_subfolder(logs)
        if manifest.task.source:
            _copy_source(manifest.task, Path(manifest.task.source), draft.source)
        for name, one in inputs.items():
            copy_input(one, name, draft)
        if like is not None:
            copy_records(like, draft)
        job = draft.next_job(new.job.kind, new.records)
        files.write_once(record, manifest, limit_bytes=files.RECORD_BYTES)
        entries.rename(staging, run_path.name)
    except OSError as exc:
        raise RlnbError(
            f"The run folder could not be made in {run_path.parent}: {exc}. Nothing is left of it."
        ) from exc
    finally:
        entries.remove_tree(staging, ignore_errors=True)
    return JobDir(run_path / job.path.relative_to(staging))


def _copy_source(task: Task, module: Path, folder: Path) -> None:
    """Copy a task's source into a run's folder, and compare the copies with the hashes in the manifest.

    Raises:
        RlnbError: A file was edited since it was hashed.
    """
    files.make_subfolder(folder)
    for name in (module.name, *task.files):
        _copy(module.parent / name, folder / name)
    try:
        verified(folder / module.name, task.source_sha256, task.files)
    except RlnbError as exc:
        raise RlnbError(f"The source of {task.id} was edited while the run was made. Start it again.") from exc


def _copy(file: Path, copy: Path) -> None:
    """Copy a file into a run's folder, readable by those who may read the run."""
    files.make_folder(copy.parent)
    entries.copy(file, copy)


def copy_input(one: InputFile, name: str, run: RunDir) -> None:
    """Copy an input into a run's folder: its files, and the manifest and the source of the run of a policy.

    Thus, nothing is lost if that run is deleted, and everything is there on another machine.
    """
    for path in files_of(one.file):
        _copy(path, run.input(name, one.origin) / path.relative_to(one.file))
    if one.policy_of is not None:
        copy = run.input_run(name)
        for path in files_below(one.policy_of.folder.source):
            _copy(path, copy.source / path.relative_to(one.policy_of.folder.source))
        files.make_folder(copy.path)
        files.write_once(copy.manifest, one.policy_of.manifest)


# -- array -----------------------------------------------------------------------------------------------------------


def has_arrays(launcher: Launcher) -> TypeGuard[ArrayLauncher]:
    """Return whether a launcher can start several jobs as one array."""
    return hasattr(launcher, "submit_array")


def array_problems(launcher: Launcher | None, count: int) -> Sequence[Problem]:
    """Return every reason why a launcher cannot start an array.

    Args:
        launcher: The launcher; None is this machine.
        count: Number of trainings.
    """
    launcher = launcher or LocalLauncher()
    if not has_arrays(launcher):
        fix = "Use a launcher with arrays, such as rlnb.slurm(...), or array=False."
        return [Problem(what=f"The launcher {launcher.name} has no arrays.", fix=fix)]
    return launcher.check_array(count)


def train_array(requests: Sequence[TrainArguments], *, at_once: int | None = None) -> list[RunFacts]:
    """Start trainings as one array, and return their runs at once.

    Args:
        requests: The trainings, all with the same launcher.
        at_once: Largest number of trainings that run at once; None leaves it to the queue.

    Raises:
        CheckError: A training would fail. It lists the problems of all trainings; nothing was written.
        RlnbError: The array could not be started. Nothing is left of any run.
    """
    plans = [make_plan(request) for request in requests]
    launcher = plans[0].launcher
    problems = dict.fromkeys([*array_problems(launcher, len(plans)), *_further(requests)])
    problems |= dict.fromkeys(problem for plan in plans for problem in plan.problems)
    if problems or not has_arrays(launcher):
        raise CheckError(f"array of {plans[0].manifest.task.id} with {plans[0].manifest.library}", [*problems])
    return create_array(plans, launcher, at_once=at_once)


def _further(requests: Sequence[TrainArguments]) -> Iterator[Problem]:
    """Yield a problem if a training has another launcher, whose job script would differ."""
    if any(request.launcher is not requests[0].launcher for request in requests):
        yield Problem(what="The trainings of an array have several launchers.", fix="Use the same launcher for all.")
