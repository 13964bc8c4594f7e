"""Grid Engine: each node of a training is a job, charged to a project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlnb_dask.queues.launcher import Argument, QueueLauncher


class Sge(QueueLauncher):
    """Runs each node of a training as a job of Grid Engine. See :class:`QueueLauncher` for the arguments."""

    name = "sge"
    title = "Grid Engine"
    jobqueue = "SGE"

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the project instead of an account, and the cores."""
        return {"project": self.account, "account": None, "cores": self.cores}

    def own_directives(self, nodes: int) -> Sequence[str]:
        """Return the directive for the number of GPUs per node."""
        return [f"-l gpu={self.gpus_per_node}"] if self.gpus_per_node else []
