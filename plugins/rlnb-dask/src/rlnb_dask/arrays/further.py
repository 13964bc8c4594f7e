"""The runs of an array that were interrupted and go on in a further array."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlnb.launchers import DetachedJob
from rlnb_dask.arrays.launcher import ArrayHostLauncher, ArrayQueueLauncher


class FurtherJobs(ArrayHostLauncher):
    """The launcher of runs that go on: collects their jobs for a further array, whose host is this process.

    Args:
        launcher: Launcher of the runs.
        folder: Folder of the array.
    """

    def __init__(self, launcher: ArrayQueueLauncher, folder: str) -> None:
        self.name, self.nodes, self.nproc_per_node = launcher.name, launcher.nodes, launcher.nproc_per_node
        self.settings, self.max_running, self.walltime_s = launcher.settings, launcher.max_running, launcher.walltime_s
        self.check = launcher.check
        self.jobs: list[DetachedJob] = []
        """The jobs of the further array."""
        self._folder = folder

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Any]:
        """Keep a job for the further array, and return its handle."""
        self.jobs.append(DetachedJob(job_dir))
        return {**self.own_handle(), "array": self._folder}
