"""Grid Engine: each node of a training is a job, charged to a project."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rlnb import Problem
from rlnb_dask.queues.launcher import Argument, QueueLauncher

_CORES = re.compile(r"-pe\s")
_MEMORY = re.compile("mem|rss|virtual_free")


class Sge(QueueLauncher):
    """Runs each node of a training as a job of Grid Engine. See :class:`QueueLauncher` for the arguments.

    Only the site knows the names of its parallel environments and of its memory resources, so cores and memory are
    directives: ``["-pe smp 16", "-l mem_free=64G"]``.
    """

    name = "sge"
    title = "Grid Engine"
    jobqueue = "SGE"

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the project instead of an account, and the cores."""
        return {"project": self.account, "account": None, "cores": self.cores}

    def own_directives(self, nodes: int) -> Sequence[str]:
        """Return the directive for the number of GPUs per node."""
        return [f"-l gpu={self.gpus_per_node}"] if self.gpus_per_node else []

    def size_problems(self) -> Sequence[Problem]:
        """Return the cores and the memory that no directive requests."""
        text, problems = f"{self.free_text()}\n{self.site('resource-spec')}", []
        if self.cores > 1 and not _CORES.search(text):
            what = (
                f"Grid Engine would give the job one core, not {self.cores:g}: no directive has a parallel environment."
            )
            fix = f'Use directives=["-pe smp {self.cores:g}"]. `qconf -spl` lists the names of the environments.'
            problems.append(Problem(what=what, fix=fix))
        if self.memory_gib_per_node and not _MEMORY.search(text):
            what = f"memory_gib_per_node={self.memory_gib:g}, but no directive requests memory from Grid Engine."
            fix = f'Use directives=["-l mem_free={self.memory_gib:g}G"]. `qconf -sc` lists the names of the resources.'
            problems.append(Problem(what=what, fix=fix))
        return problems
