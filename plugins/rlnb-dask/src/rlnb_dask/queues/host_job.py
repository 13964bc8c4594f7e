"""The host of a training as a small job of Slurm, for sites that allow no processes on login nodes."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb import Problem, RlnbError
from rlnb_dask.queues import slurm_answers

if TYPE_CHECKING:
    from rlnb_dask.queues.launcher import Json
    from rlnb_dask.queues.slurm import Slurm

HERE, JOB = "here", "job"
MEMORY_MIB = 2048
KEY = "slurm_job"
"""Key of a handle with the id of the host's job."""
ASK_S = 10.0
"""Seconds for which a state of the host's job is used again, since every look at a run asks for it."""
_states: dict[str, tuple[float, str]] = {}
"""By id of a job: when its state was read (monotonic), and the state."""


def problems(launcher: Slurm) -> Iterator[Problem]:
    """Yield a problem for each setting of the host that is malformed."""
    if launcher.host not in (HERE, JOB):
        yield Problem(what=f"host={launcher.host!r} is neither 'here' nor 'job'.", fix="Use host='job'.")
    for number, line in enumerate(launcher.host_directives):
        if not isinstance(line, str) or not line or not line.isprintable():
            yield Problem(what=f"host_directives[{number}]={line!r} is not a single line of text for the job script.")
    if launcher.host_directives and launcher.host != JOB:
        yield Problem(what="host_directives have no effect with host='here'.", fix="Use host='job'.")


def script(launcher: Slurm, job_dir: Path) -> str:
    """Return the script of the host's job.

    Args:
        launcher: The launcher of the training.
        job_dir: Folder of the training's job.
    """
    options = {"-p": launcher.partition, "-A": launcher.account}
    directives = [
        "-J rlnb-host",
        *(f"{option} {value}" for option, value in options.items() if value),
        "--nodes=1",
        "--ntasks=1",
        "--cpus-per-task=1",
        f"--mem={MEMORY_MIB}M",
        "--no-requeue",  # a second host would start the training a second time
        *launcher.host_directives,
    ]
    python = shlex.quote(launcher.python or sys.executable)
    lines = [
        "#!/usr/bin/env bash",
        *(f"#SBATCH {directive}" for directive in directives),
        *launcher.site_lines("job-script-prologue"),
        *launcher.prologue,
        f"exec {python} -P -m {launcher.module} {shlex.quote(str(job_dir))}",
    ]
    return "\n".join(lines) + "\n"


def submit(launcher: Slurm, job_dir: Path) -> Mapping[str, Json]:
    """Submit the host of a job; return its handle.

    Raises:
        RlnbError: Slurm refuses the host's job, or does not answer.
    """
    output = str(job_dir / launcher.log).replace("%", "%%")
    argv = ["sbatch", "--parsable", f"--output={output}", "--open-mode=append"]
    process = subprocess.run(argv, input=script(launcher, job_dir), capture_output=True, text=True, check=False)
    if process.returncode:
        raise RlnbError(f"Slurm has refused the job of the host: {process.stderr.strip()}")
    return {KEY: process.stdout.strip().split(";")[0]}  # the name of the cluster may follow


def number_of(handle: Mapping[str, Json]) -> str:
    """Return the id of the host's job; an empty text if the host is a process."""
    return str(handle.get(KEY, ""))


def alive(number: str) -> bool | None:
    """Return whether the host's job waits or runs; None if Slurm has never told.

    Args:
        number: Id of the host's job.
    """
    read_s, state = _states.get(number, (float("-inf"), ""))
    if time.monotonic() - read_s > ASK_S:
        answer = slurm_answers.state(number)
        if answer is None and number not in _states:
            return None
        state = state if answer is None else answer  # while the controller is away, the last answer counts
        _states[number] = time.monotonic(), state
    return state not in ("", "COMPLETING")


def cancel(number: str) -> None:
    """Take the host's job out of the queue if it waits. A host that runs finds the request to cancel itself.

    Args:
        number: Id of the host's job.
    """
    subprocess.run(["scancel", "--state=PENDING", number], capture_output=True, check=False)
    _states.pop(number, None)


def own_end_s(launcher: object, number: str) -> float | None:
    """Return the time at which the job of this host ends, in seconds since the epoch; None if it is not a job.

    Args:
        launcher: The launcher of the training.
        number: Id of the job in which this process runs; empty if it runs in none.
    """
    if getattr(launcher, "host", HERE) != JOB or not number:
        return None
    return slurm_answers.end_s([number])
