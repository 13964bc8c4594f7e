"""The options of a job, as ``job.json`` holds them.

Each kind of job has its own class. Those of a training and of an export are here, those of an evaluation in
:mod:`rlnb.records.evaluation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, get_args

from rlnb.contracts.libraries import Library
from rlnb.errors import Problem, RlnbError, unknown
from rlnb.records.layout import JobDir, RunDir
from rlnb.spec import EnvMode, Job, Json, Result
from rlnb.storage import files
from rlnb.storage.serial import from_json

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointOptions:
    """Options of every job that loads a checkpoint of a run."""

    checkpoint: str
    """Path of the checkpoint: relative to the run's folder if inside it, else absolute."""
    trust: bool = False
    """Whether to load a checkpoint that holds more than weights."""
    mode: EnvMode = "train"
    """Env in which the policy acts. Options that do not say it are of an older version, which had the training's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainOptions:
    """Options of a training."""

    checkpoint: str | None = None
    """Checkpoint to resume from: a path relative to the run's folder if inside it, else absolute."""
    init_from: str | None = None
    """Checkpoint whose weights the training starts from."""
    trust: bool = False
    """Whether to load a checkpoint or an input that holds more than weights."""
    max_iterations: int | None = None
    """Iteration to end at; None is the value of the manifest."""
    logged: Mapping[str, int] = field(default_factory=dict)
    """For a training that continues a lost one: the bytes that each event file had when it was submitted, by path below
    the logs. The lost training may still run on a host that cannot be seen; what it logs later is on no curve."""
    synchronised: bool = True
    """Whether ranks synchronise their learning; False is the negative control in a proof of synchronisation."""


def env_mode(mode: EnvMode | None, usual: EnvMode = "play") -> EnvMode:
    """Return the mode of an env that a user asks for, or the usual one for None.

    Raises:
        NotFoundError: There is no such mode.
    """
    if mode is not None and mode not in get_args(EnvMode):
        raise unknown("mode", str(mode), get_args(EnvMode), has="Modes")
    return mode or usual


def mode_problems(mode: EnvMode | None) -> list[Problem]:
    """Return a problem if a user asks for a mode that does not exist."""
    try:
        env_mode(mode)
    except RlnbError as exc:
        return [Problem(what=str(exc))]
    return []


def options_of(cls: type[T], job: JobDir) -> T:
    """Return the options of a job as an instance of ``cls``.

    Args:
        cls: Options class for this kind of job.
        job: Folder of the job.

    Raises:
        RlnbError: An option is missing or has a value of the wrong type.
    """
    record = from_json(Job, files.read_json(job.job, files.RECORD_BYTES) or {"kind": job.kind}, ignore_unknown=True)
    return from_json(cls, record.options, ignore_unknown=True)


def logged_before(job: JobDir) -> dict[str, int]:
    """Return ``TrainOptions.logged`` of a job; empty if the record cannot be read, which other calls report."""
    if job.number == 0:  # nothing was logged before the first job; lists of runs ask this of each run
        return {}
    try:
        record = files.read_json(job.job, files.RECORD_BYTES) or {}
    except RlnbError:
        return {}
    options = record.get("options")
    logged = options.get("logged") if isinstance(options, Mapping) else None
    sizes = logged.items() if isinstance(logged, Mapping) else ()
    return {path: size for path, size in sizes if type(size) is int and size >= 0}


# -- export ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportOptions(CheckpointOptions):
    """Options of an export."""

    formats: tuple[str, ...]
    """Formats to write, among those that the library supports."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportFile:
    """One file of an export."""

    format: str
    """Format; with several agents, ``"<agent>/<format>"``."""
    path: Path
    """The file."""


def formats_of(library: Library, formats: Sequence[str]) -> tuple[str, ...]:
    """Return the formats that a user asks for, or all that the library supports if there are none.

    Raises:
        NotFoundError: The library does not support such a format.
        RlnbError: The library exports nothing.
    """
    for name in formats:
        if name not in library.exports:
            raise unknown("export format", name, library.exports, has=library.name)
    if not library.exports:
        why = "its networks have no TorchScript or ONNX form" if library.simulator else "it has no simulator"
        raise RlnbError(f"{library.name} exports nothing: {why}. Use run.checkpoints.")
    return tuple(formats or library.exports)


def export_values_of(exports: list[ExportFile], run: RunDir) -> dict[str, Json]:
    """Return the files of an export as values of its result: format to path, relative to the run's folder."""
    return {file.format: str(file.path.relative_to(run.path)) for file in exports}


def export_files_of(result: Result, run: RunDir) -> list[ExportFile]:
    """Return the files that the result of an export names."""
    return [ExportFile(format=name, path=run.path / str(path)) for name, path in result.values.items()]
