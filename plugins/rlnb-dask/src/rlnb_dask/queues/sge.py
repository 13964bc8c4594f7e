"""Grid Engine: each node of a training is a job, charged to a project.

The sources of options and formats are the manual pages of Son of Grid Engine 8.1.9: qsub(1), qstat(1), accounting(5).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence

from rlnb.plugin import Problem
from rlnb_dask.arrays.launcher import ArrayQueueLauncher
from rlnb_dask.arrays.sge import SgeArrays
from rlnb_dask.queues import ids, queries
from rlnb_dask.queues.launcher import Argument
from rlnb_dask.queues.sge_answers import AWAY, account_of, cause_of, error_state_of, states_of

_CORES = re.compile(r"-pe\s")
_MEMORY = re.compile("mem|rss|virtual_free")
_SHELL = re.compile(r"^-S\s", re.MULTILINE)
_LAST_WORDS = re.compile(r"^(Exiting\.|verification: .*)$")
"""Lines that follow the reason of qsub."""


class Sge(ArrayQueueLauncher):
    """Runs each node of a training as a job of Grid Engine. See :class:`QueueLauncher` for the arguments.

    Only the site knows the names of its parallel environments and of its memory resources, so cores and memory are
    directives: ``["-pe smp 16", "-l mem_free=64G"]``. The name of a GPU is ``gpu``, which Grid Engine may count for
    each slot of a parallel environment, so that ``-pe smp 16`` with ``gpu=4`` means 64; ``gpus_per_node=0`` and a
    directive request it under the site's own name.
    """

    name = "sge"
    title = "Grid Engine"
    jobqueue = "SGE"
    job_ids = ids.GRID_ENGINE
    outputs = ("rlnb.o{}",)
    waiting = r"\w*q"  # such as qw and hqw
    away = AWAY
    arrays = SgeArrays()

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the project instead of an account, and the cores."""
        return {"project": self.account, "account": None, "cores": self.cores}

    def own_directives(self, nodes: int) -> Sequence[str]:
        """Return the directives for a shell and the number of GPUs, and the one that forbids a second copy."""
        # Unless a queue is set up otherwise, Grid Engine ignores the first line of a script and takes its own shell.
        shell = [] if _SHELL.search(self.free_text()) else ["-S /bin/bash"]
        gpus = [f"-l gpu={self.gpus_per_node}"] if self.gpus_per_node else []
        return [*shell, "-r n", *gpus]

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

    def refusal(self) -> Problem | None:
        """Return qsub's objection to the job, without a submission; None if there is none."""
        argv = ["qsub", "-w", "v"]
        try:
            process = queries.run(argv, self.job_script())
        except subprocess.TimeoutExpired:
            return Problem(
                what=f"Grid Engine does not answer within {queries.ANSWER_S} s, so it cannot check this job.",
                fix="Try again once `qstat` answers. If it never does, there is no master.",
            )
        output = f"{process.stdout}{process.stderr}" if process.returncode else ""
        # "no suitable queues" may be true only until a node is up again, and qsub itself takes the job.
        if not output or "verification: " in output:
            return None
        objection = self.reason(output).removeprefix("Unable to run job: ").removeprefix("job rejected: ")
        return Problem(
            what=f"Grid Engine would refuse this job: {objection}",
            fix="`qconf -sql` lists the queues, and `qconf -sc` the resources. If they fail too, there is no master.",
        )

    def living(self, ids: Sequence[str]) -> Mapping[str, str] | None:
        """Return the state of each job that waits or runs. A job in an error state does neither."""
        output = queries.ask(["qstat", "-xml"])
        states = None if output is None else states_of(output)
        if states is None:
            return None
        jobs = {number: state for number, state in states.items() if number in ids and "E" not in state}
        waiting = [number for number, state in jobs.items() if "q" in state]
        for number in waiting[:1]:  # a query for each job would load the master, and they wait for the same thing
            if cause := self._cause(number):
                jobs[number] = f"{jobs[number]} ({cause})"
        return jobs

    def final(self, number: str) -> str | None:
        """Return the cause of a job's error state, or its state in the accounting file, which may lag behind."""
        if cause := self._cause(number):
            return error_state_of(cause)
        output = queries.ask(["qacct", "-j", number], unless=("not found", "No such file"))
        return account_of(output or "")

    def _cause(self, number: str) -> str:
        output = queries.ask(["qstat", "-j", number], unless=("do not exist",))
        return cause_of(output or "")

    def reason(self, output: str) -> str:
        """Return the line of an output that gives a cause, without the words that qsub appends to its objection."""
        lines = (line for line in output.splitlines() if not _LAST_WORDS.match(line.strip()))
        return super().reason("\n".join(lines))
