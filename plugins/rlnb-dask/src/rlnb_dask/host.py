"""``python -m rlnb_dask.host JOB_DIR``: the process that owns the cluster of one job.

It requests nodes from the queue, checks them, starts an agent on each, and ends all agents. It outlives the kernel that
started it. When it ends, the Dask workers that it has requested end too, and with them the agents. Those of an existing
cluster stay.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import pkgutil
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import dask
from distributed import Client, Future, Lock

from rlnb import RlnbError
from rlnb.launchers import DetachedJob
from rlnb_dask import causes, node, preflight
from rlnb_dask.address import free_port
from rlnb_dask.clusters import AWAY_S, COMPLETING_S, FIRST_PAUSE_S, Cluster
from rlnb_dask.existing import ExistingCluster
from rlnb_dask.own_job import forget_own_job
from rlnb_dask.plugin import LAUNCHERS
from rlnb_dask.queues import slurm
from rlnb_dask.queues.launcher import QueueLauncher
from rlnb_dask.quiet import QUIET

logger = logging.getLogger("rlnb_dask")
POLL_S = 0.25
LOOK_S = 1.0
SILENT_S = 5.0
"""Seconds without a heartbeat of an agent after which its job may be suspended."""
FOLLOW_S = 60.0
"""Seconds between two questions for the end of the walltime."""
LONG_S = 600.0
"""Seconds after which the end of the host's own job gives the training back instead of ending it."""
MAX_DOUBLINGS = 3
"""Most times that the patience of a run is doubled."""
LEAVE_S = 60.0
"""Seconds before the end of its own job at which a host has to be done with the training."""
END_S = 30.0
"""Seconds that agents have to exit after a result, or after the time for saving that a cancellation gives."""
DASK = {
    **QUIET,
    "distributed.scheduler.allowed-failures": 0,  # a task whose worker dies fails, instead of moving to another worker
    "distributed.worker.daemon": False,
    "distributed.comm.retry.count": 3,
}


class Ended(Exception):
    """The job ended before its agents started."""


class Revoked(BaseException):
    """Slurm ends the job in which the host runs. No handler of other errors catches it."""


class Host:
    """Owns one job on a cluster, from the queue to its end.

    Args:
        job: The job.
        launcher: The launcher that started it.
        own_job: The job in which this process runs; None if it is a process of its own.
    """

    def __init__(
        self, job: DetachedJob, launcher: QueueLauncher | ExistingCluster, own_job: slurm.OwnJob | None = None
    ) -> None:
        self._job, self._launcher, self._nodes = job, launcher, job.command.nodes
        self._cluster = Cluster(launcher, self._nodes, job)
        self._followed_s = float("-inf")
        """Time of the last question for the end of the walltime, in seconds of the monotonic clock."""
        self._told_s: float | None = None
        """Deadline that the agents were told, in seconds since the epoch."""
        self._own_job, self._start_s = own_job, time.monotonic()

    @property
    def ends_the_training(self) -> bool:
        """Whether the agents were told to stop because the host's own job ends, which is earlier than theirs."""
        return self._told_s is not None and self._told_s == self._leave_s()

    def _leave_s(self) -> float | None:
        """Return the time at which this host has to be done, in seconds since the epoch; None if it has no end."""
        end_s = self._own_job.end_s() if self._own_job else None
        return None if end_s is None else end_s - LEAVE_S

    def run(self) -> bool:
        """Run the job to its result; return whether a new job may resume the training if it was interrupted."""
        try:
            with dask.config.set(DASK), self._cluster.client() as client:
                with contextlib.suppress(Ended):
                    self._train(client)
                return not self._cluster.unwanted()  # asked before rlnb itself takes the jobs out of the queue
        except Revoked:
            result = self._job.result
            return result is not None and result.interrupted
        except Exception as exc:
            logger.exception("the host failed")
            self._job.end("failed", f"the host of the cluster failed: {type(exc).__name__}: {exc}")
            return False

    def revoke(self, *_: object) -> None:
        """Write the result before Slurm kills the job in which this process runs; a handler of its signal.

        Raises:
            Revoked: Always, so that the training's own job leaves the queue.
        """
        assert self._own_job is not None
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        log = self._job.path / self._launcher.log
        how, by_a_person = slurm.host_end(log.read_text(errors="replace") if log.exists() else "")
        error = f"Slurm's job {self._own_job.number}, in which the host of this training ran, {how}"
        logger.info("%s", error)
        self._job.end("cancelled" if by_a_person else "failed", error, interrupted=not by_a_person)
        raise Revoked

    def _train(self, client: Client) -> None:
        """Train on the nodes of the cluster.

        Raises:
            Ended: The job ended before its agents started.
        """
        client.register_plugin(node.Lifeline())
        with self._alone():  # no other run can take the same nodes meanwhile
            workers = self._wait_for_nodes(client)
            self._preflight(client, workers)
            self._follow_the_walltime()  # the queue's answer is more precise than a node's clock
            agents = self._start_agents(client, workers)
            self._wait_until_known(client, agents)
        self._watch(client, workers, agents)
        self._explain()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock for choosing nodes of a cluster that several runs share."""
        lock, first = Lock("rlnb-nodes"), True
        while not lock.acquire(timeout=LOOK_S):
            self._beat_or_stop()
            self._job.waits("another run is choosing its nodes or waits for them")
            if first:
                first = False
                logger.info("another run is choosing its nodes or waiting for them; this run waits its turn")
        try:
            yield
        finally:
            lock.release()

    def _wait_for_nodes(self, client: Client) -> list[str]:
        """Return the addresses of idle nodes' workers once there are enough for all ranks to start together."""
        count, most, give_back_s = -1, 0, math.inf
        while True:
            self._beat_or_stop()
            names = _names(client)
            busy = self._busy(client)
            workers = sorted((address for address in names if address not in busy), key=lambda w: _number(names[w]))
            if len(workers) >= self._nodes:
                return workers[: self._nodes]
            if time.monotonic() > give_back_s:
                self._give_back(len(workers))
            if len(workers) != count:
                if count <= 0 < len(workers):
                    give_back_s = time.monotonic() + self._patience_s()
                count = len(workers)
                logger.info(_readiness(count, self._nodes, len(busy)))
            most = max(most, len(names))
            why = self._cluster.gone(most)
            self._job.waits(self._cluster.waits() or _readiness(count, self._nodes, len(busy)))
            if not why and len(names) < most and isinstance(self._launcher, QueueLauncher):
                why = (
                    self._cluster.unreached(most)
                    or "a node was lost before all nodes were ready. The output of its job is in this log's folder"
                )
            if why:
                self._job.end(
                    "failed",
                    f"the queue gave too few nodes: {why}",
                    interrupted=not self._cluster.unwanted(),
                    launch_failed=self._cluster.launch_failed(),
                )
                raise Ended
            time.sleep(POLL_S)

    def _patience_s(self) -> float:
        """Return the seconds for which the first nodes wait for the others."""
        launcher = self._launcher
        if not isinstance(launcher, QueueLauncher) or launcher.single_job or launcher.patience_s is None:
            return math.inf
        # Two runs that each hold half of the nodes must not give them back, and ask again, at the same time.
        return launcher.patience_s * 2 ** min(self._job.times_given_back, MAX_DOUBLINGS) * random.uniform(0.8, 1.2)

    def _give_back(self, count: int) -> None:
        why = f"only {count} of {self._nodes} nodes came in time, and were given back to the queue"
        self._job.end("failed", why, given_back=True)
        raise Ended

    def _busy(self, client: Client) -> set[str]:
        """Return the workers of the user's cluster that have a task, or an agent whose host process has ended."""
        if isinstance(self._launcher, QueueLauncher):  # a queue's nodes belong to this run alone
            return set()
        tasks = {worker for worker, keys in client.processing().items() if keys}
        return tasks | {worker for worker, busy in client.run(node.busy, on_error="ignore").items() if busy}

    def _wait_until_known(self, client: Client, agents: dict[str, Future]) -> None:
        """Wait until Dask's scheduler lists the agents; until then, the next run would think their nodes idle."""
        deadline = time.monotonic() + END_S  # if a worker is lost meanwhile, its agent is never listed
        while time.monotonic() < deadline:
            tasks = client.processing()
            if all(agent.key in tasks.get(worker, ()) or agent.done() for worker, agent in agents.items()):
                return
            self._job.beat()
            time.sleep(POLL_S)

    def _preflight(self, client: Client, workers: Sequence[str]) -> None:
        self._job.waits("the nodes are being checked")
        start_s = time.monotonic()
        try:
            lines = preflight.problems(client, workers, self._job, self._beat_or_stop)
        except preflight.NodeGone as exc:
            self._job.end("failed", str(exc), interrupted=True)
            raise Ended from exc
        if lines:
            first = lines[0] if len(lines) == 1 else f"{len(lines)} problems with the nodes; no rank was started"
            self._job.end("failed", first, "\n".join(f"  - {line}" for line in lines))
            raise Ended
        logger.info("the nodes passed the checks (%.1f s)", time.monotonic() - start_s)
        self._job.waits("")

    def _start_agents(self, client: Client, workers: Sequence[str]) -> dict[str, Future]:
        """Start an agent on each node; return the agents' futures by worker address."""
        port = client.submit(free_port, workers=[workers[0]], pure=False).result()
        master = f"{preflight.host_of(workers[0])}:{port}" if self._nodes > 1 else ""
        python, hang_after_s = self._launcher.python, self._launcher.hang_after_s
        return {
            worker: client.submit(
                node.run_agent,
                self._job.agent_argv(number, python=python, master=master, hang_after_s=hang_after_s),
                str(self._job.path / f"node{number}.log"),
                self._launcher.limit_s,
                workers=[worker],
                pure=False,
                key=f"rlnb-{self._job.manifest.run_id}-{self._job.path.name}-{number}",
            )
            for number, worker in enumerate(workers)
        }

    def _watch(self, client: Client, workers: Sequence[str], agents: dict[str, Future]) -> None:
        """Wait for the agents; end the job if a node is lost."""
        end_by: float | None = None
        while not all(agent.done() for agent in agents.values()):
            self._job.beat()
            silent = self._job.silence_s > SILENT_S  # only then is the queue asked
            self._job.waits(self._cluster.standstill() if silent else "")
            self._follow_the_walltime()
            for number, worker in enumerate(workers):
                if agents[worker].status in ("error", "cancelled", "lost"):
                    self._lost(number, worker, agents[worker])
            if end_by is None and (self._job.cancelled or self._job.result is not None):
                end_by = time.monotonic() + END_S + self._job.save_s
            if end_by is not None and time.monotonic() > end_by:
                logger.warning("an agent has not ended in time; its node is released")
                break
            time.sleep(POLL_S)
        for number, worker in enumerate(workers):
            if agents[worker].status in ("error", "cancelled", "lost"):
                self._lost(number, worker, agents[worker])

    def _follow_the_walltime(self) -> None:
        """Ask once a minute when the queue will end the job, which an administrator may change, and tell the agents."""
        if self._launcher.limit_s is None or time.monotonic() - self._followed_s < FOLLOW_S:
            return
        self._followed_s = time.monotonic()
        ends = [end_s for end_s in (self._cluster.end_s(), self._leave_s()) if end_s is not None]
        if ends and min(ends) != self._told_s:
            self._told_s = min(ends)
            self._job.end_by(self._told_s - self._launcher.grace_s)

    def _explain(self) -> None:
        """Give the cause of an interruption that an agent could not know: the queue's."""
        result = self._job.result
        if result is None or not result.interrupted or result.outcome == "timeout" or self._job.cancelled:
            return
        self._job.explain(causes.with_cause(result.error, self._cluster.why(COMPLETING_S)))

    def _lost(self, number: int, worker: str, agent: Future) -> None:
        """End a job that lost a node, unless it is cancelled or has a result. Its other agents then end too."""
        if self._job.cancelled or self._job.result is not None:
            return
        logger.info("node %d at %s: %s", number, worker, agent.exception() if agent.status == "error" else agent.status)
        hosts = self._job.hosts
        name = hosts[number] if number < len(hosts) else preflight.host_of(worker)
        why = self._cluster.why() or "it is down, or its queue has ended the job"
        self._job.end("failed", f"node {number} ({name}) is lost: {why}", interrupted=True)

    def _beat_or_stop(self) -> None:
        self._job.beat()
        if self._job.cancelled:
            self._job.end("cancelled", "cancelled while waiting for nodes")
            raise Ended
        leave_s = self._leave_s()
        if leave_s is not None and time.time() > leave_s:
            error = "the job of the host has reached its walltime before the nodes were ready"
            is_long = time.monotonic() - self._start_s > LONG_S  # a further host gets no further than a short one
            fix = "" if is_long else '. Use a longer walltime for it, such as host_directives=["--time=3-00:00:00"]'
            self._job.end("failed", f"{error}{fix}", given_back=is_long)
            raise Ended


def _readiness(count: int, nodes: int, busy: int) -> str:
    """Return how many nodes are ready, and how many workers of a shared cluster compute for other runs."""
    return f"{count} of {nodes} nodes are ready" + (f", {busy} more are busy" if busy else "")


def _names(client: Client) -> dict[str, str]:
    """Return the names of a cluster's workers by address."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return {address: str(facts.get("name", "")) for address, facts in workers.items()}


def _number(name: str) -> tuple[str, int]:
    """Return a sort key that orders workers by the number in their name, so that node 0 is the queue's first node."""
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if number.isdigit() else (name, 0)


def main() -> None:
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logger.setLevel(logging.INFO)
    job = DetachedJob(Path(sys.argv[1]))
    launcher = launcher_of(job)
    if job.result is not None:  # Slurm has started the host's job a second time, and the training goes on elsewhere
        return
    own_job = slurm.own_job(launcher, os.environ)
    forget_own_job(os.environ)
    logger.info("%r", launcher)
    owner = Host(job, launcher, own_job)
    if own_job is not None:
        signal.signal(signal.SIGTERM, owner.revoke)
    if owner.run():
        resume(job, launcher, needs_progress=not owner.ends_the_training)


def resume(job: DetachedJob, launcher: QueueLauncher | ExistingCluster, *, needs_progress: bool = True) -> None:
    """Continue an interrupted training in a new job, whose host may have to be submitted to the queue too.

    Args:
        job: The interrupted job.
        launcher: Its launcher.
        needs_progress: Whether a training that has reached its walltime without a new checkpoint is left ended.
    """
    deadline = time.monotonic() + AWAY_S
    while True:
        try:
            if job.go_on(launcher.max_restarts, needs_progress=needs_progress):
                logger.info("the training resumes in a new job")
            return
        except RlnbError as exc:
            away = isinstance(launcher, QueueLauncher) and launcher.is_away(str(exc))
            if not away or time.monotonic() > deadline:
                error = job.result.error if job.result else ""
                job.explain(". ".join(filter(None, [error, f"Not continued: {exc}"])))
                logger.info("the training does not resume: %s", exc)
                return
        job.beat()
        time.sleep(FIRST_PAUSE_S)


def launcher_of(job: DetachedJob) -> QueueLauncher | ExistingCluster:
    """Return the launcher that started a job."""
    factories = {launcher.name: launcher.factory for launcher in LAUNCHERS}
    launcher: QueueLauncher | ExistingCluster = pkgutil.resolve_name(factories[job.manifest.launcher])(
        **job.manifest.launcher_settings
    )
    return launcher


if __name__ == "__main__":
    main()
