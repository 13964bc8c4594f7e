"""HTCondor: each node of a training is a job, and directives are assignments (https://htcondor.org)."""

from __future__ import annotations

from collections.abc import Mapping

from rlnb_dask.queues.launcher import Argument, QueueLauncher


class HTCondor(QueueLauncher):
    """Runs each node of a training as a job of HTCondor. See :class:`QueueLauncher` for the arguments.

    HTCondor has no partitions, accounts or walltimes. ``directives`` are assignments, such as ``["+Project = rl"]``.
    """

    name = "htcondor"
    title = "HTCondor"
    jobqueue = "HTCondor"
    needs_walltime = False

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the cores and the disk, and None for the arguments that HTCondor does not have."""
        return {"queue": None, "account": None, "walltime": None, "disk": "1GiB", "cores": self.cores}

    def extra_directives(self, nodes: int) -> Mapping[str, str]:
        """Return the site's and the user's assignments, and the number of GPUs per node."""
        pairs = (directive.partition("=") for directive in self.directives)
        assignments = {name.strip(): value.strip() for name, _, value in pairs}
        gpus = {"request_gpus": str(self.gpus_per_node)} if self.gpus_per_node else {}
        return {**dict(self.site("job-extra-directives") or {}), **assignments, **gpus}
