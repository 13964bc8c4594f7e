"""The launcher for clusters that start the nodes themselves, as pods that know their rank (PAI-DLC, for example)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlnb.errors import Problem, whole_number
from rlnb.records.layout import JobDir
from rlnb.spec import Json, Manifest
from rlnb.storage import files
from rlnb.storage.clock import age_s

NODE_VARIABLES = {
    "MASTER_ADDR": "PET_MASTER_ADDR",
    "MASTER_PORT": "PET_MASTER_PORT",
    "WORLD_SIZE": "PET_NNODES",
    "RANK": "PET_NODE_RANK",
}
"""Variables that PAI-DLC, Kubeflow's PyTorchJob and Volcano set, and those of torchrun, which Kubeflow's TrainJob sets.

Those of torchrun always count nodes, so they come first.
"""
SILENT_S = 60.0
"""Seconds without a heartbeat of any pod after which an interrupted training does not go on by itself."""


class InjectedLauncher:
    """Creates a run's folder but starts no process. Each pod runs ``python -m rlnb.pods RUN_DIR``.

    The cluster's operator sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK in the environment of the pods; the last
    two count nodes. PAI-DLC, Kubeflow's PyTorchJob and Volcano do so. Kubeflow's TrainJob sets the same variables with
    the names of torchrun. :meth:`rlnb.Run.job_script` writes the manifest for the operator.

    If a pod is killed and the operator starts it again, all pods go on from the last checkpoint in a further job.

    Args:
        nodes: Number of pods.
        nproc_per_node: Ranks in each pod, usually its number of GPUs.
        walltime_s: Seconds after which the training is stopped; None sets no limit.
        max_restarts: Number of interruptions after which the training is not continued.
    """

    name = "injected"
    max_running = None

    def __init__(
        self,
        *,
        nodes: int = 1,
        nproc_per_node: int | None = None,
        walltime_s: float | None = None,
        max_restarts: int = 3,
    ) -> None:
        self.nodes, self.nproc_per_node, self.walltime_s = nodes, nproc_per_node, walltime_s
        self.max_restarts = max_restarts

    @property
    def settings(self) -> Mapping[str, Json]:
        """Arguments that recreate this launcher."""
        return {
            "nodes": self.nodes,
            "nproc_per_node": self.nproc_per_node,
            "walltime_s": self.walltime_s,
            "max_restarts": self.max_restarts,
        }

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return a problem for each count that is not a positive whole number."""
        problems = whole_number("nodes", self.nodes, example=1)
        if self.nproc_per_node is not None:
            problems += whole_number("nproc_per_node", self.nproc_per_node, example=1)
        return problems + whole_number("max_restarts", self.max_restarts, least=0, example=3)

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Json]:
        """Do nothing. ``job_dir`` holds everything that a pod needs."""
        return {}

    def alive(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        """Return True until a pod has started, then None: from then on the job's heartbeat shows whether it lives.

        After the job's result, the pods that wait for another one beat on, unless the first has refused to go on.
        """
        job = JobDir(job_dir)
        if not files.there(job.result):
            return None if job.hosts() else True
        return not files.there(job.refusal("node0")) and any(age_s(beat) < SILENT_S for beat in job.beats())

    def cancel(self, handle: Mapping[str, Json], job_dir: Path) -> None:
        """Do nothing. A pod that starts later finds the cancel file."""

    def __repr__(self) -> str:
        return f"InjectedLauncher(nodes={self.nodes}, nproc_per_node={self.nproc_per_node})"
