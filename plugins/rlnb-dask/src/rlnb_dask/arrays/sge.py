"""Grid Engine's arrays (``-t`` and ``-tc`` of qsub)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlnb_dask.arrays.queue import ArrayQueue, logger, ranges, run


class SgeArrays(ArrayQueue):
    """The commands of Grid Engine for arrays."""

    first = 1
    variable = "SGE_TASK_ID"

    def submit_argv(
        self, script: Path, members: Path, *, count: int, at_once: int | None, outputs: Path
    ) -> Sequence[str]:
        """Return the qsub command."""
        limit = ["-tc", str(at_once)] if at_once else []
        output = ["-o", f"{outputs}/$JOB_ID.$TASK_ID.out"]
        return ["qsub", "-terse", "-t", f"1-{count}", *limit, *output, str(script), str(members)]

    def id_of(self, answer: str) -> str:
        """Return the id that ``qsub -terse`` prints before the numbers of the elements."""
        return answer.strip().splitlines()[-1].partition(".")[0]

    def element(self, array: str, position: int) -> str:
        """Return the name of an element, such as ``"17.4"``."""
        return f"{array}.{position + 1}"

    def remove_argv(self, array: str, positions: Sequence[int]) -> Sequence[str]:
        """Return the qdel command."""
        return ["qdel", array, "-t", ranges([position + 1 for position in positions])]

    def look(self, array: str) -> Mapping[int, str] | None:
        """Return qstat's state of each element."""
        try:
            process = run(["qstat", "-g", "d"])
        except subprocess.TimeoutExpired:
            return None
        if process.returncode:
            logger.info("Grid Engine does not answer: %s", process.stderr.strip())
            return None
        return states(array, process.stdout)

    def waits(self, state: str) -> bool:
        """Return whether the state has the letters of a waiting job."""
        return "qw" in state

    def fault(self, array: str, state: str) -> str:
        """Return the reason of an element's error state, such as Eqw."""
        if "E" not in state:
            return ""
        try:
            answer = run(["qstat", "-j", array]).stdout
        except subprocess.TimeoutExpired:
            answer = ""
        match = re.search(r"^error reason\s+\d+:\s*(.*)", answer, re.MULTILINE)
        return f"Grid Engine has put it into its error state: {match[1].strip() if match else state}"


def states(array: str, answer: str) -> Mapping[int, str]:
    """Return the state of each element by its position, from the lines of ``qstat -g d``."""
    rows = (line.split() for line in answer.splitlines())
    mine = (row for row in rows if len(row) > 5 and row[0] == array and row[-1].isdigit())
    return {int(row[-1]) - 1: row[4] for row in mine}
