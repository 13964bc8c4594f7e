"""A job on several nodes: which of them this is, and whether the others are still there."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.records.layout import JobDir, RunDir

JOIN_S = 900.0
"""Seconds that the other nodes have to begin: images are pulled and folders mounted meanwhile."""
HANGS = "nothing was logged"
LOOK_S = 5.0
"""Seconds between looks at event files, and at other nodes' heartbeats: the file system serves everybody."""
SILENT_S = 90.0
"""Seconds without a heartbeat after which a node is gone. NFS may show one up to a minute late."""


@dataclass(frozen=True)
class Member:
    """One node's place in a job."""

    node: int = 0
    """Which it is, from 0."""
    nodes: int = 1
    """How many there are."""
    master: str = ""
    """``"host:port"`` of the first, where the ranks meet."""

    def env(self) -> Mapping[str, str]:
        """Return what torchrun reads of it (``torch.distributed.argparse_util``); nothing on a single node."""
        if self.nodes == 1:
            return {}
        host, _, port = self.master.rpartition(":")
        return {"PET_NODE_RANK": str(self.node), "PET_MASTER_ADDR": host.strip("[]"), "PET_MASTER_PORT": port}

    def __str__(self) -> str:
        return f"node {self.node} ({socket.gethostname()})"


INJECTED = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
"""What PAI-DLC, Kubeflow's PyTorchJob and Volcano put into the environment; the last two count nodes."""


def injected(run_dir: Path, nodes: int, gpus: int, environ: Mapping[str, str]) -> Member:
    """Return which node of a run this is, as the cluster's operator has put it into the environment.

    Args:
        run_dir: The run.
        nodes: Nodes that the run is for.
        gpus: GPUs that its ranks need on each of them. NPROC_PER_NODE, how many a pod has, may not be less.
        environ: The environment.

    Raises:
        RlnbError: Something is missing, or the pods are not those that the run is for.
    """
    if lacking := [name for name in INJECTED if not environ.get(name)]:
        raise RlnbError(
            f"{', '.join(lacking)} not set here. PAI-DLC, PyTorchJob and Volcano set them in each pod; elsewhere use "
            f"python -m rlnb.node JOB_DIR --node K --master HOST:PORT"
        )
    # The operator of PyTorchJob says the same in torchrun's own words too, which never count processes.
    words = {"WORLD_SIZE": "PET_NNODES", "RANK": "PET_NODE_RANK"}
    found = {name: environ.get(other) or environ[name] for name, other in words.items()}
    if wrong := [f"{name}={value!r}" for name, value in found.items() if not value.isdigit()]:
        raise RlnbError(f"{', '.join(wrong)}: whole numbers are expected, of nodes.")
    there, node = int(found["WORLD_SIZE"]), int(found["RANK"])
    if there != nodes or node >= there:
        raise RlnbError(
            f"RANK={node} of WORLD_SIZE={there} pods, but {run_dir.name} is for {nodes} nodes. These count nodes here, "
            "not processes: one pod for each node."
        )
    room = environ.get("NPROC_PER_NODE", "")
    if room.isdigit() and 0 < int(room) < gpus:
        raise RlnbError(f"NPROC_PER_NODE={room} here, but {run_dir.name} is for {gpus} ranks on GPUs of each node.")
    return Member(node, nodes, f"{environ['MASTER_ADDR']}:{environ['MASTER_PORT']}")


def newest_training(run_dir: Path) -> JobDir:
    """Return the folder of a run's newest training.

    Raises:
        RlnbError: It has none.
    """
    trainings = [job for job in RunDir(run_dir).jobs() if job.kind == "train"]
    if not trainings:
        raise RlnbError(f"{run_dir} has no training to run. Is it a run's folder, and mounted here?")
    return trainings[-1]


class Stall:
    """Notices that a training logs nothing any more, whatever its library: its event files stand still.

    Args:
        run: The run.
        limit_s: Seconds without a new scalar after which a rank is taken to hang.
    """

    def __init__(self, run: RunDir, limit_s: float) -> None:
        self._run, self._limit_s = run, limit_s
        self._size, self._since, self._looked = -1, time.monotonic(), 0.0

    def hangs(self) -> str:
        """Return in words that it does; nothing while it does not."""
        now = time.monotonic()
        if now - self._looked < min(LOOK_S, self._limit_s / 4):
            return ""
        self._looked = now
        size = sum(path.stat().st_size for path in self._run.event_files())
        if size != self._size:
            self._size, self._since = size, now
        if now - self._since < self._limit_s:
            return ""
        return f"{HANGS} for {self._limit_s:.0f} s: a rank hangs. Where each is, stands at the end of its node's log"


class Peers:
    """Notices that another node is gone: its heartbeat stands still.

    The first node looks at all others, each of them at the first: so looks grow with the nodes, not with their square.
    Clocks of different hosts are never compared.
    """

    def __init__(self, job: JobDir, member: Member) -> None:
        self._job, self._begun, self._looked = job, time.monotonic(), 0.0
        self._others = range(1, member.nodes) if member.node == 0 else range(1)
        self._seen: dict[int, tuple[float, float]] = {}

    def missing(self) -> str:
        """Return which node is gone, in words; nothing if none is."""
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return ""
        self._looked = now
        for node in self._others:
            try:
                beat = self._job.alive(node).stat().st_mtime
            except OSError:
                if now - self._begun > JOIN_S and node not in self._seen:
                    return f"node {node} did not begin within {JOIN_S:.0f} s"
                continue
            before, since = self._seen.get(node, (None, now))
            self._seen[node] = (beat, since if beat == before else now)
            if now - self._seen[node][1] > SILENT_S:
                return f"node {node} has been silent for {SILENT_S:.0f} s: it is down, or has lost the shared folder"
        return ""
