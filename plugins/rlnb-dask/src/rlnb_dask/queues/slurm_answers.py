"""The answers of Slurm's commands about jobs and nodes (https://slurm.schedmd.com/scontrol.html)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WAITING_OR_RUNNING = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED")
LIVING = (*WAITING_OR_RUNNING, "COMPLETING")
AWAY = re.compile("Unable to contact slurm controller|Socket timed out|Resource temporarily unavailable", re.IGNORECASE)
"""What Slurm's commands print while the controller restarts, fails over, or has too many requests."""
MEANINGS = {
    "CANCELLED": "was cancelled in the queue (scancel)",
    "PREEMPTED": "was preempted",
    "TIMEOUT": "has reached its time limit",
    "NODE_FAIL": "has lost a node",
    "OUT_OF_MEMORY": "has used more memory than it requested",
    "DEADLINE": "has reached its deadline",
    "COMPLETED": "has ended without a fault, so this machine and its nodes have lost each other. Check the network "
    "between them",
}
"""Final states of a job, in words."""
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
        argv = ["scontrol", "--oneliner", "show", "job", number]
        env = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
        process = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
        pairs = dict(pair.split("=", 1) for pair in process.stdout.split() if "=" in pair)
        if "JobState" in pairs:
            fields[number] = pairs
    return fields


def end_s(ids: Sequence[str]) -> float | None:
    """Return the earliest end of the jobs that run, in seconds since the epoch; None if none has an end."""
    ends = [job.get("EndTime", "") for job in jobs(ids).values() if job["JobState"] == "RUNNING"]
    return min((float(end) for end in ends if end.isdigit()), default=None)


def state(number: str) -> str | None:
    """Return the state of a job in the queue: empty if it has left the queue, None if Slurm does not answer."""
    argv = ["squeue", "-h", "-j", number, "-o", "%T"]
    process = subprocess.run(argv, capture_output=True, text=True, check=False)
    if process.returncode and "Invalid job id" not in process.stderr:
        return None
    return process.stdout.strip()


def job_of(folder: str) -> str:
    """Return the id of this user's job whose output goes to a folder; an empty text if there is none."""
    argv = ["squeue", "-h", "--me", "-O", "JobID:20,StdErr:4096"]
    process = subprocess.run(argv, capture_output=True, text=True, check=False)
    rows = (line.split(maxsplit=1) for line in process.stdout.splitlines())
    return next((row[0] for row in rows if len(row) == 2 and row[1].startswith(f"{folder}/")), "")


def nodes(partition: str | None) -> Mapping[str, Sequence[Node]]:
    """Return all configured nodes by partition, in whatever state they are.

    Args:
        partition: Names of partitions, separated by commas; None is the default partition.
    """
    argv = ["sinfo", "-h", "-N", "-o", "%P|%N|%c|%m|%G", *(["-p", partition] if partition else [])]
    process = subprocess.run(argv, capture_output=True, text=True, check=False)
    sizes: dict[str, dict[str, Node]] = {}
    for line in process.stdout.splitlines():
        name, node, cores, memory, gres = line.strip().split("|")
        if partition or name.endswith("*"):
            gpus = sum(map(int, _GPUS.findall(gres)))
            entry = Node(name=node, cores=_number(cores), memory_mib=_number(memory), gpus=gpus)
            sizes.setdefault(name.rstrip("*"), {})[node] = entry
    return {name: [*entries.values()] for name, entries in sizes.items()}


def _number(text: str) -> int:
    """Return a count of sinfo, which ends with a plus sign if it is the least of several."""
    return int(text.rstrip("+"))
