"""A run's checkpoints: a list of paths with the newest and the best one by metric."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from rlnb import plugins
from rlnb.errors import RlnbError, refuse_other_than_text
from rlnb.metrics.metrics import Metrics
from rlnb.records import checkpoint_files
from rlnb.records.layout import RunDir
from rlnb.registration.library import Library
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

    def last_whole(self, before: Path | None = None) -> Path | None:
        """Return the newest checkpoint that is not torn; None if there is none. A warning names those passed over.

        Args:
            before: Checkpoint of the run; only older ones are considered. None considers all.
        """
        torn: list[str] = []
        older = self[: self.index(before)] if before is not None and before in self else self
        for path in reversed(older):
            if path in self.far or self.is_whole(path):
                if torn:
                    logger.warning("%s is incomplete. %s is used instead.", ", ".join(torn), path.name)
                return path
            torn.append(path.name)
        return None

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
            OSError: A file cannot be deleted.
        """
        checkpoint_files.remove(path, self._library)

    @property
    def _library(self) -> Library:
        return self._record.library_spec or plugins.SCRIPT

    def best(self, metric: str = "reward", *, lowest: bool = False) -> Path | None:
        """Return the checkpoint at whose iteration a metric was best: the newest of equals, None if the run has none.

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
            raise RlnbError(f"{metric!r} of {self._record.id} has no value at any of its {len(self)} checkpoints.")
        return max(rated)[2] if rated else None

    def _rated(self, metric: str, sign: int) -> list[tuple[float, float, Path]]:
        series = self._record.metrics[metric]
        logged = sorted(zip(series.iterations, series.values, strict=True))
        rated = []
        for number, path in zip(self.iterations, self, strict=True):
            before = [value for iteration, value in logged if number is not None and iteration <= number]
            if number is not None and before and before[-1] == before[-1]:  # a number, and not NaN
                rated.append((sign * before[-1], number, path))
        return rated

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
        """Return the numbered checkpoints that are neither among the newest ``keep`` nor the best by reward."""
        counted = [path for path, number in zip(self, self.iterations, strict=True) if number is not None]
        rated = self._rated("reward", 1) if "reward" in self._record.metrics.names else []
        best = max(rated)[2] if rated else None
        return [path for path in counted[: max(0, len(counted) - keep)] if path != best]
