"""The host of an array: one process for all its runs, from the submission to the end of the last element."""

from __future__ import annotations

import logging
from pathlib import Path

from rlnb.launchers import DetachedJob, make_launcher
from rlnb_dask.arrays.folder import ArrayFolder
from rlnb_dask.arrays.further import FurtherJobs
from rlnb_dask.arrays.launcher import ArrayQueueLauncher
from rlnb_dask.arrays.rounds import Round, apart

logger = logging.getLogger("rlnb_dask")


class ArrayHost:
    """Owns an array: submits it, watches it, and submits the interrupted runs as a further array.

    A further array is submitted when the one before it has ended, so that there are never more runs at once than the
    limit allows.

    Args:
        folder: Folder of the array.
    """

    def __init__(self, folder: ArrayFolder) -> None:
        self._folder, self._request = folder, folder.request()
        launcher = make_launcher(self._request.launcher, self._request.settings)
        assert isinstance(launcher, ArrayQueueLauncher)
        self._launcher = launcher

    def run(self) -> None:
        """Run the array to its end."""
        logger.info("%r, at most %s at once", self._launcher, self._request.at_once or "all")
        jobs, number = [DetachedJob(Path(path)) for path in self._request.job_dirs], 1
        while jobs:
            further = FurtherJobs(self._launcher, str(self._folder.path))
            Round(self._folder, self._launcher, number, jobs, at_once=self._request.at_once, further=further).run()
            with apart(self._folder.path):
                self._folder.remove_empty_outputs()
            jobs, number = further.jobs, number + 1
