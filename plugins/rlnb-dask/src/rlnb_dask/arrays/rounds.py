"""One submission of an array: submit it, watch its elements, and write the results that no agent could write."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

import rlnb
from rlnb.launchers import DetachedJob
from rlnb_dask.arrays.folder import ArrayFolder
from rlnb_dask.arrays.further import FurtherJobs
from rlnb_dask.arrays.launcher import ArrayQueueLauncher
from rlnb_dask.arrays.queue import AwayError
from rlnb_dask.queues import queries

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
"""Seconds that a cancelled run has to end, besides those to save, before its element is removed from the queue."""
AGAIN_S, GIVE_UP_S = 10.0, 900.0
"""Seconds between two attempts to reach a queue's controller, and until the last one."""
BEFORE, WAITED = "cancelled before it was submitted", "cancelled while it waited in the queue"
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
        jobs: Sequence[DetachedJob],
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
        self._beat_s = self._look_s = self._remove_s = 0.0
        self._line = ""

    def run(self) -> None:
        """Run the elements to their end."""
        self._beat()
        if not self._submit():
            return
        while self._open:
            self._beat()
            self._end_waiting()
            self._withdraw()
            if time.monotonic() - self._look_s >= LOOK_S:
                self._look()
                self._look_s = time.monotonic()
            time.sleep(max(POLL_S, len(self._open) / CHECKS_PER_S))

    # -- before the elements run

    def _submit(self) -> bool:
        """Submit the array; return whether the queue took it. Try again while its controller is away."""
        try:
            self._folder.write_members(self._number, [job.path for job in self._open.values()])
            self._array = self._id()
        except (OSError, rlnb.RlnbError) as exc:
            self._end_all("failed", f"the array could not be submitted: {exc}")
            return False
        if not self._array:
            self._end_all("cancelled", BEFORE)
            return False
        logger.info("submitted to the queue: array %s with %d jobs", self._array, len(self._open))
        with apart("the id of the array"):  # without the file, only this process can find the elements
            self._folder.write_id(self._number, self._array)
        for position, job in self._open.items():
            with apart(job.path):
                job.note(queue=self._launcher.name, jobs=[self._element(position)])
        return True

    def _id(self) -> str:
        """Return the id of the array once the queue has it; an empty text if all jobs were cancelled before.

        An attempt without an answer may have succeeded. A second array would start a copy of each run, so another
        attempt is made only once the queue says that it has no array of this name.

        Raises:
            RlnbError: The queue refuses the array, or its controller has not answered for long.
        """
        name, error = f"rlnb-{self._folder.path.name}-{self._number}", None
        script, members = self._folder.script, self._folder.members(self._number)
        give_up_s = time.monotonic() + GIVE_UP_S
        while self._wanted():
            if error is not None and time.monotonic() > give_up_s:
                raise error
            try:
                count = len(self._open)
                return self._queue.submit(script, members, name=name, count=count, at_once=self._at_once)
            except rlnb.RlnbError as exc:
                error = rlnb.RlnbError(self._launcher.reason(str(exc)))
                if self._launcher.is_full(str(exc)):  # jobs of days may be in the queue
                    give_up_s = time.monotonic() + GIVE_UP_S
                elif not isinstance(exc, AwayError) and not self._launcher.is_away(str(exc)):
                    raise error from exc
            self._hold(str(error))
            array = None
            while array is None and self._wanted() and time.monotonic() <= give_up_s:
                self._beat()
                time.sleep(AGAIN_S)
                array = self._queue.submitted(name)
            if array:
                return array
        return ""

    def _hold(self, reason: str) -> None:
        """Record why the queue does not take the array at present."""
        logger.info("%s; the next attempt is in %.0f s", reason, AGAIN_S)
        for job in self._open.values():
            with apart(job.path):
                job.waits(reason)

    def _wanted(self) -> bool:
        return any(not job.cancelled for job in self._open.values())

    def _end_all(self, outcome: Literal["failed", "cancelled"], error: str) -> None:
        logger.info("%s", error)
        for job in self._open.values():
            with apart(job.path):
                if job.cancelled:
                    job.end("cancelled", BEFORE)
                else:
                    job.end(outcome, error)
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

    def _end_waiting(self) -> None:
        """End cancelled jobs that wait for the further array."""
        for job in [*self._further.jobs]:
            if job.cancelled:
                with apart(job.path):
                    job.end("cancelled", BEFORE)
                    self._further.jobs.remove(job)

    def _withdraw(self) -> None:
        """Remove the elements of cancelled jobs from the queue: those that wait at once, others if they do not end."""
        now = time.monotonic()
        if now < self._remove_s:
            return
        positions, waiting = [], []
        for position, job in self._open.items():
            if position in self._removed or not job.cancelled:
                continue
            with apart(job.path):
                since, hosts = self._cancel_s.setdefault(position, now), job.hosts
                if not hosts or now - since > END_S + job.save_s:
                    positions.append(position)
                    waiting += [] if hosts else [job]
        if not positions:
            return
        if not self._queue.remove(self._array, positions):
            self._remove_s = now + LOOK_S
            return
        self._removed.update(positions)
        for job in waiting:  # the agent of another one may still write its result
            with apart(job.path):
                job.end("cancelled", WAITED)

    def _look(self) -> None:
        """Ask the queue for the elements that it still has, and finish the others."""
        for position, job in list(self._open.items()):
            with apart(job.path):
                if not job.path.exists():
                    logger.warning("%s was deleted; its element is not watched any longer", job.path)
                    del self._open[position]
        states = self._queue.look(self._array)
        if states is None:
            return
        self._log(states.values())
        for position, job in list(self._open.items()):
            with apart(job.path):
                if position in states:
                    self._missing_s.pop(position, None)
                    self._seen(position, job, states[position])
                else:
                    self._missing(position, job)

    def _seen(self, position: int, job: DetachedJob, state: str) -> None:
        """Record why an element waits, or that it will never run."""
        if fault := self._queue.fault(self._array, state):
            job.end("failed", fault)
            self._queue.remove(self._array, [position])
        job.waits("" if fault else self._launcher.waits(f"{self._element(position)} {state}"))

    def _missing(self, position: int, job: DetachedJob) -> None:
        """Finish a job whose element has left the queue, once its result and the queue's account can be known."""
        missing_s = time.monotonic() - self._missing_s.setdefault(position, time.monotonic())
        if missing_s > GIVE_UP_S:  # every attempt to read or write its records has failed
            del self._open[position]
            return
        job.waits("")
        result = job.result
        if result is None and missing_s < SETTLE_S:
            return
        is_known = job.cancelled or (result is not None and not result.interrupted)
        state = "" if is_known else self._queue.final(self._array, position)
        if is_known or result is not None or state or missing_s >= self._queue.account_s:
            self._finish(position, job, state)
            del self._open[position]

    def _log(self, states: Collection[str]) -> None:
        names = sorted(states)
        line = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names)) or "no element is left"
        if line != self._line:
            self._line = line
            logger.info("the queue says: %s", line)

    # -- when one has ended

    def _finish(self, position: int, job: DetachedJob, state: str) -> None:
        """Write the result of an element that has none, and let its run go on if it was interrupted."""
        result = job.result
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
            logger.info("%s does not go on: %s", job.path, exc)  # its manifest may be the cause
        job.close()

    def _explain(self, position: int, job: DetachedJob, state: str) -> None:
        """Write the result of an element whose agent has written none: it was killed, or never started."""
        name, hosts = self._element(position), job.hosts
        if job.cancelled:
            job.end("cancelled", "cancelled; its element ended before it had saved" if hosts else WAITED)
            return
        why = self._launcher.meaning(name, state) if state else f"{self._launcher.title} no longer lists its job {name}"
        # A queue that does not say how a job ended gives no reason to try one again that never began.
        interrupted = not self._queue.unwanted(state) and bool(state or hosts)
        if hosts:
            job.end("failed", f"node 0 ({hosts[0]}) is lost: {why}", interrupted=interrupted)
            return
        launch_failed = queries.is_launch_failure(state)
        log = job.path / "node0.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        text += self._folder.output(self._array, position + self._queue.first)
        line = self._launcher.reason(text)
        last = f". The last line of its output: {line}" if line else ", and it has printed nothing"
        detail = "\n".join(text.splitlines()[-DETAIL_LINES:])
        error = f"no agent was started: {why}{last}"
        job.end("failed", error, detail, interrupted=interrupted, launch_failed=launch_failed)


@contextlib.contextmanager
def apart(name: object) -> Iterator[None]:
    """Log an error of one run, which must not end the host of all runs: a full disk, or a damaged record."""
    try:
        yield
    except (OSError, rlnb.RlnbError) as exc:
        logger.warning("%s: %s", name, exc)
