"""The load of a training on 512 nodes on Dask and on the shared folder, simulated on this machine.

    python benchmarks/many_nodes.py

The Dask scheduler, the workers of all nodes (several per process), the host and the agents of all nodes are real. The
ranks are not: each is a process that only waits, and the first rank ends the training once all ranks run. The benchmark
counts the messages that the scheduler reads and writes (without heartbeats, whose number depends on time), the
scheduler's transitions, and files. Each count is fitted with a power of the number of nodes.

On a real node, an agent sees and samples only that node's processes. Here, the workers of each process therefore get
their own PID namespace, so that agents do not sample the processes of all nodes. This needs root, as in a container.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
from distributed import LocalCluster
from distributed.comm.tcp import TCP
from results import record

import rlnb
from rlnb.plugin import Command, Manifest, hookimpl

NODES = (8, 32, 128, 512)
RANK = """
if [ "$PET_NODE_RANK" = 0 ]; then
  until [ "$(ls {job} | grep -c '^node[0-9]*.running$')" = {nodes} ]; do sleep 1; done
  sleep 15  # long enough for every agent to take a sample
else
  until [ -e {job}/result.json ]; do sleep 5; done
fi
"""
WALL_S = 900.0
IN_ONE = 32
"""Workers in one process."""
APART = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
WORKERS = """
import asyncio, sys
from distributed import Worker

async def main(address, count):
    workers = [Worker(address, nthreads=1, memory_limit=0, host="127.0.0.1", dashboard=False) for _ in range(count)]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""
PATIENT = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "300s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "300s",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "60s",
}
"""Long timeouts, because two cores do the work of hundreds of machines and answer late."""


class Waiting:
    """A plugin that replaces the ranks with a process that waits."""

    @hookimpl(tryfirst=True)
    def rlnb_wrap_command(self, command: Command, manifest: Manifest) -> Command:
        """Return the command of the waiting process."""
        job = rlnb.options.folders.runs / manifest.run_id / "jobs" / "0-train"
        script = RANK.format(job=job, nodes=command.nodes)
        return dataclasses.replace(command, argv=("/bin/sh", "-c", script))


class Counter:
    """Counts the messages on the connections of this process, which runs the scheduler."""

    def __init__(self) -> None:
        self.messages = self.heartbeats = self.bytes = 0
        read, write, counter = TCP.read, TCP.write, self

        async def counted_read(comm: TCP, *arguments: Any, **options: Any) -> Any:
            message = await read(comm, *arguments, **options)
            counter.count(message)
            return message

        async def counted_write(comm: TCP, *arguments: Any, **options: Any) -> int:
            written = await write(comm, *arguments, **options)
            counter.count(arguments[0])
            counter.bytes += written
            return written

        TCP.read, TCP.write = counted_read, counted_write  # type: ignore[method-assign]

    def count(self, message: Any) -> None:
        """Count one message."""
        beats = isinstance(message, dict) and (
            message.get("op") == "heartbeat_worker" or "heartbeat-interval" in message
        )
        self.heartbeats += beats
        self.messages += not beats


@contextlib.contextmanager
def workers(cluster: LocalCluster, count: int) -> Iterator[None]:
    """Start the workers of ``count`` nodes, and end them on exit."""
    address = cluster.scheduler_address
    parts = [min(IN_ONE, count - begin) for begin in range(0, count, IN_ONE)]
    started = [subprocess.Popen([*APART, sys.executable, "-c", WORKERS, address, str(part)]) for part in parts]
    try:
        while len(cluster.scheduler.workers) < count:
            time.sleep(0.5)
        yield
    finally:
        for process in started:
            process.kill()  # also ends all processes in its namespace
        for process in started:
            process.wait()


def train(nodes: int, counter: Counter) -> dict[str, float]:
    """Return the counts and the duration of a training on this number of nodes."""
    with (
        LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address=None) as cluster,
        workers(cluster, nodes),
    ):
        counter.messages = counter.heartbeats = counter.bytes = 0
        transitions = cluster.scheduler.transition_counter
        begun = time.monotonic()
        run = rlnb.train("Echo", library="echo", max_iterations=1, launcher=rlnb.dask(cluster, nodes=nodes))
        job = run.jobs[-1].folder
        started = 0.0
        while run.state not in ("completed", "failed", "lost"):
            started = started or (time.monotonic() - begun if len(job.hosts()) == nodes else 0.0)
            if time.monotonic() - begun > WALL_S:
                run.cancel()
            time.sleep(1.0)
        if run.state != "completed":
            raise SystemExit(f"{run.state} on {nodes} nodes: {run.logs()[-3000:]}")
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(run.jobs[-1].handle["pid"]).wait()
        files = sum(1 for path in run.path.rglob("*") if path.is_file())
        return {
            "messages": counter.messages,
            "KiB": counter.bytes / 1024,
            "transitions": cluster.scheduler.transition_counter - transitions,
            "files": files,
            "seconds to the last agent": started,
            "heartbeats": counter.heartbeats,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES)
    nodes = parser.parse_args().nodes
    os.environ.update(PATIENT)
    dask.config.refresh()
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    os.environ["RLNB_ROOT"] = str(rlnb.options.root)
    rlnb.register(Waiting())
    counter = Counter()
    found = []
    for count in nodes:
        found.append(train(count, counter))
        print(count, {name: round(value, 1) for name, value in found[-1].items()}, flush=True)
    for what in ("messages", "transitions", "files"):
        counts = [each[what] for each in found]
        power = float(np.polyfit(np.log(nodes), np.log(counts), 1)[0])
        record(
            f"{what} of a training on {', '.join(map(str, nodes))} simulated nodes",
            f"{', '.join(f'{count:.0f}' for count in counts)}: growth with nodes^{power:.2f}",
            "no faster than linearly",
            power <= 1.02,
        )


if __name__ == "__main__":
    main()
