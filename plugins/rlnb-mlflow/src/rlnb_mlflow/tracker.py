"""``python -m rlnb_mlflow.tracker RUN_DIR`` sends a run's newest job to MLflow until its stdin closes."""

from __future__ import annotations

import contextlib
import dataclasses
import getpass
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import rlnb
from rlnb.plugin import Manifest
from rlnb.tracking import Row, follow, main, outcome
from rlnb_mlflow import store

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

T = TypeVar("T")

RUN_TAG = "rlnb_run"
"""MLflow tag with the id of the run, by which a resumed job finds its MLflow run."""
STATUS = {"completed": "FINISHED", "failed": "FAILED", "cancelled": "KILLED", "timeout": "KILLED"}
"""MLflow's status of each outcome."""
METRICS_PER_BATCH, PARAMS_PER_BATCH = 1000, 100
"""Limits of ``log_batch`` (https://mlflow.org/docs/latest/rest-api.html#request-limits)."""
KEY_LENGTH, PARAM_LENGTH, TAG_LENGTH = 250, 6000, 5000
"""Limits of MLflow's names, parameters and tags, in characters."""
NOT_PARAMS = {"run_id", "created", "tags", "git", "schema"}
"""Fields of the manifest that are no hyperparameters."""


def track(run: rlnb.Run) -> None:
    """Log the metrics of the run's newest job until stdin closes; then end the MLflow run with the job's outcome."""
    from mlflow import MlflowClient

    runs = run.path.parent
    with store.alone(runs):
        client = MlflowClient(store.tracking_uri(runs))
        mlflow_id, last_frames = _start(client, run)
    for rows in follow(run, after=last_frames):
        for batch in _batches(list(_metrics(rows, last_frames)), METRICS_PER_BATCH):
            client.log_batch(mlflow_id, metrics=batch)
        last_frames = max(last_frames, rows[-1].frames)
    _end(client, mlflow_id, run)


def _start(client: MlflowClient, run: rlnb.Run) -> tuple[str, float]:
    """Return the id of the run's MLflow run, and the last frames that it has; -1 for a new one."""
    from mlflow.entities import Param

    experiment = _experiment(client, run)
    for mlflow_run in client.search_runs([experiment], f"tags.{RUN_TAG} = '{run.id}'", max_results=1):
        client.update_run(mlflow_run.info.run_id, status="RUNNING")
        return mlflow_run.info.run_id, mlflow_run.data.metrics.get("frames", -1)
    mlflow_run = client.create_run(experiment, run_name=run.title, tags=tags(run.manifest))
    params = [Param(key, value) for key, value in parameters(run.manifest).items()]
    for batch in _batches(params, PARAMS_PER_BATCH):
        client.log_batch(mlflow_run.info.run_id, params=batch)
    return mlflow_run.info.run_id, -1


def _experiment(client: MlflowClient, run: rlnb.Run) -> str:
    """Return the id of the user's experiment, by default of one named "rlnb", which is created if it is missing."""
    from mlflow.exceptions import MlflowException

    if id := os.environ.get("MLFLOW_EXPERIMENT_ID"):
        return id
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "rlnb"
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        try:
            return client.create_experiment(name)
        except MlflowException:  # another run has just created it
            experiment = client.get_experiment_by_name(name)
            if experiment is None:
                raise
    return experiment.experiment_id


def _metrics(rows: Sequence[Row], last_frames: float) -> Iterator[Metric]:
    """Yield the values of rows, and the position of each row beyond ``last_frames``, with frames as MLflow's step."""
    from mlflow.entities import Metric

    for row in rows:
        position = {"frames": float(row.frames), "iteration": row.iteration} if row.frames > last_frames else {}
        for name, value in {**position, **row.values}.items():
            yield Metric(metric_key(name), value, round(row.time_s * 1000), row.frames)


def _end(client: MlflowClient, mlflow_id: str, run: rlnb.Run) -> None:
    from mlflow.entities import RunTag

    end, result = outcome(run), run.result
    facts = {
        "rlnb_outcome": end,
        "rlnb_checkpoint": (result.checkpoint if result else None) or "",
        "rlnb_error": (result.error if result else "")[:TAG_LENGTH],
    }
    client.log_batch(mlflow_id, tags=[RunTag(key, value) for key, value in facts.items()])
    client.set_terminated(mlflow_id, STATUS[end])


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def metric_key(name: str) -> str:
    """Return MLflow's name of a metric: a normal path, in which "_" stands for each character that MLflow refuses."""
    return posixpath.normpath(re.sub(r"[^\w\-. :/]", "_", name).strip("/"))[:KEY_LENGTH]


def tags(manifest: Manifest) -> dict[str, str]:
    """Return the tags of a new MLflow run, with those that MLflow's pages show as the run's user, source and commit."""
    values = {
        RUN_TAG: manifest.run_id,
        "rlnb_tags": ", ".join(manifest.tags)[:TAG_LENGTH],
        "mlflow.source.name": "rlnb",
        "mlflow.source.type": "LOCAL",
    }
    if commit := manifest.git.get("commit"):
        values["mlflow.source.git.commit"] = commit
    with contextlib.suppress(OSError, KeyError):  # a container may run as a user without a name
        values["mlflow.user"] = getpass.getuser()
    return values


def parameters(manifest: Manifest) -> dict[str, str]:
    """Return the hyperparameters in a manifest by dotted path, such as ``"task.num_envs"``, without empty values."""
    values = {key: value for key, value in dataclasses.asdict(manifest).items() if key not in NOT_PARAMS}
    return {metric_key(key): value[:PARAM_LENGTH] for key, value in _leaves(values)}


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values in nested mappings by dotted path, as text."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif value not in (None, "", (), []):
        yield path, str(value)


def configure_environment() -> None:
    """Set MLflow's variables for a process that follows a training; a value of the user stays."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions refuse a folder as the tracking URI


if __name__ == "__main__":
    configure_environment()
    main("MLflow", track)
