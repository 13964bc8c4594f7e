"""The files of runs that a request needs, for a simulator on a machine without the folders of the runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlnb.records.layout import RunDir, run_dir_of
from rlnb.storage.entries import files_below
from rlnb.tasks import requests
from rlnb.tasks.request import Request


def runs_of(request: Request[Any]) -> Mapping[Path, list[Path]]:
    """Return the folders of the runs that a request is about, and the files that it reads in each of them."""
    if isinstance(request, requests.RunJobThere):
        run = run_dir_of(Path(request.job_dir))
        return {run.path: [*_always(run), run.path / str(request.job.options.get("checkpoint", ""))]}
    if isinstance(request, requests.Replay):
        run = RunDir(Path(request.run))
        return {run.path: [*_always(run), *files_below(Path(request.flight))]}
    if (policy := getattr(request, "policy", None)) is not None:
        run = RunDir(Path(policy.run))
        return {run.path: [*_always(run), run.path / policy.checkpoint]}
    return {}


def _always(run: RunDir) -> list[Path]:
    return [run.manifest, *files_below(run.source)]
