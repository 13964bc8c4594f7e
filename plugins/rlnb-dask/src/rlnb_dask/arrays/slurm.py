"""Slurm's arrays (https://slurm.schedmd.com/job_array.html)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlnb_dask.arrays.queue import ArrayQueue, ranges
from rlnb_dask.queues import queries, slurm_answers, slurm_nodes

UNWANTED = ("CANCELLED", "FAILED")
"""States of an element that was cancelled in the queue, or has failed by itself."""


class SlurmArrays(ArrayQueue):
    """The commands of Slurm for arrays."""

    first = 0
    variable = "SLURM_ARRAY_TASK_ID"

    def submit_argv(
        self, script: Path, members: Path, *, name: str, count: int, at_once: int | None, outputs: Path
    ) -> Sequence[str]:
        """Return the sbatch command."""
        limit = f"%{at_once}" if at_once else ""
        output = f"{str(outputs).replace('%', '%%')}/%A.%a.out"
        options = [f"--job-name={name}", f"--array=0-{count - 1}{limit}", f"--output={output}", f"--error={output}"]
        return ["sbatch", "--parsable", *options, str(script), str(members)]

    def id_of(self, answer: str) -> str:
        """Return the id that ``sbatch --parsable`` prints before the cluster's name."""
        return answer.strip().splitlines()[-1].partition(";")[0]

    def submitted(self, name: str) -> str | None:
        """Return the id of the array with a name, from squeue."""
        output = queries.ask(["squeue", "-h", "--me", "-n", name, "-o", "%F"])
        return None if output is None else next(iter(output.split()), "")

    def element(self, array: str, position: int) -> str:
        """Return the name of an element, such as ``"17_3"``."""
        return f"{array}_{position}"

    def remove_argv(self, array: str, positions: Sequence[int]) -> Sequence[str]:
        """Return the scancel command."""
        return ["scancel", "--", f"{array}_[{ranges(positions)}]"]

    def look(self, array: str) -> Mapping[int, str] | None:
        """Return squeue's state of each element with its reason, such as ``"PENDING (JobArrayTaskLimit)"``."""
        output = queries.ask(["squeue", "-h", "-r", "-j", array, "-o", "%K %T (%r)"], unless=slurm_answers.UNKNOWN)
        return None if output is None else states(output)

    def waits(self, state: str) -> bool:
        """Return whether the state is PENDING."""
        return state.startswith("PENDING")

    def final(self, array: str, position: int) -> str:
        """Return the state of an ended element that the controller still remembers (MinJobAge)."""
        name = self.element(array, position)
        state = slurm_nodes.final_states([name]).get(name, "")
        return queries.done(0) if state == "COMPLETED" else state

    def unwanted(self, state: str) -> bool:
        """Return whether the element was cancelled in the queue, or has ended by itself."""
        return state == queries.done(0) or slurm_nodes.word_of(state) in UNWANTED

    def most(self) -> int | None:
        """Return one less than the controller's MaxArraySize, which bounds the numbers of elements."""
        answer = queries.ask(["scontrol", "show", "config"]) or ""
        match = re.search(r"^MaxArraySize\s*=\s*(\d+)", answer, re.MULTILINE)
        return int(match[1]) - 1 if match else None


def states(answer: str) -> Mapping[int, str]:
    """Return the state of each element by its number, from squeue's lines; without a reason if there is none."""
    rows = (line.strip().partition(" ") for line in answer.splitlines())
    return {int(number): text.removesuffix(" (None)") for number, _, text in rows if number.isdigit()}
