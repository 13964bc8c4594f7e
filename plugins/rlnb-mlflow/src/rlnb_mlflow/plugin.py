"""The hooks: they check whether MLflow follows a run, and start and end the process that does. No import is heavy."""

from __future__ import annotations

from pathlib import Path

from rlnb.plugin import Manifest, Problem, hookimpl
from rlnb.tracking import Tracker

MLFLOW = Tracker(
    name="MLflow",
    tags=("mlflow",),
    module="rlnb_mlflow.tracker",
    packages=("rlnb-mlflow", "mlflow-skinny", "alembic", "sqlalchemy"),
    fix="Install rlnb-mlflow for {python}, from where rlnb was installed, and then run "
    "`{python} -m pip install mlflow-skinny alembic sqlalchemy`.",
)


@hookimpl
def rlnb_check(manifest: Manifest) -> list[Problem]:
    """Check the worker's interpreter, where MLflow runs. A server is not called: a run needs none to train."""
    return MLFLOW.check(manifest) if "mlflow" in manifest.tags else []


@hookimpl
def rlnb_run_started(run_dir: Path, manifest: Manifest) -> None:
    MLFLOW.start(run_dir, manifest)


@hookimpl
def rlnb_run_finished() -> None:
    MLFLOW.finish()
