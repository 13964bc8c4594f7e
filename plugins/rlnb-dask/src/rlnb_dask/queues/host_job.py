"""The host of a training as a small job of Slurm, for sites that allow no processes on login nodes."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb import Problem, RlnbError
from rlnb_dask.queues import queries, slurm_answers
from rlnb_dask.queues.reserved import TIME, objection
from rlnb_dask.queues.slurm_answers import AWAY

if TYPE_CHECKING:
    from rlnb_dask.queues.launcher import Json
    from rlnb_dask.queues.slurm import Slurm

HERE, JOB = "here", "job"
MEMORY_MIB = 2048
KEY = "slurm_job"
"""Key of a handle with the id of the host's job."""
SILENT_S = 10.0
"""Seconds without a heartbeat after which a host whose job Slurm is ending counts as gone."""
OWN_END_S = 60.0
"""Seconds between two questions for the end of the host's own job, which a controller that is away does not answer."""
ASK_S = 10.0
"""Seconds for which the states of the hosts' jobs are used again, since every look at a run asks for one."""
_CANCELLED = re.compile(r"\*\*\* JOB \S+ ON \S+ CANCELLED AT \S+ (?:DUE TO ([A-Z ]+))?", re.IGNORECASE)
"""What Slurm writes into the output of a job before it ends it, with its cause unless a person has cancelled it."""
_CAUSES = {
    "TIME LIMIT": "has reached its time limit",
    "PREEMPTION": "was preempted",
    "NODE FAILURE": "has lost its node",
    "JOB REQUEUE": "was requeued",
}
"""The causes that are no person's, in words."""
WITHIN_S = 1.0
"""Seconds that a look waits for Slurm's answer. A later one has it: squeue may try for half a minute to get it."""


@dataclass
class Queue:
    """The most recent states of the hosts' jobs at which this process has looked."""

    states: dict[str, str | None] = field(default_factory=dict)
    """States by id: empty if a job has left the queue, None if Slurm has never told."""
    asked_s: float = float("-inf")
    """Time of the last query, in seconds of the monotonic clock."""
    answered: bool = True
    """Whether Slurm has answered the last query."""
    query: threading.Thread | None = None
    """The last query."""

    def state(self, number: str) -> str | None:
        """Return the most recent state of a job. One query serves all jobs.

        Args:
            number: Id of the job.
        """
        is_new = number not in self.states
        self.states.setdefault(number, None)
        if time.monotonic() - self.asked_s > ASK_S or (is_new and self.answered):
            self._ask()
        return self.states[number]

    def _ask(self) -> None:
        self.asked_s = time.monotonic()
        if self.query is None or not self.query.is_alive():
            ids = [number for number, state in [*self.states.items()] if state != ""]  # no job comes back
            self.query = threading.Thread(target=self._update, args=(ids,), daemon=True, name="squeue")
            self.query.start()
        self.query.join(WITHIN_S)
        if self.query.is_alive():
            self.answered = False

    def _update(self, ids: Sequence[str]) -> None:
        answer = slurm_answers.states(ids) if ids else {}
        self.asked_s, self.answered = time.monotonic(), answer is not None
        if answer is not None:  # while the controller is away, the last answer counts
            self.states.update({number: answer.get(number, "") for number in ids})


_queue = Queue()


def problems(launcher: Slurm) -> Iterator[Problem]:
    """Yield a problem for each setting of the host that is malformed."""
    if launcher.host not in (HERE, JOB):
        yield Problem(what=f"host={launcher.host!r} is neither 'here' nor 'job'.", fix="Use host='job'.")
    for number, line in enumerate(launcher.host_directives):
        if not isinstance(line, str) or not line or not line.isprintable():
            yield Problem(what=f"host_directives[{number}]={line!r} is not a single line of text for the job script.")
        elif (why := objection("slurm", line)) and why != TIME:  # the host's walltime is not the training's
            yield Problem(what=f"host_directives[{number}]={line!r} cannot be used.", fix=why)
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
        *launcher.prologue_lines(),
        f"exec {python} -P -m {launcher.module} {shlex.quote(str(job_dir))}",
    ]
    return "\n".join(lines) + "\n"


def submit(launcher: Slurm, job_dir: Path) -> Mapping[str, Json]:
    """Submit the host of a job; return its handle.

    Raises:
        RlnbError: Slurm refuses the host's job, or does not answer.
    """
    log = str(job_dir / launcher.log)
    number = slurm_answers.job_of(log)  # of an earlier try, whose answer was lost
    if number is None:
        raise RlnbError("Unable to contact slurm controller: squeue does not answer.")
    if not number:
        options = ["--parsable", f"--output={log.replace('%', '%%')}", "--open-mode=append"]
        process = slurm_answers.sbatch(options, script(launcher, job_dir))
        number = process.stdout.strip().split(";")[0]  # the name of the cluster may follow
        if process.returncode:
            error = process.stderr.strip()
            number = (slurm_answers.job_of(log) or "") if AWAY.search(error) else ""
            if not number:
                raise RlnbError(f"Slurm has refused the job of the host: {error}")
    return {KEY: number}


def number_of(handle: Mapping[str, Json]) -> str:
    """Return the id of the host's job; an empty text if the host is a process."""
    return str(handle.get(KEY, ""))


def alive(number: str, *, beats: bool) -> bool | None:
    """Return whether the host's job waits or runs; None if Slurm has never told.

    Args:
        number: Id of the host's job.
        beats: Whether the host has written its heartbeat a moment ago. If its job is ended, it may be about to submit
            the next one.
    """
    state = _queue.state(number)
    return None if state is None else beats if state == "COMPLETING" else bool(state)


def cancel(number: str) -> None:
    """Take the host's job out of the queue if it waits. A host that runs finds the request to cancel itself.

    Args:
        number: Id of the host's job.

    Raises:
        RlnbError: The command is not on this machine.
    """
    if shutil.which("scancel") is None:
        raise RlnbError(f"There is no scancel here. Use it on a login node, for {number}.")
    queries.ask(["scancel", "--state=PENDING", "--", number], unless=slurm_answers.UNKNOWN)
    _queue.states.pop(number, None)


def end_of(output: str) -> tuple[str, bool]:
    """Return how Slurm ends the job of a host, in words, and whether a person has caused that.

    Args:
        output: The host's own output, to which Slurm adds a line before it ends the job.
    """
    causes = _CANCELLED.findall(output)
    if not causes:
        return "was ended by a signal", True
    cause = causes[-1].strip()
    return _CAUSES.get(cause, "was cancelled in the queue (scancel)"), cause not in _CAUSES


class OwnJob:
    """The job of Slurm in which this process runs as the host of a training.

    Args:
        number: Id of the job.
        end_s: End of the job, in seconds since the epoch; None if only the controller knows it.
    """

    def __init__(self, number: str, end_s: float | None = None) -> None:
        self.number, self._end_s = number, end_s
        self._asked_s = float("-inf")
        """Time of the last question for the end, in seconds of the monotonic clock."""

    def end_s(self) -> float | None:
        """Return the time at which the job ends, in seconds since the epoch; None while it is unknown."""
        if self._end_s is None and time.monotonic() - self._asked_s > OWN_END_S:
            self._asked_s = time.monotonic()
            self._end_s = slurm_answers.end_s([self.number])
        return self._end_s


def own_job(launcher: object, environ: Mapping[str, str]) -> OwnJob | None:
    """Return the job in which this process runs as a host; None if the host is a process of its own.

    Args:
        launcher: The launcher of the training.
        environ: The variables of this process.
    """
    if getattr(launcher, "host", HERE) != JOB or not environ.get("SLURM_JOB_ID"):
        return None
    end = environ.get("SLURM_JOB_END_TIME", "")  # older versions of Slurm do not set it
    end_s = float(end) - slurm_answers.ahead_s() if end.isdigit() else None
    return OwnJob(environ["SLURM_JOB_ID"], end_s)
