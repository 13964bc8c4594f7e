"""PBS: each node of a training is a job of one chunk (https://www.openpbs.org)."""

from __future__ import annotations

from collections.abc import Mapping

from rlnb_dask.queues.launcher import Argument, QueueLauncher


class Pbs(QueueLauncher):
    """Runs each node of a training as a job of PBS. See :class:`QueueLauncher` for the arguments."""

    name = "pbs"
    title = "PBS"
    jobqueue = "PBS"

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the chunk that describes a node."""
        gpus = f":ngpus={self.gpus_per_node}" if self.gpus_per_node else ""
        chunk = f"select=1:ncpus={self.cores}:mem={self.memory_gib * 1024:.0f}mb{gpus}"
        return {"resource_spec": self.site_size("resource-spec") or chunk}
