"""LSF: each node of a training is a job, and the walltime has no seconds field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlnb_dask.queues.launcher import Argument, QueueLauncher
from rlnb_dask.queues.walltime import clock_of, seconds_of


class Lsf(QueueLauncher):
    """Runs each node of a training as a job of LSF. See :class:`QueueLauncher` for the arguments."""

    name = "lsf"
    title = "LSF"
    jobqueue = "LSF"

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the project instead of an account, the cores, and the memory in bytes."""
        return {
            "project": self.account,
            "account": None,
            "ncpus": self.site_size("ncpus") or self.cores,
            "mem": self.site_size("mem") or int(self.memory_gib * 2**30),
        }

    def own_directives(self, nodes: int) -> Sequence[str]:
        """Return the directive for the number of GPUs per node."""
        return [f"-gpu num={self.gpus_per_node}"] if self.gpus_per_node else []

    def walltime_text(self) -> str | None:
        """Return the walltime as hours and minutes."""
        seconds = seconds_of(self.walltime)
        return self.walltime if seconds is None else "{:02}:{:02}".format(*clock_of(seconds))
