"""A run's checkpoints: a list of paths with the newest and the best one by metric, their files and times."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import json
import logging
import math
import os
import re
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from rlnb.contracts.libraries import STEM, Library
from rlnb.errors import NotFiniteError, RlnbError, RunError, refuse_other_than_text
from rlnb.hooks import plugins
from rlnb.metrics.metrics import Metrics
from rlnb.records import remote, weights
from rlnb.records.layout import JobDir, RunDir, is_match
from rlnb.records.options import TrainOptions, options_of
from rlnb.spec import Started
from rlnb.storage import entries, files
from rlnb.storage.entries import files_below
from rlnb.storage.serial import from_json

logger = logging.getLogger(__name__)


class Trained(Protocol):
    """The part of a run's record that rating its checkpoints needs."""

    @property
    def id(self) -> str: ...
    @property
    def folder(self) -> RunDir: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def library_spec(self) -> Library | None: ...
    @property
    def last_started(self) -> Started | None: ...


class Checkpoints(list[Path]):
    """Checkpoints of a run, oldest iteration first, after those that it has abandoned.

    Args:
        paths: The checkpoints.
        record: The run.
        remote: Those that are only on another machine, with the paths that they have here once they are copied.
        abandoned: Those of iterations that a later training has trained again, from an older checkpoint.
    """

    def __init__(
        self, paths: Sequence[Path], record: Trained, remote: Collection[Path] = (), abandoned: Collection[Path] = ()
    ) -> None:
        super().__init__(paths)
        self._record, self.remote, self.abandoned = record, frozenset(remote), frozenset(abandoned)

    @property
    def own(self) -> list[Path]:
        """The checkpoints that the run has not abandoned, oldest iteration first."""
        return [path for path in self if path not in self.abandoned]

    @property
    def last(self) -> Path | None:
        """The newest checkpoint; None if the run has none."""
        return self.own[-1] if self.own else None

    def last_sound(self, before: Path | None = None, *, to_resume: bool = False) -> Path | None:
        """Return the newest checkpoint that is neither torn nor has weights that are not finite; None without one.

        A warning names those that are passed over. A checkpoint on another machine is taken for sound.

        Args:
            before: Checkpoint of the run; only older ones are considered. None considers all.
            to_resume: Whether its companions have to be finite too.
        """
        passed: list[str] = []
        older = self[: self.index(before)] if before is not None and before in self else self
        for path in reversed([path for path in older if path not in self.abandoned]):
            if not (fault := self.fault(path, to_resume=to_resume)):
                if passed:
                    logger.warning("%s %s is used instead.", " ".join(passed), path.name)
                return path
            passed.append(f"{path.name} {fault}.")
        return None

    def last_whole(self) -> Path | None:
        """Return the newest checkpoint that is not torn; None if there is none. Its weights are not read."""
        return next((path for path in reversed(self.own) if path in self.remote or self.is_whole(path)), None)

    def fault(self, path: Path, *, to_resume: bool = False) -> str:
        """Return why a checkpoint cannot be used, as the end of a sentence; empty if it is sound."""
        return "" if path in self.remote else fault_of(path, self._library, to_resume=to_resume)

    def none_sound(self, *, to_resume: bool = False) -> str:
        """Return the end of a sentence that says why none of the checkpoints can be used; there is at least one."""
        if not self.own:
            return f"has only checkpoints that it has abandoned. To return to the newest: checkpoint={self[-1].name!r}"
        fault = self.fault(self.own[-1], to_resume=to_resume)
        return f"has no checkpoint that can be used. The newest, {self.own[-1].name}, {fault}."

    def other_fix(self, path: Path, *, to_resume: bool = False) -> str:
        """Return the fix for a checkpoint that cannot be used: another one that is sound, if there is one.

        Args:
            path: The checkpoint, or one of its companions, which only a training that goes on reads.
            to_resume: Whether the companions of the other one have to be finite too.
        """
        owner = next((one for one in self if path in companions_of(one, self._library)), path)
        to_resume |= owner != path
        sound = self.last_sound(before=owner, to_resume=to_resume)
        if sound is None or sound == owner:
            others = (one for one in reversed(self) if one != owner and not self.fault(one, to_resume=to_resume))
            sound = next(others, None)
        return f"Use checkpoint={sound.name!r}." if sound else "Use another file."

    def error_of(self, path: Path) -> type[RunError]:
        """Return the class of the error about a checkpoint that cannot be used."""
        return NotFiniteError if self.is_whole(path) else RunError

    def exists(self, path: Path) -> bool:
        """Return whether a path is a file, or a folder if that is what the library's checkpoints are."""
        is_kind = path.is_dir if self._library.checkpoint_is_folder else path.is_file
        return files.there(path) and is_kind()

    def remote_files(self, path: Path) -> list[Path]:
        """Return the files of a checkpoint that are only on another machine, in the order in which they are copied."""
        return remote_files_of(self._record.folder, path, self._library)

    def is_whole(self, path: Path) -> bool:
        """Return whether a checkpoint and its companions are complete, as far as that shows without loading them."""
        return is_whole(path, self._library)

    def size(self, path: Path) -> int:
        """Return the size of a checkpoint in bytes, all its files and companions included."""
        return size_of(path, self._library)

    def delete(self, path: Path) -> None:
        """Delete a checkpoint with its companions.

        Raises:
            RunError: The checkpoint is not below the run's folder, but where a link leads.
            OSError: A file cannot be deleted.
        """
        folder = self._record.folder.path.resolve()
        if not path.parent.resolve().is_relative_to(folder):
            raise RunError(f"{path} is in {path.parent.resolve()}, which is not in {folder}. Delete it there.")
        remove(path, self._library)

    @property
    def _library(self) -> Library:
        return self._record.library_spec or plugins.SCRIPT

    def best(self, metric: str = "reward", *, lowest: bool = False) -> Path | None:
        """Return the checkpoint at whose iteration a metric was best: the newest of equals, None if there is none.

        A checkpoint that is torn or not finite is not the best one.

        Args:
            metric: Metric name or raw tag, see ``run.metrics.names``. A checkpoint is rated by the last value logged
                up to its iteration.
            lowest: Whether a lower value is better.

        Raises:
            NotFoundError: The run logs no such metric.
            RlnbError: Nothing was logged before the first checkpoint.
        """
        refuse_other_than_text("metric", metric)
        rated = self._rated(metric, -1 if lowest else 1)
        if self and not rated:
            raise RlnbError(
                f"{metric!r} of {self._record.id} has no finite value at any of its {len(self)} checkpoints."
            )
        sound = (path for *_, path in sorted(rated, reverse=True) if not self.fault(path))
        return next(sound, None)

    def _rated(self, metric: str, sign: int) -> list[tuple[float, float, Path]]:
        import numpy as np

        series = self._record.metrics[metric]
        iterations, values = series.array("iterations"), series.array("values")
        order = np.argsort(iterations, kind="stable")
        iterations, values = iterations[order], values[order]
        numbered = [(number, path) for number, path in zip(self.iterations, self, strict=True) if number is not None]
        counts = np.searchsorted(iterations, [number for number, _ in numbered], side="right")
        return [
            (sign * value, number, path)
            for count, (number, path) in zip(counts, numbered, strict=True)
            if count and math.isfinite(value := float(values[count - 1]))
        ]

    @property
    def iterations(self) -> list[float | None]:
        """The last iteration, from 0, that each checkpoint includes.

        None for an abandoned one, which has nothing of the run's curves, and if the name has no number (a "best" file).
        """
        library, started = self._record.library_spec, self._record.last_started
        if library is None:
            return [None] * len(self)
        horizon = started.horizon if started else 1
        return [None if path in self.abandoned else iteration_of(path, library, horizon) for path in self]

    def iteration(self, path: Path) -> float | None:
        """Return the last iteration, from 0, that a checkpoint includes, also an abandoned one; None if unknown."""
        library, started = self._record.library_spec, self._record.last_started
        return iteration_of(path, library, started.horizon if started else 1) if library else None

    def spare(self, keep: int, *, abandoned: bool = False) -> list[Path]:
        """Return the numbered checkpoints that are neither among the newest ``keep`` nor the best by reward.

        If some of these are torn or not finite, the newest ``keep`` sound ones stay too: a training goes on from them.

        Args:
            keep: Number of newest checkpoints to keep.
            abandoned: Whether to add the abandoned ones. A training keeps those, since the user may still want them.
        """
        counted = [path for path, number in zip(self, self.iterations, strict=True) if number is not None]
        sound = itertools.islice((path for path in reversed(counted) if not self.fault(path)), keep)
        kept = {*counted[-keep:], *sound}
        rated = self._rated("reward", 1) if "reward" in self._record.metrics.names else []
        kept |= {*itertools.islice((path for *_, path in sorted(rated, reverse=True) if not self.fault(path)), 1)}
        given_up = [path for path in self if path in self.abandoned and abandoned]
        return [*given_up, *(path for path in counted if path not in kept)]


# -- checkpoint files ------------------------------------------------------------------------------------------------
# A companion is written before its checkpoint, so a checkpoint that exists has all of its companions.


TENSORS = (".npz", ".safetensors")
"""Suffixes of files that hold nothing but tensors."""
MOST_SEARCHED_BYTES = 2**30
"""Size up to which a companion is searched for values that are not finite. Its arrays are read into memory."""
REMOVED = ".removed-"
"""Beginning of the name of a folder that is being removed."""
OLDER = ".older-"
"""Beginning of the name of a complete folder until a new one has its name."""


def put_back(folder: Path) -> None:
    """Give each folder that a killed process was about to replace its name back; remove those that were replaced.

    Args:
        folder: Folder of a training's logs, where no process writes.
    """
    for older in [below / name for below, names, _ in entries.walk(folder) for name in names if name.startswith(OLDER)]:
        name = older.name.removeprefix(OLDER)
        if older.with_name(name).exists():
            entries.remove_tree(older, ignore_errors=True)
        else:
            entries.rename(older, name)


def checkpoints_of(run: RunDir, library: Library) -> tuple[list[Path], frozenset[Path], frozenset[Path]]:
    """Return the checkpoints of a run, those that are not wholly on this machine, and those that it has abandoned.

    The abandoned ones are the first. The others are sorted, oldest iteration first.

    Args:
        run: The run.
        library: The library that wrote them.
    """
    away = remote.remote_files(run)
    elsewhere = {path for path in (_owner(path, run, library) for path in away) if path is not None}
    folders = library.checkpoint_is_folder
    paths = run.checkpoints(library.checkpoint_glob, library.checkpoint_pattern, elsewhere, folders=folders)
    paths = [path for path in paths if not _is_companion(path.name, library)]
    elsewhere |= {path for path in paths if any(companion in away for companion in companions_of(path, library))}
    abandoned = _abandoned(run, library, paths)
    return sorted(paths, key=lambda path: path not in abandoned), frozenset(elsewhere), abandoned


def iteration_of(checkpoint: Path, library: Library, horizon: int) -> float | None:
    """Return the last iteration, from 0, that a checkpoint includes; None if its name has no number.

    It is negative for a checkpoint from before the end of the first iteration.

    Args:
        checkpoint: The checkpoint.
        library: The library that wrote it.
        horizon: Env steps of an iteration.
    """
    match = re.search(library.checkpoint_pattern, checkpoint.name)
    return library.checkpoint_iteration(int(match[1]), max(1, horizon)) if match else None


def _abandoned(run: RunDir, library: Library, paths: Sequence[Path]) -> frozenset[Path]:
    """Return the checkpoints of iterations that a later training has trained again, from an older checkpoint.

    Each training records the files that it writes (:func:`append_save`). Only a training that has begun abandons files.
    One that it has replaced a moment ago is not in its record yet, so a file also has to be older than its start. The
    checkpoint that a training starts from is never abandoned, even if an earlier training had abandoned it.
    """
    jobs = [job for job in run.jobs() if job.kind == "train" and job.counts() and files.there(job.started)]
    if len(jobs) < 2:
        return frozenset()
    names = [path.name for path in paths]
    by_name = {path.name: path for path in paths if names.count(path.name) == 1}
    abandoned, written = set[Path](), set[Path]()
    elsewhere = files.there(run.path / remote.REMOTE)  # the times of files that were copied here are of two clocks
    for job in jobs:
        with contextlib.suppress(RlnbError, OSError):  # a damaged record
            began_s, start = job.started.stat().st_mtime, options_of(TrainOptions, job).checkpoint
            record = files.read_json(job.started, files.RECORD_BYTES) or {}
            started = from_json(Started, record, ignore_unknown=True)
            if start is not None:
                numbers = {path: iteration_of(path, library, started.horizon) for path in written}
                again = {path for path, n in numbers.items() if n is not None and n >= started.first_iteration}
                abandoned |= {path for path in again if elsewhere or _is_older(path, began_s)}
                abandoned.discard(run.path / start)
        own = {by_name[save.file] for save in saves_of(job) or () if save.file in by_name}
        abandoned -= own
        written |= own
    return frozenset(abandoned)


def _is_older(path: Path, time_s: float) -> bool:
    """Return whether a file was written before a time, by the clock of the file system; True if it is gone."""
    try:
        return path.stat().st_mtime < time_s
    except OSError:
        return True


def newest_of(run: RunDir, library: Library) -> str | None:
    """Return the path of the newest checkpoint below the run's folder, as a result has it; None if there is none."""
    paths, _, abandoned = checkpoints_of(run, library)
    newest = next((path for path in reversed(paths) if path not in abandoned), None)
    return newest.relative_to(run.path).as_posix() if newest else None


def remote_files_of(run: RunDir, checkpoint: Path, library: Library) -> list[Path]:
    """Return the files of a checkpoint that are only on another machine, in the order in which they are copied.

    The file with the checkpoint's own name is the last, so a checkpoint that has arrived has its companions.
    """
    away = remote.remote_files(run)
    companions = [path for path in companions_of(checkpoint, library) if path in away]
    return [*companions, *sorted(path for path in away if path == checkpoint or checkpoint in path.parents)]


def files_of(checkpoint: Path) -> Iterator[Path]:
    """Yield the files of a checkpoint without its companions: itself, or all files of a folder."""
    return files_below(checkpoint) if checkpoint.is_dir() else iter([checkpoint])


def companions_of(checkpoint: Path, library: Library) -> list[Path]:
    """Return the paths of a checkpoint's companions, whether they exist or not."""
    names = (name.replace(STEM, checkpoint.stem) for name in library.checkpoint_companions)
    return [checkpoint.with_name(name) for name in names]


def folder_of(path: PurePosixPath, library: Library) -> PurePosixPath | None:
    """Return the checkpoint that is a folder and has a file in it; None if there is none.

    Args:
        path: Path of the file below the logs.
        library: The library that wrote it.
    """
    if not library.checkpoint_is_folder:
        return None
    parents = [*path.parents][-2::-1]  # without "."
    return next((parent for parent in parents if is_match(parent.as_posix(), library.checkpoint_glob)), None)


def belongs(path: PurePosixPath, library: Library) -> bool:
    """Return whether a file is part of a checkpoint, by its path below the logs."""
    if _is_companion(path.name, library) or folder_of(path, library) is not None:
        return True
    return not library.checkpoint_is_folder and is_match(path.as_posix(), library.checkpoint_glob)


def size_of(checkpoint: Path, library: Library) -> int:
    """Return the size of all files of a checkpoint, in bytes."""
    return sum(map(_size, (*files_of(checkpoint), *companions_of(checkpoint, library))))


def remove(checkpoint: Path, library: Library) -> None:
    """Remove all files of a checkpoint, and the companions last: a checkpoint that is still listed has them.

    Raises:
        OSError: A file cannot be removed.
    """
    if checkpoint.is_dir() and not checkpoint.is_symlink():
        hidden = checkpoint.with_name(f"{REMOVED}{checkpoint.name}")  # half a folder would look like a checkpoint
        entries.rename(checkpoint, hidden.name)
        entries.remove_tree(hidden)
    else:
        entries.remove(checkpoint)
    for companion in companions_of(checkpoint, library):
        entries.remove(companion)


def is_whole(checkpoint: Path, library: Library) -> bool:
    """Return whether a checkpoint and its companions are complete, as far as that shows without loading them.

    A loss of power, a full disk or a broken copy leaves an empty or a truncated file. A companion that does not exist
    was not saved.
    """
    if library.checkpoint_is_folder != checkpoint.is_dir():
        return False
    companions = (path for path in companions_of(checkpoint, library) if files.there(path))
    paths = [*files_of(checkpoint), *companions]
    return bool(paths) and all(map(is_whole_file, paths))


def fault_of(checkpoint: Path, library: Library, *, to_resume: bool = False) -> str:
    """Return why a checkpoint cannot be used, as the end of a sentence: torn, or not finite. Empty if it can.

    Args:
        checkpoint: The checkpoint.
        library: The library that wrote it.
        to_resume: Whether its companions are searched too for values that are not finite. Only a training that goes on
            reads them. The worker searches those that are larger than :data:`MOST_SEARCHED_BYTES`.
    """
    if not is_whole(checkpoint, library):
        return "is not a complete checkpoint: it is torn"
    fault = weights.fault_of(checkpoint)
    if fault or not to_resume:
        return f"is not finite: {fault}" if fault else ""
    searched = (path for path in companions_of(checkpoint, library) if _size(path) <= MOST_SEARCHED_BYTES)
    faults = ((path, weights.fault_of(path)) for path in searched)
    return next((f"is not finite: {fault} in {path.name}" for path, fault in faults if fault), "")


def is_whole_file(path: Path) -> bool:
    """Return whether a file is complete, as far as its format tells.

    ``torch.save`` and ``numpy.savez`` write a zip archive, which ends with its directory (section 4.3.6 of PKWARE's
    APPNOTE).
    """
    try:
        with files.open_regular(path) as file:
            if path.suffix == ".safetensors":
                return _is_whole_safetensors(file)
            begin = file.read(2)
            if begin == b"PK":
                return zipfile.is_zipfile(file)
        return bool(begin) and (path.suffix != ".json" or files.read_json(path) is not None)
    except (OSError, RlnbError, ValueError):
        return False


def _is_whole_safetensors(file: BinaryIO) -> bool:
    """Return whether a file is as long as its header says, which is a length, JSON, and then the tensors.

    https://huggingface.co/docs/safetensors describes the format.
    """
    length = int.from_bytes(file.read(8), "little")
    if length > files.LARGEST_BYTES:
        return False
    try:
        tensors = (entry for name, entry in json.loads(file.read(length)).items() if name != "__metadata__")
        end = max((int(entry["data_offsets"][1]) for entry in tensors), default=0)
    except (AttributeError, LookupError, TypeError):  # other JSON
        return False
    return file.seek(0, os.SEEK_END) == 8 + length + end


def _owner(path: Path, run: RunDir, library: Library) -> Path | None:
    """Return the checkpoint to which a file of a run belongs; None for a companion, and for any other file."""
    if not path.is_relative_to(run.logs):
        return None
    below = PurePosixPath(path.relative_to(run.logs))
    if (folder := folder_of(below, library)) is not None:
        return run.logs / folder
    is_own = belongs(below, library) and not _is_companion(below.name, library)
    return path if is_own else None


def _is_companion(name: str, library: Library) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern.replace(STEM, "*")) for pattern in library.checkpoint_companions)


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):  # removed at this moment in favour of a newer one
        return path.stat().st_size
    return 0


# -- times of saves --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Save:
    """One checkpoint that was written."""

    file: str
    """Name of the checkpoint's file or folder, or of a companion."""
    end_s: float
    """Time at which it was complete, in seconds since the epoch."""
    duration_s: float
    """Seconds that the training spent on it."""
    size: int = 0
    """Bytes of the file; 0 in the records of older versions of rlnb."""


def append_save(job: JobDir, save: Save) -> None:
    """Add a checkpoint to a job's record. A full disk, or a job whose folder was removed, does not end the training."""
    # One write to the end of the file: a training that is killed leaves at most one torn line.
    with contextlib.suppress(OSError), entries.open_to_add(job.saves) as file:
        file.write((json.dumps(files.plain(save)) + "\n").encode())


def saves_of(job: JobDir) -> list[Save] | None:
    """Return the checkpoints that a job has written, oldest first; None if they were not recorded.

    Torn and foreign lines are skipped.
    """
    lines = _lines(job.saves)
    if lines is None:
        return None
    saves = []
    for line in lines:
        with contextlib.suppress(ValueError, RlnbError, RecursionError):
            data = json.loads(line)
            saves += [from_json(Save, data, ignore_unknown=True)] if isinstance(data, dict) else []
    return saves


def _lines(path: Path) -> list[str] | None:
    try:
        with files.open_regular(path) as file:
            return file.read(files.LARGEST_BYTES).decode("utf-8", "replace").splitlines()
    except (OSError, RlnbError):
        return None
