"""Create the folder of a run and submit its first job."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from rlnb.contracts import Launcher
from rlnb.errors import RlnbError
from rlnb.records.layout import RunDir
from rlnb.run.jobs import begin, job_writer
from rlnb.run.run import Run
from rlnb.settings import Root
from rlnb.spec import Job, Json, Manifest
from rlnb.storage import files
from rlnb.storage.serial import to_json


def create_run(
    root: Root,
    manifest: Manifest,
    launcher: Launcher,
    options: Mapping[str, Json] | None = None,
    *,
    warm: bool | None = None,
) -> Run:
    """Make the folder of a run that has been checked, and start its training.

    Args:
        root: Where runs lie.
        manifest: What is asked of the run.
        launcher: Where to run.
        options: Options of its first job.
        warm: Whether the living simulator may become the run's own process; None is ``rlnb.options.warm``.

    Raises:
        RlnbError: The folder could not be made; nothing is left of it.
    """
    run_dir = _create(root, manifest, Job(kind="train", options=options or {}), launcher)
    begin(run_dir.jobs()[-1], "train", manifest, launcher, warm=warm, undo=run_dir.path)
    return Run(run_dir.path)


def _create(root: Root, manifest: Manifest, job: Job, launcher: Launcher) -> RunDir:
    """Make the run's folder whole, its first job included, then give it its name: a run is there or it is not."""
    staging, run_dir = root.runs / f".{manifest.run_id}", RunDir(root.runs / manifest.run_id)
    try:
        staging.mkdir(parents=True)
        draft = RunDir(staging)
        draft.logs.mkdir()
        if manifest.task.source:
            module = Path(manifest.task.source)
            draft.source.mkdir()
            shutil.copy2(module, draft.source / module.name)
            for name in manifest.task.files:
                (draft.source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(module.parent / name, draft.source / name)
        files.write_once(draft.manifest, to_json(manifest))
        draft.next_job(job.kind, job_writer(run_dir, manifest, job, launcher))
        staging.rename(run_dir.path)
    except OSError as exc:
        raise RlnbError(f"The run folder could not be made in {root.runs}: {exc}. Nothing is left of it.") from exc
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return run_dir
