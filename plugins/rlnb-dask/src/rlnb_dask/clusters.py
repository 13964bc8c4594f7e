"""The Dask cluster of one running job: nodes from a queue, or a Dask cluster of the user."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from distributed import Client

from rlnb.launchers import DetachedJob
from rlnb_dask import causes, certificate
from rlnb_dask.existing import ExistingCluster
from rlnb_dask.queues import queries
from rlnb_dask.queues.launcher import LOOPBACK, QueueLauncher

logger = logging.getLogger("rlnb_dask")
COMPLETING_S = 30.0
"""Seconds to wait for a queue to report the final state of a job that it has just ended."""
SAY_S = 3.0
"""The same, while the other nodes wait to learn why they have to end."""
AWAY_S = 900.0
"""Seconds for which a submission is tried again while the queue's controller does not answer; a failover is shorter."""
FIRST_PAUSE_S, LONGEST_PAUSE_S, POLL_S = 4.0, 60.0, 0.5
"""Seconds between two tries at first and at most, and between checks for a cancellation meanwhile."""
LOOK_S = 3.0
"""Seconds between queries of the queue, whose controller serves the whole cluster."""


class Cluster:
    """The nodes of one job.

    Args:
        launcher: The source of the nodes.
        nodes: Number of nodes.
        job: The job.
    """

    def __init__(self, launcher: QueueLauncher | ExistingCluster, nodes: int, job: DetachedJob) -> None:
        self._launcher, self._nodes, self._job = launcher, nodes, job
        self._errors: list[BaseException] = []
        self._ids: list[str] = []
        self._ids_on_disk: tuple[str, ...] = ()
        """Ids in the job's record, with which the jobs can be cancelled if this process dies."""
        self._look_s = 0.0
        """Time of the last query of the queue, in seconds of the monotonic clock."""
        self._line = ""
        """The queue's most recent line about the jobs."""
        self._held: dict[Callable[[], Awaitable[str]], str] = {}
        """Why the queue takes no job at present, by the submission that waits."""
        self._dashboard: dict[str, int] = {}
        self._early = False
        """Whether a job has ended before all nodes were ready."""
        self._ends: Mapping[str, str] = {}
        """Final states, by id, of the jobs that have ended before all nodes were ready."""

    @contextlib.contextmanager
    def client(self) -> Iterator[Client]:
        """Yield a client of the cluster; release the queue's nodes afterwards."""
        if isinstance(self._launcher, ExistingCluster):
            with Client(self._launcher.address, security=self._launcher.security(self._job.path)) as client:
                try:
                    yield client
                finally:
                    shutil.rmtree(self._job.path / ".tls", ignore_errors=True)
            return
        keys = self._job.path / ".tls"  # the nodes read the keys here; other users cannot
        keys.mkdir(mode=0o700, exist_ok=True)
        try:
            with self._closing(self._queue(self._launcher, keys)) as cluster, Client(cluster) as client:
                if self._launcher.dashboard:
                    self._dashboard = {"dashboard": cluster.scheduler_info["services"]["dashboard"]}
                cluster.scale(jobs=1 if self._launcher.single_job else self._nodes)
                yield client
        finally:
            shutil.rmtree(keys, ignore_errors=True)

    def _queue(self, launcher: QueueLauncher, keys: Path) -> Any:
        interface = {"interface": launcher.host_interface} if launcher.host_interface else {}
        # By default, Dask imports bokeh even for a dashboard that is never opened.
        dashboard = {"dashboard": launcher.dashboard, "dashboard_address": LOOPBACK}
        return launcher.cluster_class()(
            job_cls=self._recorded(launcher.job_class()),
            security=certificate.security(),
            shared_temp_directory=str(keys),
            scheduler_options={**dashboard, **interface},
            silence_logs="error",
            **launcher.job_arguments(self._nodes, log_directory=self._job.path),
        )

    @contextlib.contextmanager
    def _closing(self, cluster: Any) -> Iterator[Any]:
        """Close the cluster at the end, which releases the nodes."""
        try:
            yield cluster
        finally:
            try:
                cluster.close()
            except AssertionError:  # Dask asserts that each of its jobs has started
                if not self._errors:
                    raise

    def _recorded(self, base: Any) -> Any:
        """Return a dask-jobqueue job class that records each job's id and each submission error.

        dask-jobqueue itself only logs them. It also submits a job once; this class waits for a controller that is away.
        """
        errors, ids, submit = self._errors, self._ids, self._submit
        # Tornado logs the traceback of an error that is recorded here.
        logging.getLogger("tornado.application").addFilter(
            lambda record: not (record.exc_info and record.exc_info[1] in errors)
        )

        class Recorded(base):  # type: ignore[misc]
            async def _submit_job(self, script_filename: str) -> str:
                return await submit(functools.partial(super()._submit_job, script_filename))

            async def start(self) -> None:
                try:
                    await super().start()
                except Exception as exc:
                    errors.append(exc)
                    raise
                ids.append(self.job_id)

        Recorded.__name__ = base.__name__
        return Recorded

    async def _submit(self, once: Callable[[], Awaitable[str]]) -> str:
        """Submit a job, again and again while the queue does not answer or takes no more; return the command's output.

        Meanwhile the host's main thread goes on: it beats, and it finds a cancellation.

        Args:
            once: Function that submits the job.

        Raises:
            RuntimeError: The queue has refused the job, or its controller was away for too long.
        """
        launcher = self._launcher
        assert isinstance(launcher, QueueLauncher)
        number: str | None = ""
        deadline, pause_s, error = time.monotonic() + AWAY_S, FIRST_PAUSE_S, RuntimeError()
        try:
            while True:
                if number is not None:  # without an answer, the queue may have the job
                    try:
                        return await once()
                    except RuntimeError as exc:
                        error = exc
                if launcher.is_full(str(error)):  # jobs of days may be in the queue
                    deadline = time.monotonic() + AWAY_S
                elif not launcher.is_away(str(error)) or time.monotonic() + pause_s > deadline:
                    raise error
                if self._job.cancelled:
                    raise error
                self._hold(once, launcher.reason(str(error)), pause_s)
                resume_s = time.monotonic() + pause_s
                while time.monotonic() < resume_s and not self._job.cancelled:
                    await asyncio.sleep(POLL_S)
                if number := await asyncio.to_thread(launcher.submitted, self._job.path):
                    return number  # only the controller's answer was lost
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        finally:
            self._held.pop(once, None)

    def _hold(self, once: Callable[[], Awaitable[str]], reason: str, pause_s: float) -> None:
        """Note why the queue does not take a submission at present."""
        if reason != self._held.get(once):
            self._held[once] = reason
            logger.info("%s. The submission is tried again in %.0f s", reason, pause_s)

    def gone(self, came: int = 0) -> str:
        """Return why no more nodes will come; an empty text while they still may.

        Args:
            came: Number of nodes that have come so far.
        """
        if self._errors and isinstance(self._launcher, QueueLauncher):
            return self._launcher.reason(str(self._errors[0]))
        if isinstance(self._launcher, ExistingCluster):
            return ""
        if (ids := tuple(self._ids)) != self._ids_on_disk:
            self._job.note(queue=self._launcher.name, jobs=ids, **self._dashboard)
            self._ids_on_disk = ids
        if len(ids) < (1 if self._launcher.single_job else self._nodes):
            return ""
        if not self._line:
            self._line = f"jobs {', '.join(ids)}"
            logger.info("submitted to the queue: %s", self._line)
        if self._look(self._launcher) == "":
            self._early = True
            states = self._launcher.ended(self._ids, COMPLETING_S if self._launcher.single_job else SAY_S)
            self._ends = states
            why = _meaning(self._launcher, states) or "the queue no longer lists its job"
            return self.unreached(came) or f"{why}. {self._output(self._launcher, states)}".strip()
        return ""

    def _look(self, launcher: QueueLauncher) -> str | None:
        """Return the queue's line about the jobs: empty if none is left, None if the last query is recent."""
        if time.monotonic() - self._look_s < LOOK_S:
            return None
        self._look_s = time.monotonic()
        line = launcher.look(self._ids)
        if line and line != self._line:
            self._line = line
            logger.info("the queue says: %s", line)
        return line

    def waits(self) -> str:
        """Return why the jobs wait, in the queue's own words; empty if they run, or if the queue does not say."""
        if isinstance(self._launcher, ExistingCluster):
            return ""
        return next(iter([*self._held.values()]), "") or self._launcher.waits(self._line)

    def standstill(self) -> str:
        """Return why a training stands still, such as ``"suspended"``; empty if the queue knows no reason."""
        if not isinstance(self._launcher, ExistingCluster):
            self._look(self._launcher)
        return self.waits()

    def unreached(self, came: int) -> str:
        """Return why nodes never reached this machine; an empty text if the output of the jobs does not show it."""
        if isinstance(self._launcher, ExistingCluster):
            return ""
        logs = [log for pattern in self._launcher.outputs for log in sorted(self._job.path.glob(pattern.format("*")))]
        return causes.unreached("\n".join(log.read_text(errors="replace") for log in logs), came, self._nodes)

    def why(self, within_s: float = SAY_S) -> str:
        """Return the final states of jobs that the queue has ended; an empty text if it does not report them."""
        if isinstance(self._launcher, ExistingCluster):
            return ""
        return _meaning(self._launcher, self._launcher.ended(self._ids, within_s))

    def end_s(self) -> float | None:
        """Return the time at which the queue will end the jobs, in seconds since the epoch; None if unknown."""
        return None if isinstance(self._launcher, ExistingCluster) else self._launcher.end_s(self._ids)

    def unwanted(self) -> bool:
        """Return whether resubmitting is pointless: the job was cancelled in the queue, or it could not run."""
        if self._errors or isinstance(self._launcher, ExistingCluster):
            return bool(self._errors)
        states = [*self._launcher.ended(self._ids, COMPLETING_S).values()]
        if self._early and states and set(states) <= {queries.LEFT, queries.done(0)}:
            return True  # a person took the job out of the queue, or its script ended before its node was ready
        return self._launcher.unwanted(states)

    def launch_failed(self) -> bool:
        """Return whether a node could not start a job, so that a further submission may get another node."""
        return any(map(queries.is_launch_failure, self._ends.values())) and not self.unwanted()

    def _output(self, launcher: QueueLauncher, states: Mapping[str, str]) -> str:
        """Return the last relevant line of an ended job's output, for example that the interpreter does not exist."""
        patterns = [pattern.format(number) for number in states or self._ids for pattern in launcher.outputs]
        deadline = time.monotonic() + SAY_S  # a shared folder, or a queue that copies the output, may lag behind
        while True:
            for path in (path for pattern in patterns for path in sorted(self._job.path.glob(pattern))):
                if line := launcher.reason(path.read_text(errors="replace")):
                    return f"The last line of its output: {line}"
            if time.monotonic() > deadline:
                return ""
            time.sleep(0.5)


def _meaning(launcher: QueueLauncher, states: Mapping[str, str]) -> str:
    """Return the final states of jobs in words."""
    return ", ".join(launcher.meaning(number, state) for number, state in states.items())
