"""Exports: their options, and the files that they wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlnb.records.layout import RunDir
from rlnb.records.options import CheckpointOptions
from rlnb.spec import Json, Result


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


def values_of(exports: list[ExportFile], run: RunDir) -> dict[str, Json]:
    """Return the files of an export as values of its result: format to path, relative to the run's folder."""
    return {file.format: str(file.path.relative_to(run.path)) for file in exports}


def files_of(result: Result, run: RunDir) -> list[ExportFile]:
    """Return the files that the result of an export names."""
    return [ExportFile(format=name, path=run.path / str(path)) for name, path in result.values.items()]
