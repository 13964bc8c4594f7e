"""The base class of the launchers of queues that have arrays."""

from __future__ import annotations

import functools
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from rlnb.launchers import DetachedLauncher
from rlnb.plugin import Problem
from rlnb_dask.arrays.folder import ArrayFolder, ArrayRequest
from rlnb_dask.arrays.queue import ArrayQueue
from rlnb_dask.arrays.script import element_script
from rlnb_dask.queues import launcher
from rlnb_dask.queues.launcher import QueueLauncher

LOOK_S = 3.0
"""Seconds for which an answer of the queue about an array without a host is kept."""


class ArrayHostLauncher(DetachedLauncher):
    """Starts the host of an array, whose folder takes the place of a job's."""

    module: ClassVar[str] = "rlnb_dask.arrays"


class ArrayQueueLauncher(QueueLauncher):
    """A queue launcher that also starts many runs as one array, which one process of this machine hosts."""

    arrays: ClassVar[ArrayQueue]
    """The queue's commands for arrays."""

    def check_array(self, count: int) -> Sequence[Problem]:
        """Return every reason why the queue would refuse an array of ``count`` jobs."""
        problems = []
        if self.nodes != 1 and not self.single_job:
            what = f"An array of {self.title} has one node for each run, not {self.nodes}."
            problems.append(Problem(what=what, fix="Use nodes=1, or array=False."))
        most = self.arrays.most()
        if most is not None and count > most:
            what = f"An array of this {self.title} has at most {most} jobs, not {count}."
            problems.append(Problem(what=what, fix=f"Use at most {most} runs, or array=False."))
        if not problems and not any(launcher.setting_problems(self)) and not any(launcher.queue_problems(self)):
            refusal = self.array_refusal(count)  # otherwise, each run has the problem of its own job
            problems += [refusal] if refusal else []
        return problems

    def array_refusal(self, count: int) -> Problem | None:
        """Return why the queue would refuse an array of ``count`` jobs, although it would accept one such job."""
        return None

    def submit_array(self, job_dirs: Sequence[Path], *, at_once: int | None) -> Sequence[Mapping[str, Any]]:
        """Start the host of an array, and return the handle of each job."""
        folder = ArrayFolder.create(job_dirs[0].parents[3])
        request = ArrayRequest(
            launcher=self.name,
            settings=self.settings,
            at_once=at_once,
            job_dirs=[str(path) for path in job_dirs],
        )
        try:
            folder.write_script(self.element_script())
            folder.write_request(request)
            handle = {**ArrayHostLauncher().submit(None, folder.path), "array": str(folder.path)}
        except BaseException:
            shutil.rmtree(folder.path, ignore_errors=True)
            raise
        return [handle] * len(job_dirs)

    def element_script(self) -> str:
        """Return the job script of an element of an array."""
        arguments = self.job_arguments(self.nodes)
        job = self.job_class()("<scheduler>", name="<name>", **arguments)
        # With several nodes, the user's lines run on each of them, below srun.
        lines = self.own_prologue() if self.nodes == 1 else ()
        prologue = [*self.site_lines("job-script-prologue"), *lines, *self.exports()]
        python = self.python or sys.executable
        return element_script(
            shebang=job.shebang, header=job.job_header, prologue=prologue, queue=self.arrays, python=python
        )

    def spread(self) -> Sequence[str]:
        """Return the command that starts a process on each node of an element; empty if the element has one node."""
        return ()

    def alive(self, handle: Mapping[str, Any], job_dir: Path) -> bool | None:
        """Return whether the job's host lives. An element of an array also lives without it, while it is queued."""
        alive = super().alive(handle, job_dir)
        return self._state(handle, job_dir) is not None if alive is False and "array" in handle else alive

    def cancel(self, handle: Mapping[str, Any], job_dir: Path) -> None:
        """Remove a waiting element from the queue if its array's host, which does so otherwise, has ended."""
        if "array" not in handle:
            super().cancel(handle, job_dir)
            return
        if self.host_lives(super().alive(handle, job_dir), job_dir):
            return
        state = self._state(handle, job_dir)
        place = self._place(handle, job_dir)
        if place and state and self.arrays.waits(state):
            self.arrays.remove(place[0], [place[1]])

    def _state(self, handle: Mapping[str, Any], job_dir: Path) -> str | None:
        """Return the queue's state of an element; None if it is not in the queue."""
        place = self._place(handle, job_dir)
        states = _states(self.arrays, place[0], int(time.monotonic() / LOOK_S)) if place else None
        return states.get(place[1]) if states and place else None

    def _place(self, handle: Mapping[str, Any], job_dir: Path) -> tuple[str, int] | None:
        """Return the queue's id of a job's array and the job's position in it; None before it was submitted.

        Raises:
            RlnbError: The handle names no array, or the array's record no id of the queue.
        """
        folder = ArrayFolder.of_handle(handle, job_dir)
        place = folder.place(job_dir)
        return (self.checked_id(place[0], folder.path), place[1]) if place else None


@functools.lru_cache(maxsize=64)
def _states(queue: ArrayQueue, array: str, period: int) -> Mapping[int, str] | None:
    """Return the states of an array's elements, with one query for all runs of a list."""
    return queue.look(array)
