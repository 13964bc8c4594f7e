"""OAR: each node of a training is a job, sized by a resource path (https://oar.imag.fr)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rlnb import Problem
from rlnb_dask.queues.launcher import Argument, QueueLauncher

MEMORY_PROPERTY = "memory-per-core-property-name"


class Oar(QueueLauncher):
    """Runs each node of a training as a job of OAR. See :class:`QueueLauncher` for the arguments."""

    name = "oar"
    title = "OAR"
    jobqueue = "OAR"

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the project instead of an account, and the resources of a node."""
        # A GPU comes with the cores beside it. /core= below it is a number for each GPU, and takes fewer.
        cores = f"/core={math.ceil(self.cpus_per_node / (self.gpus_per_node or 1))}" if self.cpus_per_node else ""
        node = f"/gpu={self.gpus_per_node}{cores}" if self.gpus_per_node else f"/core={self.cores}"
        memory = None if self.memory_gib_per_node or not self.gpus_per_node else "not_applicable"
        return {
            "project": self.account,
            "account": None,
            "cores": self.cores,  # dask-jobqueue divides the memory by it
            "memory_per_core_property_name": memory,
            "resource_spec": self.site_size("resource-spec") or f"/nodes=1{node}",
        }

    def size_problems(self) -> Sequence[Problem]:
        """Return the memory that no property of the site's nodes stands for."""
        if not self.memory_gib_per_node or self.site(MEMORY_PROPERTY) or "mem" in self.free_text():
            return []
        what = f"memory_gib_per_node={self.memory_gib:g}, but OAR has no option for memory: it comes with the cores."
        fix = f"Use cpus_per_node, or {MEMORY_PROPERTY} in jobqueue.yaml with the name of the site's property."
        return [Problem(what=what, fix=fix)]
