"""The answers of Slurm's commands about jobs and nodes (https://slurm.schedmd.com/scontrol.html)."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlnb_dask.queues import queries

WAITING_OR_RUNNING = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED")
LIVING = (*WAITING_OR_RUNNING, "COMPLETING")
AWAY = re.compile("Unable to contact slurm controller|Socket timed out|Resource temporarily unavailable", re.IGNORECASE)
"""What Slurm's commands print while the controller restarts, fails over, or has too many requests."""
MEANINGS = {
    "CANCELLED": "was cancelled in the queue (scancel)",
    "PREEMPTED": "was preempted",
    "TIMEOUT": "has reached its time limit",
    "NODE_FAIL": "has lost a node",
    "BOOT_FAIL": "has lost a node, which did not boot",
    "OUT_OF_MEMORY": "has used more memory than it requested",
    "DEADLINE": "has reached its deadline",
    "COMPLETED": "has ended without a fault, so this machine and its nodes have lost each other. Check the network "
    "between them",
}
"""Final states of a job, in words."""
UNKNOWN = ("Invalid job id",)
"""What Slurm's commands print of a job that has left the queue."""
EXACT_S = 5.0
"""Difference of two clocks up to which they count as equal, since an answer takes its time."""
_AS_OF = re.compile(r"^Configuration data as of (\d+)", re.MULTILINE)
_GPUS = re.compile(r"\bgpu(?::[^:,()]+)?:(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A node of a partition as Slurm's configuration has it, whatever its present state."""

    name: str
    cores: int
    memory_mib: int
    gpus: int


def jobs(ids: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """Return the fields of each job that Slurm's controller remembers, by id; times are seconds since the epoch."""
    fields = {}
    for number in ids:
        argv = ["env", "SLURM_TIME_FORMAT=%s", "scontrol", "--oneliner", "show", "job", number]
        output = queries.ask(argv, unless=UNKNOWN) or ""
        pairs = dict(pair.split("=", 1) for pair in output.split() if "=" in pair)
        if "JobState" in pairs:
            fields[number] = pairs
    return fields


def end_s(ids: Sequence[str]) -> float | None:
    """Return the earliest end of the jobs that run, by this machine's clock; None if none has an end."""
    ends = [job.get("EndTime", "") for job in jobs(ids).values() if job["JobState"] == "RUNNING"]
    end = min((float(end) for end in ends if end.isdigit()), default=None)
    return None if end is None else end - ahead_s()


def ahead_s() -> float:
    """Return the seconds by which the controller's clock, of which Slurm's times are, is ahead of this machine's."""
    answer = queries.ask(["env", "SLURM_TIME_FORMAT=%s", "scontrol", "show", "config"])
    time_s, match = time.time(), _AS_OF.search(answer or "")
    ahead = int(match[1]) - time_s if match else 0.0
    return ahead if abs(ahead) > EXACT_S else 0.0


def states(ids: Sequence[str]) -> Mapping[str, str] | None:
    """Return the state of each job that is in the queue, by id; None if Slurm does not answer."""
    output = queries.ask(["squeue", "-h", "-j", ",".join(ids), "-o", "%A %T"], unless=UNKNOWN)
    return None if output is None else dict(line.split(maxsplit=1) for line in output.splitlines() if line.strip())


def job_of(output: str) -> str | None:
    """Return the id of this user's job in the queue with a given output file.

    Args:
        output: Path of the file, or its beginning.

    Returns:
        The id. It is empty if there is no such job, and None if Slurm does not answer.
    """
    answer = queries.ask(["squeue", "-h", "--me", "-O", "JobID:20,StdErr:4096"])
    rows = (line.split(maxsplit=1) for line in (answer or "").splitlines())
    number = next((row[0] for row in rows if len(row) == 2 and row[1].startswith(output)), "")
    return None if answer is None else number


def sbatch(options: Sequence[str], script: str) -> subprocess.CompletedProcess[str]:
    """Run sbatch with a script. The absence of an answer is an error of the command too.

    Args:
        options: Options of sbatch.
        script: The script of a job.
    """
    argv = ["sbatch", *options]
    try:
        return queries.run(argv, script)
    except subprocess.TimeoutExpired:
        error = f"Unable to contact slurm controller within {queries.ANSWER_S} s ({shlex.join(argv)})"
    except OSError as exc:
        error = str(exc)
    return subprocess.CompletedProcess(argv, 1, "", error)


def nodes(partition: str | None) -> Mapping[str, Sequence[Node]]:
    """Return all configured nodes by partition, in whatever state they are.

    Args:
        partition: Names of partitions, separated by commas; None is the default partition.
    """
    argv = ["sinfo", "-h", "-N", "-o", "%P|%N|%c|%m|%G", *(["-p", partition] if partition else [])]
    sizes: dict[str, dict[str, Node]] = {}
    for line in (queries.ask(argv) or "").splitlines():
        name, node, cores, memory, gres = line.strip().split("|")
        if partition or name.endswith("*"):
            gpus = sum(map(int, _GPUS.findall(gres)))
            entry = Node(name=node, cores=_number(cores), memory_mib=_number(memory), gpus=gpus)
            sizes.setdefault(name.rstrip("*"), {})[node] = entry
    return {name: [*entries.values()] for name, entries in sizes.items()}


def _number(text: str) -> int:
    """Return a count of sinfo, which ends with a plus sign if it is the least of several."""
    return int(text.rstrip("+"))
