"""OAR: each node of a training is a job, sized by a resource path (https://oar.imag.fr)."""

from __future__ import annotations

from collections.abc import Mapping

from rlnb_dask.queues.launcher import Argument, QueueLauncher


class Oar(QueueLauncher):
    """Runs each node of a training as a job of OAR. See :class:`QueueLauncher` for the arguments."""

    name = "oar"
    title = "OAR"
    jobqueue = "OAR"

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the project instead of an account, and the resources of a node."""
        node = f"/nodes=1/gpu={self.gpus_per_node}" if self.gpus_per_node else f"/nodes=1/core={self.cores}"
        return {"project": self.account, "account": None, "resource_spec": self.site_size("resource-spec") or node}
