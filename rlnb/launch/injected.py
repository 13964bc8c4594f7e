"""The launcher for clusters that start the nodes themselves, as pods that know their rank (PAI-DLC, for example)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlnb.errors import Problem, whole_number
from rlnb.records.layout import JobDir
from rlnb.spec import Json, Manifest


class InjectedLauncher:
    """Creates a run's folder but starts no process. Each pod runs ``python -m rlnb.node --injected RUN_DIR``.

    The cluster's operator sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK in the environment of the pods; the last
    two count nodes. PAI-DLC, Kubeflow's PyTorchJob and Volcano do so. :func:`rlnb.render` renders the manifest for
    the operator.

    Args:
        nodes: Number of pods.
        nproc_per_node: Ranks in each pod, usually its number of GPUs.
        walltime_s: Seconds after which the training is stopped; None sets no limit.
    """

    name = "injected"
    max_running = None

    def __init__(self, *, nodes: int = 1, nproc_per_node: int | None = None, walltime_s: float | None = None) -> None:
        self.nodes, self.nproc_per_node, self.walltime_s = nodes, nproc_per_node, walltime_s

    @property
    def settings(self) -> Mapping[str, Json]:
        """Arguments that recreate this launcher."""
        return {"nodes": self.nodes, "nproc_per_node": self.nproc_per_node, "walltime_s": self.walltime_s}

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return a problem for each count that is not a positive whole number."""
        problems = whole_number("nodes", self.nodes, example=1)
        if self.nproc_per_node is not None:
            problems += whole_number("nproc_per_node", self.nproc_per_node, example=1)
        return problems

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Json]:
        """Do nothing. ``job_dir`` holds everything that a pod needs."""
        return {}

    def alive(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        """Return True until a pod has started, then None: from then on the job's heartbeat shows whether it lives."""
        return None if JobDir(job_dir).hosts() else True

    def cancel(self, handle: Mapping[str, Json], job_dir: Path) -> None:
        """Do nothing. A pod that starts later finds the cancel file."""

    def __repr__(self) -> str:
        return f"InjectedLauncher(nodes={self.nodes}, nproc_per_node={self.nproc_per_node})"
