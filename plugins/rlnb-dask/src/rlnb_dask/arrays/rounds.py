"""One submission of an array: submit it, watch its elements, and write the results that no agent could write."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from typing import Literal

import rlnb
from rlnb_dask.arrays.folder import ArrayFolder
from rlnb_dask.arrays.further import FurtherJobs
from rlnb_dask.arrays.launcher import ArrayQueueLauncher
from rlnb_dask.arrays.queue import AwayError

logger = logging.getLogger("rlnb_dask")
POLL_S = 0.5
"""Seconds between two checks of the jobs' folders."""
CHECKS_PER_S = 400
"""Largest number of jobs that are checked in a second; their folders are on a file system that the nodes share."""
LOOK_S = 2.0
"""Seconds between two queries of the queue, whose controller serves the whole cluster."""
BEAT_S = 15.0
"""Seconds between two heartbeats of a job that no agent has taken up."""
SETTLE_S = 3.0
"""Seconds that the result of an element that has left the queue may take to be visible on this machine."""
END_S = 30.0
"""Seconds that a cancelled run has to save and end before its element is removed from the queue."""
AGAIN_S, GIVE_UP_S = 10.0, 900.0
"""Seconds between two attempts to reach a queue's controller, and until the last one."""
DETAIL_LINES = 30
"""Last lines of the output of an element that ended without a result, which the result shows."""


class Round:
    """One submission of an array.

    Args:
        folder: Folder of the array.
        launcher: Launcher of the runs.
        number: Number of the submission, from 1.
        jobs: Job of each element.
        at_once: Largest number of elements that run at once; None leaves it to the queue.
        further: Jobs of the further array, to which interrupted runs are added.
    """

    def __init__(
        self,
        folder: ArrayFolder,
        launcher: ArrayQueueLauncher,
        number: int,
        jobs: Sequence[rlnb.HostedJob],
        *,
        at_once: int | None,
        further: FurtherJobs,
    ) -> None:
        self._folder, self._launcher, self._queue, self._number = folder, launcher, launcher.arrays, number
        self._at_once, self._further = at_once, further
        self._open = dict(enumerate(jobs))
        """Jobs whose elements have not ended, by position."""
        self._array = ""
        self._removed: set[int] = set()
        self._cancel_s: dict[int, float] = {}
        self._missing_s: dict[int, float] = {}
        self._beat_s = self._look_s = 0.0
        self._line = ""

    def run(self) -> None:
        """Run the elements to their end."""
        self._beat()
        if not self._submit():
            return
        while self._open:
            self._beat()
            self._withdraw()
            if time.monotonic() - self._look_s >= LOOK_S:
                self._look()
                self._look_s = time.monotonic()
            time.sleep(max(POLL_S, len(self._open) / CHECKS_PER_S))

    # -- before the elements run

    def _submit(self) -> bool:
        """Submit the array; return whether the queue took it. Try again while its controller is away."""
        self._folder.write_members(self._number, [job.path for job in self._open.values()])
        give_up_s = time.monotonic() + GIVE_UP_S
        while any(not job.cancelled for job in self._open.values()):
            try:
                self._array = self._queue.submit(
                    self._folder.script,
                    self._folder.members(self._number),
                    count=len(self._open),
                    at_once=self._at_once,
                )
                break
            except rlnb.RlnbError as exc:
                if not isinstance(exc, AwayError) or time.monotonic() > give_up_s:
                    self._end_all("failed", f"the queue has refused the array: {exc}")
                    return False
                logger.info("%s; the next attempt is in %.0f s", exc, AGAIN_S)
            self._beat()
            time.sleep(AGAIN_S)
        else:
            self._end_all("cancelled", "cancelled before it was submitted")
            return False
        self._folder.write_id(self._number, self._array)
        logger.info("submitted to the queue: array %s with %d jobs", self._array, len(self._open))
        for position, job in self._open.items():
            job.note(queue=self._launcher.name, jobs=[self._element(position)])
        return True

    def _end_all(self, outcome: Literal["failed", "cancelled"], error: str) -> None:
        logger.info("%s", error)
        for job in self._open.values():
            cancelled = job.cancelled
            job.end("cancelled" if cancelled else outcome, "cancelled before it was submitted" if cancelled else error)
        self._open.clear()

    def _element(self, position: int) -> str:
        return self._queue.element(self._array, position)

    # -- while they run

    def _beat(self) -> None:
        """Keep the heartbeat of each job, also of those that wait for the further array."""
        if time.monotonic() - self._beat_s >= BEAT_S or not self._beat_s:
            self._beat_s = time.monotonic()
            for job in (*self._open.values(), *self._further.jobs):
                job.beat()

    def _withdraw(self) -> None:
        """Remove the elements of cancelled jobs from the queue: those that wait at once, others if they do not end."""
        now, positions = time.monotonic(), []
        for position, job in self._open.items():
            if position in self._removed or not job.cancelled:
                continue
            since = self._cancel_s.setdefault(position, now)
            if not job.hosts or now - since > END_S:
                positions.append(position)
        if positions:
            self._queue.remove(self._array, positions)
            self._removed.update(positions)
            for position in positions:
                self._open[position].end("cancelled", "cancelled while it waited in the queue")

    def _look(self) -> None:
        """Ask the queue for the elements that it still has, and finish the others."""
        states = self._queue.look(self._array)
        if states is None:
            return
        self._log(states.values())
        for position, job in list(self._open.items()):
            if position in states:
                self._missing_s.pop(position, None)
                if fault := self._queue.fault(self._array, states[position]):
                    job.end("failed", fault)
                    self._queue.remove(self._array, [position])
                continue
            since = self._missing_s.setdefault(position, time.monotonic())
            if job.result is not None or time.monotonic() - since >= SETTLE_S:
                self._finish(position, job)

    def _log(self, states: Collection[str]) -> None:
        names = sorted(states)
        line = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names)) or "no element is left"
        if line != self._line:
            self._line = line
            logger.info("the queue says: %s", line)

    # -- when one has ended

    def _finish(self, position: int, job: rlnb.HostedJob) -> None:
        """Write the result of an element that has none, and let its run go on if it was interrupted."""
        del self._open[position]
        result = job.result
        if result is not None and not result.interrupted:
            return
        state = self._queue.final(self._array, position)
        if result is None:
            self._explain(position, job, state)
            result = job.result
        if result is None or not result.interrupted or job.cancelled:
            return
        try:
            if not self._queue.unwanted(state) and job.go_on(self._launcher.max_restarts, self._further):
                logger.info("%s goes on in a further array", job.manifest.run_id)
                return
        except rlnb.RlnbError as exc:
            logger.info("%s does not go on: %s", job.manifest.run_id, exc)
        job.close()

    def _explain(self, position: int, job: rlnb.HostedJob, state: str) -> None:
        """Write the result of an element whose agent has written none: it was killed, or never started."""
        title, name = self._launcher.title, self._element(position)
        why = f"{title}'s job {name} is {state}" if state else f"{title} no longer lists its job {name}"
        hosts = job.hosts
        # A queue that does not say how a job ended gives no reason to try one again that never began.
        interrupted = not self._queue.unwanted(state) and bool(state or hosts)
        if hosts:
            job.end("failed", f"node 0 ({hosts[0]}) is lost: {why}", interrupted=interrupted)
            return
        log = job.path / "node0.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        text += self._folder.output(self._array, position + self._queue.first)
        line = self._launcher.reason(text)
        last = f". The last line of its output: {line}" if line else ", and it has printed nothing"
        detail = "\n".join(text.splitlines()[-DETAIL_LINES:])
        job.end("failed", f"no agent was started: {why}{last}", detail, interrupted=interrupted)
