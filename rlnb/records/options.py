"""The options of a job, as ``job.json`` holds them.

Each kind of job has a class of its own: the class for a training is here, the others are beside the record that the job
leaves (:mod:`rlnb.records.evaluation`, :mod:`rlnb.records.export`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from rlnb.records.layout import JobDir
from rlnb.spec import Job
from rlnb.storage import files
from rlnb.storage.serial import from_json

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointOptions:
    """Options of every job that is done with a checkpoint of a run."""

    checkpoint: str
    """Checkpoint, relative to the run's folder, or absolute outside of it."""
    trust: bool = False
    """Whether to load a checkpoint that holds more than weights."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainOptions:
    """Options of a training."""

    checkpoint: str | None = None
    """Checkpoint to resume from, relative to the run's folder, or absolute outside of it."""
    init_from: str | None = None
    """Checkpoint to take the weights of."""
    trust: bool = False
    """Whether to load a checkpoint that holds more than weights."""
    max_iterations: int | None = None
    """Iteration to end at; None is the manifest's."""
    synchronised: bool = True
    """Whether ranks add up what they learn; False is the negative control of a proof of synchronisation."""


def options_of(cls: type[T], job: JobDir) -> T:
    """Return the options of a job as an object of their class.

    Args:
        cls: The class of the options of that kind of job.
        job: Folder of the job.

    Raises:
        RlnbError: An option is missing, or its value is of another type.
    """
    record = from_json(Job, files.read_json(job.job) or {"kind": job.kind}, ignore_unknown=True)
    return from_json(cls, record.options, ignore_unknown=True)
