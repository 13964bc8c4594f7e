"""A run's checkpoints: a list of paths with the newest and the best one by metric."""

from __future__ import annotations

import itertools
import logging
import math
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from rlnb.contracts.libraries import Library
from rlnb.errors import NotFiniteError, RlnbError, RunError, refuse_other_than_text
from rlnb.hooks import plugins
from rlnb.metrics.metrics import Metrics
from rlnb.records import checkpoint_files
from rlnb.records.layout import RunDir
from rlnb.spec import Started
from rlnb.storage import files

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
    """Checkpoints of a run, oldest iteration first.

    Args:
        paths: The checkpoints.
        record: The run.
        far: Those that are only on another machine, with the paths that they have here once they are copied.
    """

    def __init__(self, paths: Sequence[Path], record: Trained, far: Collection[Path] = ()) -> None:
        super().__init__(paths)
        self._record, self.far = record, frozenset(far)

    @property
    def last(self) -> Path | None:
        """The newest checkpoint; None if the run has none."""
        return self[-1] if self else None

    def last_sound(self, before: Path | None = None, *, to_resume: bool = False) -> Path | None:
        """Return the newest checkpoint that is neither torn nor has weights that are not finite; None without one.

        A warning names those that are passed over. A checkpoint on another machine is taken for sound.

        Args:
            before: Checkpoint of the run; only older ones are considered. None considers all.
            to_resume: Whether its companions have to be finite too.
        """
        passed: list[str] = []
        older = self[: self.index(before)] if before is not None and before in self else self
        for path in reversed(older):
            if not (fault := self.fault(path, to_resume=to_resume)):
                if passed:
                    logger.warning("%s %s is used instead.", " ".join(passed), path.name)
                return path
            passed.append(f"{path.name} {fault}.")
        return None

    def last_whole(self) -> Path | None:
        """Return the newest checkpoint that is not torn; None if there is none. Its weights are not read."""
        return next((path for path in reversed(self) if path in self.far or self.is_whole(path)), None)

    def fault(self, path: Path, *, to_resume: bool = False) -> str:
        """Return why a checkpoint cannot be used, as the end of a sentence; empty if it is sound."""
        return "" if path in self.far else checkpoint_files.fault_of(path, self._library, to_resume=to_resume)

    def none_sound(self, *, to_resume: bool = False) -> str:
        """Return the end of a sentence that says why none of the checkpoints can be used; there is at least one."""
        fault = self.fault(self[-1], to_resume=to_resume)
        return f"has no checkpoint that can be used. The newest, {self[-1].name}, {fault}."

    def other_fix(self, path: Path, *, to_resume: bool = False) -> str:
        """Return the fix for a checkpoint that cannot be used: another one that is sound, if there is one.

        Args:
            path: The checkpoint, or one of its companions, which only a training that goes on reads.
            to_resume: Whether the companions of the other one have to be finite too.
        """
        owner = next((one for one in self if path in checkpoint_files.companions_of(one, self._library)), path)
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

    def far_files(self, path: Path) -> list[Path]:
        """Return the files of a checkpoint that are only on another machine, in the order in which they are copied."""
        return checkpoint_files.far_files_of(self._record.folder, path, self._library)

    def is_whole(self, path: Path) -> bool:
        """Return whether a checkpoint and its companions are complete, as far as that shows without loading them."""
        return checkpoint_files.is_whole(path, self._library)

    def size(self, path: Path) -> int:
        """Return the size of a checkpoint in bytes, all its files and companions included."""
        return checkpoint_files.size_of(path, self._library)

    def delete(self, path: Path) -> None:
        """Delete a checkpoint with its companions.

        Raises:
            RunError: The checkpoint is not below the run's folder, but where a link leads.
            OSError: A file cannot be deleted.
        """
        folder = self._record.folder.path.resolve()
        if not path.parent.resolve().is_relative_to(folder):
            raise RunError(f"{path} is in {path.parent.resolve()}, which is not in {folder}. Delete it there.")
        checkpoint_files.remove(path, self._library)

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
        """The last iteration, from 0, that each checkpoint includes; None if its name has no number (a "best" file)."""
        library, started = self._record.library_spec, self._record.last_started
        if library is None:
            return [None] * len(self)
        per = started.horizon if started and library.checkpoint_unit == "timestep" else 1
        matches = (re.search(library.checkpoint_pattern, path.name) for path in self)
        finished = 1 if library.checkpoint_counts_finished else 0
        return [int(match.group(1)) / per - finished if match else None for match in matches]

    def spare(self, keep: int) -> list[Path]:
        """Return the numbered checkpoints that are neither among the newest ``keep`` nor the best by reward.

        If some of these are torn or not finite, the newest ``keep`` sound ones stay too: a training goes on from them.
        """
        counted = [path for path, number in zip(self, self.iterations, strict=True) if number is not None]
        sound = itertools.islice((path for path in reversed(counted) if not self.fault(path)), keep)
        kept = {*counted[-keep:], *sound}
        rated = self._rated("reward", 1) if "reward" in self._record.metrics.names else []
        kept |= {*itertools.islice((path for *_, path in sorted(rated, reverse=True) if not self.fault(path)), 1)}
        return [path for path in counted if path not in kept]
