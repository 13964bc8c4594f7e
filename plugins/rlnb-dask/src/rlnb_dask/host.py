"""``python -m rlnb_dask.host JOB_DIR``: the process that owns the cluster of one job.

It asks the queue for nodes, looks whether they fit, has an agent run on each, and sees to it that none is left. It
outlives the kernel that started it; when it ends, so do Dask's workers, and with them the agents.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Future, Lock

from rlnb import HostedJob, RlnbError
from rlnb_dask import node, preflight
from rlnb_dask.clusters import Cluster
from rlnb_dask.existing import ExistingCluster
from rlnb_dask.queues import QueueLauncher
from rlnb_dask.quiet import QUIET

logger = logging.getLogger("rlnb_dask")
POLL_S = 0.25
LOOK_S = 1.0
END_S = 30.0
"""Seconds that agents have to end once they were asked to, or there is a result: more than they give their ranks."""
DASK = {
    **QUIET,
    "distributed.scheduler.allowed-failures": 0,  # a task whose worker is gone fails, and does not wait for another
    "distributed.worker.daemon": False,
    "distributed.comm.retry.count": 3,
}


class Ended(Exception):
    """The job is over before its agents could begin."""


class Host:
    """One job on a cluster, from the queue to its end.

    Args:
        job: The job.
        launcher: What it was started with.
    """

    def __init__(self, job: HostedJob, launcher: QueueLauncher | ExistingCluster) -> None:
        self._job, self._launcher, self._nodes = job, launcher, job.command.nodes
        self._cluster = Cluster(launcher, self._nodes, job)

    def run(self) -> bool:
        """Run the job, whose result says how it ended; return whether it may go on where the cluster interrupted it."""
        try:
            with dask.config.set(DASK), self._cluster.client() as client:
                client.register_plugin(node.Lifeline())
                with self._alone():  # nobody else takes the same nodes meanwhile
                    workers = self._wait_for_nodes(client)
                    self._preflight(client, workers)
                    agents = self._start_agents(client, workers)
                    self._wait_until_known(client, agents)
                self._watch(client, workers, agents)
                return not self._cluster.unwanted()
        except Ended:
            return not self._cluster.unwanted()
        except Exception as exc:
            logger.exception("the host failed")
            self._job.end("failed", f"the host of the cluster failed: {type(exc).__name__}: {exc}")
            return False

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock of those who choose nodes of a cluster that several runs share."""
        lock, told = Lock("rlnb-nodes"), False
        while not lock.acquire(timeout=LOOK_S):
            self._beat_or_stop()
            if not told:
                told = True
                logger.info("another run chooses its nodes, or waits for them; this one comes after it")
        try:
            yield
        finally:
            lock.release()

    def _wait_for_nodes(self, client: Client) -> list[str]:
        """Return the addresses of idle nodes' workers, once there are as many as asked for: all or none begin."""
        told, most = -1, 0
        while True:
            self._beat_or_stop()
            there = client.scheduler_info(n_workers=-1)["workers"]
            busy = self._busy(client)
            workers = sorted((item for item in there.items() if item[0] not in busy), key=lambda item: _number(item[1]))
            if len(workers) >= self._nodes:
                return [address for address, _ in workers[: self._nodes]]
            if len(workers) != told:
                told = len(workers)
                also = f", {len(busy)} more are taken" if busy else ""
                logger.info("%d of %d nodes are here%s", told, self._nodes, also)
            gone, most = self._cluster.gone(), max(most, len(there))
            if not gone and len(there) < most and isinstance(self._launcher, QueueLauncher):
                gone = "a node had come, and went before all were here. What its job printed lies beside this log"
            if gone:
                self._job.end("failed", f"the queue gave no nodes: {gone}", interrupted=not self._cluster.unwanted())
                raise Ended
            time.sleep(POLL_S)

    def _busy(self, client: Client) -> set[str]:
        """Return which workers of a cluster that is there are taken: by a task, or by an agent whose host is gone."""
        if isinstance(self._launcher, QueueLauncher):  # whose nodes are this run's alone
            return set()
        tasks = {worker for worker, keys in client.processing().items() if keys}
        return tasks | {worker for worker, taken in client.run(node.busy, on_error="ignore").items() if taken}

    def _wait_until_known(self, client: Client, agents: dict[str, Future]) -> None:
        """Wait until Dask's scheduler has heard of the agents: who chooses nodes next would take them for idle."""
        deadline = time.monotonic() + END_S  # a worker that is lost in this moment never has its agent
        while time.monotonic() < deadline:
            known = client.processing()
            if all(agent.key in known.get(worker, ()) or agent.done() for worker, agent in agents.items()):
                return
            self._job.beat()
            time.sleep(POLL_S)

    def _preflight(self, client: Client, workers: Sequence[str]) -> None:
        begun = time.monotonic()
        try:
            wrong = preflight.problems(client, workers, self._job, self._beat_or_stop)
        except preflight.NodeGone as exc:
            self._job.end("failed", str(exc), interrupted=True)
            raise Ended from exc
        if wrong:
            first = wrong[0] if len(wrong) == 1 else f"{len(wrong)} problems with the nodes, nothing was started"
            self._job.end("failed", first, "\n".join(f"  - {what}" for what in wrong))
            raise Ended
        logger.info("the nodes are alike and reach each other (%.1f s)", time.monotonic() - begun)

    def _start_agents(self, client: Client, workers: Sequence[str]) -> dict[str, Future]:
        """Start the agent of each node; return what becomes of it, by its worker's address."""
        port = client.submit(node.free_port, workers=[workers[0]], pure=False).result()
        master = f"{preflight.host_of(workers[0])}:{port}" if self._nodes > 1 else ""
        python, hang_after_s = (self._launcher.settings.get(name) for name in ("python", "hang_after_s"))
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
        """Wait for the agents, and say so when a node is gone."""
        end_by: float | None = None
        while not all(agent.done() for agent in agents.values()):
            self._job.beat()
            for number, worker in enumerate(workers):
                if agents[worker].status in ("error", "cancelled", "lost"):
                    self._lost(number, worker, agents[worker])
            if end_by is None and (self._job.cancelled or self._job.result is not None):
                end_by = time.monotonic() + END_S
            if end_by is not None and time.monotonic() > end_by:
                logger.warning("an agent has not ended; the queue ends its job now")
                break
            time.sleep(POLL_S)
        for number, worker in enumerate(workers):
            if agents[worker].status in ("error", "cancelled", "lost"):
                self._lost(number, worker, agents[worker])

    def _lost(self, number: int, worker: str, agent: Future) -> None:
        """Say that a node is gone, unless more is known: the other agents end by that."""
        if self._job.cancelled or self._job.result is not None:
            return
        logger.info("node %d at %s: %s", number, worker, agent.exception() if agent.status == "error" else agent.status)
        hosts = self._job.hosts
        name = hosts[number] if number < len(hosts) else preflight.host_of(worker)
        why = self._cluster.why() or "it is down, or its queue has ended the job"
        self._job.end("failed", f"node {number} ({name}) is gone: {why}", interrupted=True)

    def _beat_or_stop(self) -> None:
        self._job.beat()
        if self._job.cancelled:
            self._job.end("cancelled", "cancelled while it waited for nodes")
            raise Ended


def _number(worker: dict[str, Any]) -> tuple[str, int]:
    """Order workers by their name's number, so that node 0 is the queue's first."""
    name, _, number = str(worker.get("name", "")).rpartition("-")
    return (name, int(number)) if number.isdigit() else (str(worker.get("name", "")), 0)


def forget_own_job(environ: MutableMapping[str, str]) -> None:
    """Remove what Slurm says of the job that the host itself is: the one that it submits would take its limits."""
    for name in [name for name in environ if name.startswith("SLURM_") and name != "SLURM_CONF"]:
        del environ[name]


def main() -> None:
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logger.setLevel(logging.INFO)
    forget_own_job(os.environ)
    job = HostedJob(Path(sys.argv[1]))
    launcher = launcher_of(job)
    logger.info("%r", launcher)
    may_go_on = Host(job, launcher).run()
    try:
        if may_go_on and job.go_on(launcher.max_restarts):
            logger.info("it goes on as a further job")
    except RlnbError as exc:
        logger.info("it does not go on: %s", exc)


def launcher_of(job: HostedJob) -> QueueLauncher | ExistingCluster:
    """Return the launcher that a job was started with."""
    name, settings = job.manifest.launcher, job.manifest.launcher_settings
    return ExistingCluster(**settings) if name == "dask" else QueueLauncher(name, **settings)


if __name__ == "__main__":
    main()
