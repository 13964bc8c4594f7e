"""The load of a run on its nodes, and its size on the disk."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlnb.metrics.events import thinned
from rlnb.records.layout import RunDir
from rlnb.storage.entries import files_below

SAMPLES = 64
"""Most samples of each file that enter a mean. The node agents take one every 5 s."""
_NODE = re.compile(r"system/(?P<node>node\d+)/(?P<measure>cpu_cores|gpu\d+_percent)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """The mean load of a run while it had nodes."""

    cpu_cores: float = math.nan
    """Busy cores over all nodes; NaN for a run that ended before its first sample."""
    gpu_percent: float = math.nan
    """Use of its GPUs, 0 to 100, averaged over them; NaN without GPUs."""
    disk_bytes: int = 0
    """Size of the run's folder. Files that were deleted since do not count."""
    event_bytes: int = 0
    """Size of its event files, with those of the load of the nodes."""
    media_bytes: int = 0
    """Size of its pictures and films."""


def usage_of(run: RunDir) -> Usage:
    """Return the mean load of a run and its size on the disk."""
    size = events = media = 0
    sums: Mapping[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    pictures, samples = f"{run.media}{os.sep}", f"{run.system}{os.sep}"  # Path.parents is slow for thousands of runs
    for path in files_below(run.path):
        name = os.fspath(path)
        with contextlib.suppress(OSError):
            size += (part := os.lstat(name).st_size)
            events += part if "tfevents" in path.name else 0
            media += part if name.startswith(pictures) else 0
        if name.startswith(samples):
            _add(path, sums)
    means = {tag: total / weight for tag, (total, weight) in sums.items() if weight}
    cores = [mean for tag, mean in means.items() if tag.endswith("cpu_cores")]
    gpus = [mean for tag, mean in means.items() if tag.endswith("_percent")]
    return Usage(
        cpu_cores=sum(cores) if cores else math.nan,
        gpu_percent=sum(gpus) / len(gpus) if gpus else math.nan,
        disk_bytes=size,
        event_bytes=events,
        media_bytes=media,
    )


def _add(path: Path, sums: Mapping[str, list[float]]) -> None:
    """Add the samples of an event file to the weighted sums of each measure; a file counts by its number of records."""
    columns, records = thinned(path, SAMPLES)
    for tag, column in columns.items():
        if _NODE.match(tag):
            total, weight = sums[tag]
            mean = sum(value for _, _, value in column) / len(column)
            sums[tag][:] = total + mean * records, weight + records
