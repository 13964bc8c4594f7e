"""The cluster of one job while it lasts: nodes of a queue, or a Dask cluster of the user."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distributed import Client, Security

from rlnb import HostedJob
from rlnb_dask.existing import ExistingCluster
from rlnb_dask.queues.launcher import LOOPBACK, QueueLauncher, last_line

logger = logging.getLogger("rlnb_dask")
COMPLETING_S = 30.0
"""Seconds until a queue tells the final state of a job that it has just ended."""
SAY_S = 3.0
"""The same, while other nodes wait for the reason of their end."""
LOOK_S = 3.0
"""Seconds between looks at the queue, whose controller serves everybody."""


class Cluster:
    """The nodes of one job.

    Args:
        launcher: The source of the nodes.
        nodes: Their number.
        job: The job.
    """

    def __init__(self, launcher: QueueLauncher | ExistingCluster, nodes: int, job: HostedJob) -> None:
        self._launcher, self._nodes, self._job = launcher, nodes, job
        self._errors: list[BaseException] = []
        self._ids: list[str] = []
        self._look_s = 0.0
        """Time of the last look at the queue."""
        self._line = ""
        """The queue's last line about the jobs."""
        self._dashboard: dict[str, int] = {}

    @contextlib.contextmanager
    def client(self) -> Iterator[Client]:
        """Yield a client; a queue gets its nodes back afterwards."""
        if isinstance(self._launcher, ExistingCluster):
            with Client(self._launcher.address, security=self._launcher.security(self._job.path)) as client:
                try:
                    yield client
                finally:
                    shutil.rmtree(self._job.path / ".tls", ignore_errors=True)
            return
        keys = self._job.path / ".tls"  # the nodes read them there, nobody else can
        keys.mkdir(mode=0o700, exist_ok=True)
        with self._queue(self._launcher, keys) as cluster, Client(cluster) as client:
            if self._launcher.dashboard:
                self._dashboard = {"dashboard": cluster.scheduler_info["services"]["dashboard"]}
            cluster.scale(jobs=1 if self._launcher.single_job else self._nodes)
            try:
                yield client
            finally:
                shutil.rmtree(keys, ignore_errors=True)

    def _queue(self, launcher: QueueLauncher, keys: Path) -> Any:
        interface = {"interface": launcher.host_interface} if launcher.host_interface else {}
        # Dask would import bokeh even for a dashboard that nobody looks at.
        dashboard = {"dashboard": launcher.dashboard, "dashboard_address": LOOPBACK}
        return launcher.cluster_class()(
            job_cls=self._recorded(launcher.job_class()),
            security=Security.temporary(),
            shared_temp_directory=str(keys),
            scheduler_options={**dashboard, **interface},
            silence_logs="error",
            **launcher.job_arguments(self._nodes, log_directory=self._job.path),
        )

    def _recorded(self, base: Any) -> Any:
        """Return a class of dask-jobqueue's jobs that keeps each job's id, and each error of a submission.

        dask-jobqueue only logs them.
        """
        errors, ids = self._errors, self._ids

        class Recorded(base):  # type: ignore[misc]
            async def start(self) -> None:
                try:
                    await super().start()
                except Exception as exc:
                    errors.append(exc)
                    raise
                ids.append(self.job_id)

        Recorded.__name__ = base.__name__
        return Recorded

    def gone(self) -> str:
        """Return why no nodes are to be expected any more; nothing while they are."""
        if self._errors:
            return last_line(str(self._errors[0]))
        if isinstance(self._launcher, ExistingCluster) or len(self._ids) < (
            1 if self._launcher.single_job else self._nodes
        ):
            return ""
        if not self._line:
            self._line = f"jobs {', '.join(self._ids)}"
            self._job.note(queue=self._launcher.name, jobs=self._ids, **self._dashboard)
            logger.info("the queue has %s", self._line)
        if time.monotonic() - self._look_s < LOOK_S:
            return ""
        self._look_s = time.monotonic()
        line = self._launcher.look(self._ids)
        if line == "":
            return f"{self.why() or 'its job is gone'}. {self._output(self._launcher)}".strip()
        if line is not None and line != self._line:
            self._line = line
            logger.info("the queue says: %s", line)
        return ""

    def why(self) -> str:
        """Return the final states of jobs that the queue has ended; nothing where it does not tell them."""
        if isinstance(self._launcher, ExistingCluster):
            return ""
        states = self._launcher.ended(self._ids, SAY_S)
        return ", ".join(f"{self._launcher.title}'s job {number} is {state}" for number, state in states.items())

    def unwanted(self) -> bool:
        """Return whether a further job is of no use: somebody ended this one in the queue, or it could not run."""
        if self._errors or isinstance(self._launcher, ExistingCluster):
            return bool(self._errors)
        return self._launcher.unwanted([*self._launcher.ended(self._ids, COMPLETING_S).values()])

    def _output(self, launcher: QueueLauncher) -> str:
        """Return the last line of the job's output, such as that the node has no such interpreter."""
        logs = sorted(self._job.path.glob("rlnb-*.err"))
        line = launcher.reason(logs[-1].read_text(errors="replace")) if logs else ""
        return f"It printed last: {line}" if line else ""
