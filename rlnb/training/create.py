"""Refuse a plan with problems, or create the folder of a run and submit its first job."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlnb.contracts.launchers import ArrayLauncher, Launcher
from rlnb.errors import CheckError, RlnbError
from rlnb.records.checkpoint_files import files_of
from rlnb.records.layout import HANDLE, JobDir, RunDir, run_dir_of
from rlnb.records.record import RunRecord
from rlnb.records.repetition import copy_records
from rlnb.records.script_record import ScriptRecord
from rlnb.run.jobs import NewJob
from rlnb.run.run import Run
from rlnb.settings import Root
from rlnb.spec import Job, Json, Manifest, Task
from rlnb.storage import entries, files
from rlnb.storage.entries import files_below
from rlnb.tasks.version import verified
from rlnb.training.inputs import InputFile
from rlnb.training.plan import Plan


def refuse(plan: Plan) -> None:
    """Raise the problems of a plan, if any.

    Raises:
        CheckError: The plan has problems. It lists all of them.
    """
    if plan.problems:
        raise CheckError(f"{plan.manifest.task.id} with {plan.manifest.library}", plan.problems)


def create_run(
    root: Root,
    manifest: Manifest,
    launcher: Launcher,
    options: Mapping[str, Json] | None = None,
    *,
    inputs: Mapping[str, InputFile] | None = None,
    like: RunRecord | None = None,
    warm: bool | None = None,
) -> Run:
    """Make the folder of a run that has been checked, and start its training.

    Args:
        root: Folder of runs.
        manifest: The request of the run.
        launcher: Launcher of the run.
        options: Options of the first job.
        inputs: Inputs of the library, by name, which the run copies.
        like: Run that this one repeats, whose records the run copies; None if it repeats none.
        warm: Whether the living simulator may become the run's process; None takes ``rlnb.options.warm``.

    Raises:
        RlnbError: The folder could not be made. Nothing is left of it.
    """
    run_path = root.runs / manifest.run_id
    new = _first_job(root, manifest, launcher, options)
    folder = _create(new, inputs or {}, like)
    new.start(folder, warm=warm, undo=lambda: entries.remove_tree(run_path, ignore_errors=True))
    return Run.of((ScriptRecord if manifest.script else RunRecord)(run_path, manifest))


def create_array(plans: Sequence[Plan], launcher: ArrayLauncher, *, at_once: int | None) -> list[Run]:
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


def _run(new: NewJob) -> Run:
    record = ScriptRecord if new.manifest.script else RunRecord
    return Run.of(record(new.run_path, new.manifest))


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
