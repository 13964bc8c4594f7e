"""Grid Engine: each node of a training run is a separate job, charged to a project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlnb_dask.queues.launcher import Argument, QueueLauncher


class Sge(QueueLauncher):
    """Runs each node of a training run as a Grid Engine job. See :class:`QueueLauncher` for the arguments."""

    name = "sge"
    title = "Grid Engine"
    jobqueue = "SGE"

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the account as Grid Engine's project, and the number of cores."""
        return {"project": self.account, "account": None, "cores": self.cores}

    def own_directives(self, nodes: int) -> Sequence[str]:
        """Return the directive for the number of GPUs per node."""
        return [f"-l gpu={self.gpus_per_node}"] if self.gpus_per_node else []
