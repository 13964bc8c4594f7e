"""A job on several nodes: the place of this node among them, and the detection of lost nodes."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlnb.records.layout import JobDir, run_dir_of
from rlnb.storage import files

JOIN_S = 900.0
"""Seconds that the other nodes have to start, since they may have to pull images and mount folders first."""
HANGS = "nothing was logged"
LOOK_S = 5.0
"""Seconds between checks of event files and of other nodes' heartbeats, which lie on a shared file system."""
START_S = 3600.0
"""Seconds that the ranks have to reach their first iteration. The first start of Isaac Sim compiles its shaders."""
SILENT_S = 90.0
"""Seconds without a heartbeat after which a node counts as lost. NFS may show a heartbeat a minute late."""


@dataclass(frozen=True)
class Member:
    """One node's place in a job."""

    node: int = 0
    """Number of the node, from 0."""
    nodes: int = 1
    """Number of nodes of the job."""
    master: str = ""
    """``"host:port"`` of the first node, for the rendezvous of the ranks."""

    def env(self) -> Mapping[str, str]:
        """Return the variables that torchrun reads (``torch.distributed.argparse_util``)."""
        host, _, port = (self.master or _free_address()).rpartition(":")
        return {"PET_NODE_RANK": str(self.node), "PET_MASTER_ADDR": host.strip("[]"), "PET_MASTER_PORT": port}

    def __str__(self) -> str:
        return f"node {self.node} ({socket.gethostname()})"


def _free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"127.0.0.1:{probe.getsockname()[1]}"


def size_of(paths: Iterable[Path]) -> int:
    """Return the size of files in bytes, without those that are gone or cannot be read, such as a dangling link."""
    size = 0
    for path in paths:
        with contextlib.suppress(OSError):
            size += path.stat().st_size
    return size


class Stall:
    """Detects that a training has stopped logging, because its event files no longer grow. Works for every library.

    The limit applies from the first iteration on. The start may take ``START_S``, or ``limit_s`` if that is longer. A
    worker reports its first iteration, and a script has reached it when it logs.

    Args:
        job: Folder of the training.
        limit_s: Seconds without a new scalar after which the training counts as hung.
    """

    def __init__(self, job: JobDir, limit_s: float) -> None:
        self._job, self._run, self._limit_s = job, run_dir_of(job.path), limit_s
        self._size, self._since, self._looked, self._iterates = -1, time.monotonic(), 0.0, False

    def hangs(self) -> str:
        """Return a message if a rank hangs, else an empty string."""
        now = time.monotonic()
        if now - self._looked < min(LOOK_S, self._limit_s / 4):
            return ""
        self._looked = now
        size = size_of(self._run.event_files())
        starts = not self._iterates
        self._iterates = self._iterates or files.there(self._job.started) or -1 < self._size < size
        if size != self._size or (starts and self._iterates):
            self._size, self._since = size, now
        limit_s = self._limit_s if self._iterates else max(self._limit_s, START_S)
        if now - self._since < limit_s:
            return ""
        where = "" if self._iterates else " before the first iteration"
        return (
            f"{HANGS} for {limit_s:.0f} s: a rank hangs{where}. The end of each node's log shows the stacks of its "
            "ranks"
        )


class Peers:
    """Detects that another node is lost, because its heartbeat no longer changes.

    The first node checks all others, and they check only the first, so that the number of checks is linear in the
    number of nodes. Clocks of different hosts are never compared.
    """

    def __init__(self, job: JobDir, member: Member) -> None:
        self._job, self._start, self._looked = job, time.monotonic(), 0.0
        self._others = range(1, member.nodes) if member.node == 0 else range(1)
        self._beats: dict[int, tuple[float, float]] = {}

    def missing(self) -> str:
        """Return a message that names a lost node, else an empty string."""
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return ""
        self._looked = now
        for node in self._others:
            try:
                beat = self._job.alive(node).stat().st_mtime
            except OSError:
                if now - self._start > JOIN_S and node not in self._beats:
                    return f"node {node} did not start within {JOIN_S:.0f} s"
                continue
            before, since = self._beats.get(node, (None, now))
            self._beats[node] = (beat, since if beat == before else now)
            if now - self._beats[node][1] > SILENT_S:
                return f"node {node} has been silent for {SILENT_S:.0f} s: it is down or has lost the shared folder"
        return ""
