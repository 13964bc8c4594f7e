"""Exports: their options, and the files that they wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlnb.contracts.libraries import Library
from rlnb.errors import RlnbError, unknown
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


def values_of(exports: list[ExportFile], run: RunDir) -> dict[str, Json]:
    """Return the files of an export as values of its result: format to path, relative to the run's folder."""
    return {file.format: str(file.path.relative_to(run.path)) for file in exports}


def files_of(result: Result, run: RunDir) -> list[ExportFile]:
    """Return the files that the result of an export names."""
    return [ExportFile(format=name, path=run.path / str(path)) for name, path in result.values.items()]
