"""Grid Engine's arrays (``-t`` and ``-tc`` of qsub)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlnb_dask.arrays.queue import ArrayQueue, ranges
from rlnb_dask.queues import queries, sge_answers
from rlnb_dask.queues.launcher import ACCOUNT_S


class SgeArrays(ArrayQueue):
    """The commands of Grid Engine for arrays."""

    first = 1
    variable = "SGE_TASK_ID"
    account_s = ACCOUNT_S

    def submit_argv(
        self, script: Path, members: Path, *, name: str, count: int, at_once: int | None, outputs: Path
    ) -> Sequence[str]:
        """Return the qsub command."""
        limit = ["-tc", str(at_once)] if at_once else []
        output = ["-o", f"{outputs}/$JOB_ID.$TASK_ID.out"]
        return ["qsub", "-terse", "-N", name, "-t", f"1-{count}", *limit, *output, str(script), str(members)]

    def id_of(self, answer: str) -> str:
        """Return the id that ``qsub -terse`` prints before the numbers of the elements."""
        return answer.strip().splitlines()[-1].partition(".")[0]

    def submitted(self, name: str) -> str | None:
        """Return the id of the array with a name, from qstat."""
        output = queries.ask(["qstat", "-xml"])
        ids = None if output is None else sge_answers.ids_of(output)
        return None if ids is None else ids.get(name, "")

    def element(self, array: str, position: int) -> str:
        """Return the name of an element, such as ``"17.4"``."""
        return f"{array}.{position + 1}"

    def remove_argv(self, array: str, positions: Sequence[int]) -> Sequence[str]:
        """Return the qdel command."""
        return ["qdel", array, "-t", ranges([position + 1 for position in positions])]

    def look(self, array: str) -> Mapping[int, str] | None:
        """Return qstat's state of each element, such as ``"r"``, with the one reason why the waiting elements wait."""
        output = queries.ask(["qstat", "-g", "d"])
        if output is None:
            return None
        elements = states(array, output)
        waiting = [position for position, state in elements.items() if self.waits(state) and "E" not in state]
        if waiting and (cause := self._cause(array)):
            elements.update({position: f"{elements[position]} ({cause})" for position in waiting})
        return elements

    def waits(self, state: str) -> bool:
        """Return whether the state has the letters of a waiting job."""
        return "qw" in state.split()[0]

    def final(self, array: str, position: int) -> str:
        """Return the state of an ended element in the accounting file; empty if there is none, or none yet."""
        argv = ["qacct", "-j", array, "-t", str(position + 1)]
        return sge_answers.account_of(queries.ask(argv, unless=("not found", "No such file")) or "") or ""

    def unwanted(self, state: str) -> bool:
        """Return whether the element has ended by itself. A deleted one looks like one whose node was taken away."""
        return state == queries.done(0) or queries.by_itself(state)

    def fault(self, array: str, state: str) -> str:
        """Return the reason of an element's error state, such as Eqw."""
        if "E" not in state.split()[0]:
            return ""
        return f"Grid Engine has put it into its error state: {self._cause(array) or state}"

    def _cause(self, array: str) -> str:
        return sge_answers.cause_of(queries.ask(["qstat", "-j", array], unless=("do not exist",)) or "")


def states(array: str, answer: str) -> dict[int, str]:
    """Return the state of each element by its position, from the lines of ``qstat -g d``."""
    rows = (line.split() for line in answer.splitlines())
    mine = (row for row in rows if len(row) > 5 and row[0] == array and row[-1].isdigit())
    return {int(row[-1]) - 1: row[4] for row in mine}
