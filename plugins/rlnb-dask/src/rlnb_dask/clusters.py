"""The cluster of one job while it lasts: asked of a queue, or one that is there."""

from __future__ import annotations

import contextlib
import logging
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from distributed import Client, Security

from rlnb import HostedJob
from rlnb_dask.existing import ExistingCluster
from rlnb_dask.queues import LOOPBACK, QueueLauncher, cluster_class, job_class

logger = logging.getLogger("rlnb_dask")
LIVING = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
COMPLETING_S = 30.0
"""Seconds until Slurm says what became of a job that it has just ended."""
SAY_S = 3.0
"""The same, while other nodes wait to hear why they have to end."""
LOOK_S = 3.0
"""Seconds between looks at the queue: its controller serves everybody."""
# A cancellation with a cause ends in it: "... CANCELLED AT 2026-11-23T04:42:55 DUE TO TIME LIMIT ***". That a
# task failed is none: it was said before, which. What stands before the stars depends on Slurm's version.
_FOLLOWS = re.compile(r"srun: |.*\*\*\* (STEP \S+ ON \S+ CANCELLED AT \S+|\S.* DUE TO TASK FAILURE) \*\*\*$")


class Cluster:
    """The nodes of one job.

    Args:
        launcher: What they are asked of.
        nodes: How many.
        job: The job.
    """

    def __init__(self, launcher: QueueLauncher | ExistingCluster, nodes: int, job: HostedJob) -> None:
        self._launcher, self._nodes, self._job = launcher, nodes, job
        self._errors: list[BaseException] = []
        self._ids: list[str] = []
        self._looked, self._said = 0.0, ""
        self._dashboard: dict[str, int] = {}

    @contextlib.contextmanager
    def client(self) -> Iterator[Client]:
        """Yield a client; nodes that were asked for are given back afterwards."""
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
            if self._launcher.settings["dashboard"]:
                self._dashboard = {"dashboard": cluster.scheduler_info["services"]["dashboard"]}
            cluster.scale(jobs=1 if self._launcher.gang else self._nodes)
            try:
                yield client
            finally:
                shutil.rmtree(keys, ignore_errors=True)

    def _queue(self, launcher: QueueLauncher, keys: Path) -> Any:
        found = launcher.settings["host_interface"]
        # Even one that nobody looks at has bokeh imported.
        shown = {"dashboard": launcher.settings["dashboard"], "dashboard_address": LOOPBACK}
        return cluster_class(launcher.name)(
            job_cls=self._recorded(job_class(launcher.name)),
            security=Security.temporary(),
            shared_temp_directory=str(keys),
            scheduler_options={**shown, **({"interface": found} if found else {})},
            silence_logs="error",
            **launcher.job_arguments(self._nodes, log_directory=self._job.path),
        )

    def _recorded(self, base: Any) -> Any:
        """Return a class of dask-jobqueue's jobs that keeps what it only logs: why a job was refused, and its id."""
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
            return _last_line(str(self._errors[0]))
        wanted = 1 if isinstance(self._launcher, QueueLauncher) and self._launcher.gang else self._nodes
        if isinstance(self._launcher, ExistingCluster) or len(self._ids) < wanted:
            return ""
        if not self._said:
            self._said = f"jobs {', '.join(self._ids)}"
            self._job.note(queue=self._launcher.name, jobs=self._ids, **self._dashboard)
            logger.info("the queue has %s", self._said)
        if self._launcher.name != "slurm" or time.monotonic() - self._looked < LOOK_S:
            return ""
        self._looked = time.monotonic()
        return self._look()

    def why(self) -> str:
        """Return what the queue says of jobs that it has ended; nothing where it does not say."""
        ended = {number: state for number, state in self._states(SAY_S).items() if state not in LIVING}
        return ", ".join(f"Slurm's job {number} is {state}" for number, state in ended.items())

    def unwanted(self) -> bool:
        """Return whether somebody ended the job in the queue, or it could not run at all: to ask again is no use."""
        return bool(self._errors or {"CANCELLED", "FAILED"} & set(self._states(COMPLETING_S).values()))

    def _states(self, within_s: float) -> Mapping[str, str]:
        """Return Slurm's word for each job, for as long as its controller remembers it (MinJobAge).

        Args:
            within_s: Seconds to wait for what becomes of one that it is just ending.
        """
        deadline = time.monotonic() + within_s
        while "COMPLETING" in (states := self._ask()).values() and time.monotonic() < deadline:
            time.sleep(0.5)
        return states

    def _ask(self) -> Mapping[str, str]:
        found = {}
        for number in self._ids if self._launcher.name == "slurm" else ():
            command = ["scontrol", "--oneliner", "show", "job", number]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            words = dict(word.split("=", 1) for word in done.stdout.split() if "=" in word)
            if "JobState" in words:
                found[number] = words["JobState"]
        return found

    def _look(self) -> str:
        done = subprocess.run(
            ["squeue", "-h", "-j", ",".join(self._ids), "-o", "%A %T (%r)"], capture_output=True, text=True, check=False
        )
        said = done.stdout.strip()
        if done.returncode and "Invalid job id" not in done.stderr:
            logger.info("Slurm does not answer: %s", done.stderr.strip())  # it may again
            return ""
        if not said or said.split()[1] not in ("PENDING", "CONFIGURING", "RUNNING"):
            return f"{self.why() or 'its job is gone'}. {self._printed()}".strip()
        if said != self._said:
            self._said = said
            logger.info("the queue says: %s", said)
        return ""

    def _printed(self) -> str:
        """Return the last that the job printed, such as that there is no such interpreter on the node."""
        logs = sorted(self._job.path.glob("rlnb-*.err"))
        said = last_said(logs[-1].read_text(errors="replace")) if logs else ""
        return f"It printed last: {said}" if said else ""


def last_said(text: str) -> str:
    """Return the last line that a job printed which tells why it ended; nothing where none does.

    Args:
        text: What it printed. srun tells about its nodes in it, and once one of them has failed, Slurm may or may not
            tell of ending the step on the others: both only follow from what was said before. That somebody cancelled
            the job does not.
    """
    return _last_line("\n".join(line for line in text.splitlines() if not _FOLLOWS.match(line.strip())))


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
