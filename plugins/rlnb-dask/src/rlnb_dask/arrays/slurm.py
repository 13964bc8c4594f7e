"""Slurm's arrays (https://slurm.schedmd.com/job_array.html)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlnb_dask.arrays.queue import ArrayQueue, logger, ranges, run

UNWANTED = ("CANCELLED", "FAILED")


class SlurmArrays(ArrayQueue):
    """The commands of Slurm for arrays."""

    first = 0
    variable = "SLURM_ARRAY_TASK_ID"

    def submit_argv(
        self, script: Path, members: Path, *, count: int, at_once: int | None, outputs: Path
    ) -> Sequence[str]:
        """Return the sbatch command."""
        limit = f"%{at_once}" if at_once else ""
        output = f"{str(outputs).replace('%', '%%')}/%A.%a.out"
        options = [f"--array=0-{count - 1}{limit}", f"--output={output}", f"--error={output}"]
        return ["sbatch", "--parsable", *options, str(script), str(members)]

    def id_of(self, answer: str) -> str:
        """Return the id that ``sbatch --parsable`` prints before the cluster's name."""
        return answer.strip().splitlines()[-1].partition(";")[0]

    def element(self, array: str, position: int) -> str:
        """Return the name of an element, such as ``"17_3"``."""
        return f"{array}_{position}"

    def remove_argv(self, array: str, positions: Sequence[int]) -> Sequence[str]:
        """Return the scancel command."""
        return ["scancel", f"{array}_[{ranges(positions)}]"]

    def look(self, array: str) -> Mapping[int, str] | None:
        """Return squeue's state of each element."""
        try:
            process = run(["squeue", "-h", "-r", "-j", array, "-o", "%K %T"])
        except subprocess.TimeoutExpired:
            return None
        if process.returncode and "Invalid job id" not in process.stderr:
            logger.info("Slurm does not answer: %s", process.stderr.strip())
            return None
        return states(process.stdout)

    def waits(self, state: str) -> bool:
        """Return whether the state is PENDING."""
        return state == "PENDING"

    def final(self, array: str, position: int) -> str:
        """Return the state of an ended element that the controller still remembers (MinJobAge)."""
        try:
            answer = run(["scontrol", "--oneliner", "show", "job", self.element(array, position)]).stdout
        except subprocess.TimeoutExpired:
            return ""
        match = re.search(r"\bJobState=(\S+)", answer)
        return match[1] if match else ""

    def unwanted(self, state: str) -> bool:
        """Return whether the element was cancelled in the queue, or has failed by itself."""
        return state in UNWANTED

    def most(self) -> int | None:
        """Return one less than the controller's MaxArraySize, which bounds the numbers of elements."""
        try:
            match = re.search(r"^MaxArraySize\s*=\s*(\d+)", run(["scontrol", "show", "config"]).stdout, re.MULTILINE)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return int(match[1]) - 1 if match else None


def states(answer: str) -> Mapping[int, str]:
    """Return the state of each element by its number, from squeue's lines."""
    rows = (line.split() for line in answer.splitlines())
    return {int(row[0]): row[1] for row in rows if len(row) == 2 and row[0].isdigit()}
