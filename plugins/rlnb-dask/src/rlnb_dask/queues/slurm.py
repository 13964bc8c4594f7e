"""Slurm: one job holds all nodes of a training (https://slurm.schedmd.com/sbatch.html)."""

from __future__ import annotations

import logging
import math
import re
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlnb import RlnbError
from rlnb.plugin import Manifest, Problem
from rlnb_dask.arrays.launcher import ArrayQueueLauncher
from rlnb_dask.arrays.slurm import SlurmArrays
from rlnb_dask.queues import ids, queries, slurm_answers, slurm_limits, slurm_nodes
from rlnb_dask.queues.launcher import Argument, Json
from rlnb_dask.queues.reserved import TIME, reserved_reason
from rlnb_dask.queues.slurm_answers import AWAY, LIVING, MEANINGS, UNKNOWN, WAITING_OR_RUNNING, Node
from rlnb_dask.queues.walltime import slurm_seconds_of

logger = logging.getLogger("rlnb_dask")

UNWANTED = {"CANCELLED", "FAILED"}
"""States of a job that was cancelled in the queue, or that could not run at all."""
NO_NODES = "Requested node configuration is not available"
"""What ``sbatch --test-only`` says of drained, reserved and missing nodes alike. ``sbatch`` itself lets a job wait for
the first two kinds."""
SIZES = ("cores", "memory_mib", "gpus")
_PARTITION = re.compile(r"^#SBATCH (?:-p ?|--partition[ =])(\S+)", re.MULTILINE)
_CORES = re.compile(r"^(-c|--cpus-per-)", re.MULTILINE)
_MEMORY = re.compile(r"^--mem", re.MULTILINE)
# Slurm appends the cause to a cancellation: "... CANCELLED AT 2026-11-23T04:42:55 DUE TO TIME LIMIT ***". TASK FAILURE
# is not a useful cause, because an earlier line names the failure. The text before the stars varies with the version.
_CONSEQUENCE = re.compile(r"srun: |.*\*\*\* (STEP \S+ ON \S+ CANCELLED AT \S+|\S.* DUE TO TASK FAILURE) \*\*\*$")


@dataclass(frozen=True, kw_only=True, repr=False)
class Slurm(ArrayQueueLauncher):
    """Runs each training as one job of Slurm. See :class:`QueueLauncher` for the other arguments.

    Args:
        host: ``"here"`` runs the host of a training on this machine. ``"job"`` runs it as a small job of its own, for
            sites that allow no processes on login nodes. Such a job needs sbatch on the node where it runs. If it
            reaches its own walltime, the training goes on with another one. This counts as an interruption once the
            training has begun. The host of an array always runs on this machine.
        host_directives: Options of the host's job, such as ``["--partition=cpu", "--time=3-00:00:00"]``. Its partition
            and account are those of the training, and its walltime is the site's, unless options change them.
    """

    name = "slurm"
    title = "Slurm"
    jobqueue = "SLURM"
    job_ids = ids.SLURM
    end_of_options = ("--",)
    single_job = True
    away = AWAY
    full = slurm_limits.FULL
    arrays = SlurmArrays()

    host: str = "here"
    host_directives: Sequence[str] | str = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        lines = self.host_directives
        object.__setattr__(self, "host_directives", (lines,) if isinstance(lines, str) else tuple(lines))

    # -- the host as a job

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return the problems of the settings and, if the common ones have none, why Slurm would refuse the jobs."""
        problems = [*host_job_problems(self)]
        return [*problems, *super().check(manifest)]

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Json]:
        """Start the host of a job, on this machine or as a job of its own.

        Raises:
            RlnbError: Slurm refuses the host's job.
        """
        return submit_host(self, job_dir) if self.host == HOST_JOB else super().submit(command, job_dir)

    def alive(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        """Return whether the host still runs, or waits as a job; None if this machine cannot tell."""
        number = self._host_job(handle, job_dir)
        if not number:
            return super().alive(handle, job_dir)
        beats = self.host_silence_s(job_dir) < HOST_SILENT_S
        return host_alive(number, beats=beats)

    def cancel(self, handle: Mapping[str, Json], job_dir: Path) -> None:
        """Take a host that waits as a job out of the queue, and withdraw a job whose host is gone."""
        if number := self._host_job(handle, job_dir):
            cancel_host(number)
        super().cancel(handle, job_dir)

    def _host_job(self, handle: Mapping[str, Json], job_dir: Path) -> str:
        """Return the id of the host's job; an empty text if the host is a process.

        Raises:
            RlnbError: The handle names no job of Slurm.
        """
        number = host_number(handle)
        return self.checked_id(number, job_dir / "handle.json") if number else ""

    # -- the job as Slurm sees it

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return arguments that make srun start a Dask worker on each node."""
        python = shlex.quote(self.python or sys.executable)
        if prologue := self.own_prologue():  # the job's script itself runs on the first node only
            python = shlex.join(["bash", "-c", "\n".join([*prologue, '"$@"']), "rlnb"]) + f" {python}"
        return {
            "cores": nodes,
            "processes": nodes,
            "memory": f"{self.memory_gib * nodes:g}GiB",
            "job_script_prologue": [*self.site_lines("job-script-prologue"), *self.exports()],
            "python": f"{shlex.join(self.spread())} {python} -P",
            # own_directives sets the memory and the tasks of each node.
            "job_directives_skip": ["-n 1", "--cpus-per-task", "--mem="],
        }

    def spread(self) -> Sequence[str]:
        """Return the srun command that starts a process on each node of a job."""
        # Slurm ends a step more reliably than the children of a script. Since 22.05, srun does not inherit the job's
        # --cpus-per-task. It inherits --export=NONE, which would drop the lines of the prologue.
        cores = [f"--cpus-per-task={self.cores}"] if self._with_cores else []
        return ["srun", "--export=ALL", "--kill-on-bad-exit=1", *cores]

    def own_directives(self, nodes: int) -> Sequence[str]:
        """Return the directives for the nodes of a job, with one task per node."""
        return [
            f"--nodes={nodes}",
            "--ntasks-per-node=1",
            "--no-requeue",  # rlnb resumes in a new job; a requeued job would be a second copy
            *([f"--cpus-per-task={self.cores}"] if self._with_cores else []),
            *([f"--mem={self.memory_gib * 1024:.0f}M"] if self._with_memory else []),
            *([f"--gpus-per-node={self.gpus_per_node}"] if self.gpus_per_node else []),
        ]

    # Slurm's own default is one core for each task, and often memory by cores. Slurm refuses a second option for cores
    # or memory, so a directive such as --cpus-per-gpu=8 replaces the default.

    @property
    def _with_cores(self) -> bool:
        return bool(self.cpus_per_node or (self.gpus_per_node and not _CORES.search(self.free_text())))

    @property
    def _with_memory(self) -> bool:
        return bool(self.memory_gib_per_node or (self.gpus_per_node and not _MEMORY.search(self.free_text())))

    @property
    def duration_s(self) -> int | None:
        """Seconds of the walltime, in any of Slurm's forms."""
        return slurm_seconds_of(self.walltime)

    def walltime_text(self) -> str | None:
        """Return the walltime unchanged, because Slurm's format has days."""
        return self.walltime

    def refusal(self) -> Problem | None:
        """Return Slurm's objection to a trial submission of the job; None if there is none.

        A queue that takes no further job at present is no objection: the host waits, unless it is a job itself.
        A controller that does not answer is an objection too: a user who is present can try again at once, and learns
        that SLURM_CONF is wrong.
        """
        problem = _refusal("this job", self.job_script(), self.nodes, self._least())
        if problem and self.host != HOST_JOB and self.is_full(problem.what):
            logger.info("The host will wait. %s", problem.what)
            return None
        if problem or self.host != HOST_JOB:
            return problem
        least = Node(name="", cores=1, memory_mib=HOST_MEMORY_MIB, gpus=0)
        return _refusal("the job of the host", host_script(self, Path("JOB")), 1, least)

    def array_refusal(self, count: int) -> Problem | None:
        """Return Slurm's objection to a trial submission of an array, such as a limit of the number of jobs.

        Slurm does not tell whether the array exceeds a limit by itself or only with the jobs that are in the queue.
        """
        options = [f"--array=0-{count - 1}"]
        problem = _refusal(f"an array of {count} such jobs", self.job_script(), self.nodes, self._least(), options)
        if problem and self.is_full(problem.what):
            fix = f"Use fewer runs, or array=False, with which runs wait outside the queue. {problem.fix}"
            return replace(problem, fix=fix)
        return problem

    def _least(self) -> Node:
        """Return the size that a node must have for a job."""
        cores, memory_mib = self.cores if self._with_cores else 1, self.memory_gib * 1024 if self._with_memory else 0
        return Node(name="", cores=cores, memory_mib=math.ceil(memory_mib), gpus=self.gpus_per_node)

    def look(self, ids: Sequence[str]) -> str | None:
        """Return squeue's line about the jobs while the first of them waits or runs."""
        output = queries.ask(["squeue", "-h", "-j", ",".join(ids), "-o", "%A %T (%r)"], unless=UNKNOWN)
        if output is None:
            return None
        line = output.strip()
        return line if line and line.split()[1] in WAITING_OR_RUNNING else ""

    def living(self, ids: Sequence[str]) -> Mapping[str, str] | None:
        """Return squeue's states, by id, of the jobs that wait, run or are completing."""
        return slurm_answers.states(ids)

    def waits(self, line: str) -> str:
        """Return Slurm's state and reason of a job that does not run, with the meaning of a limit.

        For example ``"PENDING (JobHeldAdmin)"``, ``"suspended"`` or ``"PENDING (QOSMaxJobsPerUserLimit): with this
        one, your jobs would exceed a limit of the QOS"``.
        """
        _, _, state_and_reason = line.partition(" ")
        state = state_and_reason.partition(" ")[0]
        if state == "SUSPENDED":
            return "suspended"
        if state not in WAITING_OR_RUNNING or state == "RUNNING":
            return ""
        advice = slurm_limits.advice(state_and_reason)
        return f"{state_and_reason}: {advice}" if advice else state_and_reason

    def ended(self, ids: Sequence[str], within_s: float) -> Mapping[str, str]:
        """Return the final state of each ended job that Slurm's controller still remembers (MinJobAge)."""
        states = slurm_nodes.final_states(ids, within_s)
        return {number: state for number, state in states.items() if state not in LIVING}

    def meaning(self, number: str, state: str) -> str:
        """Return a job's final state in words."""
        word = slurm_nodes.word_of(state)
        if queries.is_launch_failure(state) or word not in MEANINGS:
            return super().meaning(number, state)
        nodes = state[len(word) + 2 : -1]  # without the parentheses
        return f"Slurm's job {number} {MEANINGS[word]}{f'; {nodes}' if nodes else ''}"

    def end_s(self, ids: Sequence[str]) -> float | None:
        """Return the time at which Slurm will end the job, which an administrator may change; None if unknown."""
        end_s = slurm_answers.end_s(ids)
        rounding_s = -(self.duration_s or 0) % 60  # Slurm counts walltimes in whole minutes
        return None if end_s is None else end_s - rounding_s

    def submitted(self, job_dir: Path) -> str | None:
        """Return the id of the job whose submission seemed to fail, because the controller's answer was lost."""
        return slurm_answers.job_of(f"{job_dir}/rlnb-")  # the output of the host's own job is there too

    def unwanted(self, states: Sequence[str]) -> bool:
        """Return whether a job was cancelled in the queue, or could not run at all."""
        return bool(UNWANTED & {*map(slurm_nodes.word_of, states)})

    def reason(self, output: str) -> str:
        """Return the line of a job's output that gives the cause of its end; an empty text if there is none.

        Args:
            output: The output. After a node has failed, it may contain srun's and Slurm's reports about the step on
                the other nodes. These reports are consequences of an earlier line, so they are skipped. A
                cancellation of the whole job is a cause, and is kept.
        """
        lines = (line for line in output.splitlines() if not _CONSEQUENCE.match(line.strip()))
        line = super().reason("\n".join(lines))
        return slurm_limits.objection(output) if line.startswith("sbatch: error: ") else line


def _objection(script: str, options: Sequence[str]) -> str:
    """Return Slurm's objection to a trial submission of a job; an empty text if there is none."""
    process = slurm_answers.sbatch(["--test-only", *options], script)
    return slurm_limits.objection(process.stderr) if process.returncode else ""


def _refusal(job: str, script: str, count: int, least: Node, options: Sequence[str] = ()) -> Problem | None:
    """Return Slurm's objection to a trial submission of a job; None if there is none.

    Args:
        job: The job, in words.
        script: Its script.
        count: Number of its nodes.
        least: The size of each of them.
        options: Further options of sbatch.
    """
    objection = _objection(script, options)
    if objection == NO_NODES:
        objection = _too_few_nodes(script, count, least)
    if not objection:
        return None
    if AWAY.search(objection):
        what = f"Slurm does not answer, so it cannot check {job}: {objection}"
        fix = "Try again once `sinfo` answers. If it never does, SLURM_CONF names no running Slurm."
        return Problem(what=what, fix=fix)
    return Problem(what=f"Slurm would refuse {job}: {objection}", fix=slurm_limits.fix(objection))


def _too_few_nodes(script: str, count: int, least: Node) -> str:
    """Return why no partition of a job has enough nodes of its size; an empty text if a partition has them."""
    lines = _PARTITION.findall(script)
    counts = []
    for name, nodes in slurm_answers.nodes(lines[-1] if lines else None).items():
        fit = [n for n in nodes if all(getattr(n, size) >= getattr(least, size) for size in SIZES)]
        if len(fit) >= count:
            logger.warning("Too few nodes of the partition %s are up now. The job will wait in the queue.", name)
            return ""
        counts.append(f"{len(fit)} of the {len(nodes)} nodes of {name} are large enough for it")
    return f"{NO_NODES}. {'; '.join(counts)}" if counts else NO_NODES


# -- host job --------------------------------------------------------------------------------------------------------


HOST_HERE, HOST_JOB = "here", "job"
HOST_MEMORY_MIB = 2048
HOST_KEY = "slurm_job"
"""Key of a handle with the id of the host's job."""
HOST_SILENT_S = 10.0
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
class HostStates:
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
            numbers = [number for number, state in [*self.states.items()] if state != ""]  # no job comes back
            self.query = threading.Thread(target=self._update, args=(numbers,), daemon=True, name="squeue")
            self.query.start()
        self.query.join(WITHIN_S)
        if self.query.is_alive():
            self.answered = False

    def _update(self, numbers: Sequence[str]) -> None:
        answer = slurm_answers.states(numbers) if numbers else {}
        self.asked_s, self.answered = time.monotonic(), answer is not None
        if answer is not None:  # while the controller is away, the last answer counts
            self.states.update({number: answer.get(number, "") for number in numbers})


_host_states = HostStates()


def host_job_problems(launcher: Slurm) -> Iterator[Problem]:
    """Yield a problem for each setting of the host that is malformed."""
    if launcher.host not in (HOST_HERE, HOST_JOB):
        yield Problem(what=f"host={launcher.host!r} is neither 'here' nor 'job'.", fix="Use host='job'.")
    for number, line in enumerate(launcher.host_directives):
        if not isinstance(line, str) or not line or not line.isprintable():
            yield Problem(what=f"host_directives[{number}]={line!r} is not a single line of text for the job script.")
        elif (why := reserved_reason("slurm", line)) and why != TIME:  # the host's walltime is not the training's
            yield Problem(what=f"host_directives[{number}]={line!r} cannot be used.", fix=why)
    if launcher.host_directives and launcher.host != HOST_JOB:
        yield Problem(what="host_directives have no effect with host='here'.", fix="Use host='job'.")


def host_script(launcher: Slurm, job_dir: Path) -> str:
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
        f"--mem={HOST_MEMORY_MIB}M",
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


def submit_host(launcher: Slurm, job_dir: Path) -> Mapping[str, Json]:
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
        process = slurm_answers.sbatch(options, host_script(launcher, job_dir))
        number = process.stdout.strip().split(";")[0]  # the name of the cluster may follow
        if process.returncode:
            error = process.stderr.strip()
            number = (slurm_answers.job_of(log) or "") if AWAY.search(error) else ""
            if not number:
                raise RlnbError(f"Slurm has refused the job of the host: {error}")
    return {HOST_KEY: number}


def host_number(handle: Mapping[str, Json]) -> str:
    """Return the id of the host's job; an empty text if the host is a process."""
    return str(handle.get(HOST_KEY, ""))


def host_alive(number: str, *, beats: bool) -> bool | None:
    """Return whether the host's job waits or runs; None if Slurm has never told.

    Args:
        number: Id of the host's job.
        beats: Whether the host has written its heartbeat a moment ago. If its job is ended, it may be about to submit
            the next one.
    """
    state = _host_states.state(number)
    return None if state is None else beats if state == "COMPLETING" else bool(state)


def cancel_host(number: str) -> None:
    """Take the host's job out of the queue if it waits. A host that runs finds the request to cancel itself.

    Args:
        number: Id of the host's job.

    Raises:
        RlnbError: The command is not on this machine.
    """
    if shutil.which("scancel") is None:
        raise RlnbError(f"There is no scancel here. Use it on a login node, for {number}.")
    queries.ask(["scancel", "--state=PENDING", "--", number], unless=slurm_answers.UNKNOWN)
    _host_states.states.pop(number, None)


def host_end(output: str) -> tuple[str, bool]:
    """Return how Slurm ends the job of a host, in words, and whether a person has caused that.

    A signal without a line of Slurm counts as a person's.

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
    if getattr(launcher, "host", HOST_HERE) != HOST_JOB or not environ.get("SLURM_JOB_ID"):
        return None
    end = environ.get("SLURM_JOB_END_TIME", "")  # older versions of Slurm do not set it
    end_s = float(end) - slurm_answers.ahead_s() if end.isdigit() else None
    return OwnJob(environ["SLURM_JOB_ID"], end_s)
