"""The base class of the queue launchers: their settings, and the job script made from them. Starts no job."""

from __future__ import annotations

import importlib.util
import inspect
import math
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from rlnb import CheckError, RlnbError
from rlnb.launchers import DetachedLauncher, Launcher, RemoteLauncher, make_launcher
from rlnb.plugin import Manifest, Problem
from rlnb_dask.causes import without_reports
from rlnb_dask.containers import RUNTIMES, mount_problems
from rlnb_dask.queues import ids, jobqueue, queries
from rlnb_dask.queues.reserved import reserved_reason
from rlnb_dask.queues.walltime import clock_of, seconds_of
from rlnb_dask.worker import JOB

# -- via -------------------------------------------------------------------------------------------------------------


VIA = inspect.Parameter("via", inspect.Parameter.KEYWORD_ONLY, default=None)


class Queue(type):
    """Class of the queue launchers. With ``via=``, a call returns a launcher of the machine that has the queue."""

    def __call__(cls, *args: Any, via: object = None, **settings: Any) -> Any:
        launcher = super().__call__(*args, **settings)
        return launcher if via is None else through(via, launcher)

    @property
    def __signature__(cls) -> inspect.Signature:
        """The arguments of a call, for ``help`` and for the check of names."""
        _, *parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
        return inspect.Signature([*parameters, VIA])


def through(via: object, launcher: QueueLauncher) -> Launcher:
    """Return a launcher that submits to a queue through another machine.

    Args:
        via: The machine, as for ``ssh``, or a launcher such as ``rlnb.ssh("anna@login", root="/scratch/anna")``.
        launcher: Launcher of the queue, for that machine.

    Raises:
        CheckError: ``via`` is neither, or has a queue of its own, or rlnb-ssh is not installed.
    """
    queue: Any = {"name": launcher.name, "settings": dict(launcher.settings)}
    if isinstance(via, RemoteLauncher):
        if via.settings.get("queue") is not None:
            what = f"via={via!r} has a queue or limits of its own."
            fix = f"Use via= without queue=, max_running= and walltime_s=, which are those of rlnb.{launcher.name}."
            raise CheckError(f"rlnb.{launcher.name}(...)", [Problem(what=what, fix=fix)])
        return make_launcher(via.name, {**via.settings, "queue": queue})
    if not isinstance(via, str):
        what = f"via={via!r} is not the name of a machine."
        raise CheckError(f"rlnb.{launcher.name}(...)", [Problem(what=what, fix='Use via="user@login".')])
    python: Mapping[str, str] = {"python": launcher.python} if launcher.python else {}
    return make_launcher("ssh", {"place": via, **python, "queue": queue})


# -- launcher --------------------------------------------------------------------------------------------------------


Setting: TypeAlias = "str | int | float | bool | Sequence[str] | None"
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value of a handle."""
Argument: TypeAlias = "str | int | Sequence[str] | Mapping[str, str] | None"
"""A value of a dask-jobqueue argument; None leaves the argument out."""

LOOPBACK = "127.0.0.1:0"
"""Address of Dask's web pages, which have no password."""
DEFAULT_MEMORY_GIB = 4.0
GPU_CORES, GPU_MEMORY_GIB = 4, 16.0
"""Cores and memory for each GPU of a node whose own numbers are not set."""
FORMER_KEYS = {"job-extra-directives": "job-extra", "job-script-prologue": "env-extra"}
"""Keys of ``jobqueue.yaml``, each with its former name in dask-jobqueue, which applies where the key is not set."""
PROLOGUE_FAILED = "The prologue failed on "
PROLOGUE = (
    "set -e",
    f'trap \'rlnb_status=$?; [ "$rlnb_ready" ] || echo "{PROLOGUE_FAILED}`uname -n`, status $rlnb_status:'
    " ${BASH_COMMAND-}\" >&2' EXIT",
)
PROLOGUE_END = ("rlnb_ready=yes", "set +e")
"""Shell lines around the user's prologue, so that a line that fails ends the job and is named. A trap of the user's own
replaces this one, and is not removed. In HTCondor's files, ``$(...)`` would be a macro."""
ACCOUNT_S = 16.0
"""Longest wait for a queue's account of a job that has ended. Grid Engine writes its accounts every 15 s."""


@dataclass(frozen=True, kw_only=True, repr=False)
class QueueLauncher(DetachedLauncher, metaclass=Queue):
    """Runs trainings as jobs of a cluster's queue, through dask-jobqueue.

    The site's own ``jobqueue.yaml`` (https://jobqueue.dask.org) supplies every argument that is not given.

    Args:
        nodes: Number of nodes of each training.
        cpus_per_node: Cores of each node. None is 4 cores for each GPU, or one core without GPUs. OAR gives each GPU
            the cores beside it. Grid Engine takes cores only from a parallel environment, such as ``["-pe smp 16"]``
            in ``directives``.
        gpus_per_node: GPUs of each node; each GPU gets one rank.
        memory_gib_per_node: Memory of each node, in GiB. None is 16 GiB for each GPU, or 4 GiB without GPUs; Slurm
            without GPUs, Grid Engine and OAR use their own defaults.
        walltime: ``"08:00:00"`` or ``"2-00:00:00"``, or another form of Slurm's: ``"90"`` is 90 minutes. There is no
            default.
        partition: Partition of Slurm, or queue of another scheduler.
        account: Account charged for the job.
        interface: Network interface of the nodes for ranks and Dask, such as ``"ib0"``; None lets them choose.
        host_interface: Network interface of this machine for connections to the nodes.
        directives: More options of the job, in the syntax of the queue's own commands: ``["--constraint=h200"]``.
        prologue: Shell lines that run first on each node: ``["module load cuda"]``.
        python: Interpreter on the nodes; None is this interpreter, which must be in a shared folder.
        max_restarts: Number of interruptions (walltime, preemption, lost nodes) after which a training resumes by
            itself from its last checkpoint.
        grace_s: Seconds before the end of the walltime at which the training stops, so that it can resume later.
        hang_after_s: Seconds without a new scalar, from the first iteration on, after which a rank counts as hanging:
            the log then shows every rank's stack, and the training ends. None never ends a hanging rank.
        patience_s: Seconds that the first nodes of a training wait for the others in a queue other than Slurm's, which
            gives nodes one by one. Then all are given back, and the training is submitted again with twice the
            patience. It does not count as an interruption. None never gives nodes back.
        container: Image in which the ranks run: a ``.sif`` file or ``"docker://..."``. The agents run outside it, with
            ``python``; both interpreters need rlnb and the plugins.
        container_runtime: ``"apptainer"``, ``"docker"`` or ``"podman"``, for which ``container`` is an image name, or
            on Slurm ``"pyxis"``, for which it is a ``.sqsh`` file or ``"registry#image"``.
        dashboard: Whether to serve Dask's own dashboard of a job on this machine's loopback interface (needs bokeh). It
            shows little about a training, and importing it delays each start.
        via: Login node of the cluster, if the notebook is elsewhere: ``"anna@login"``, or ``rlnb.ssh(...)``. All other
            settings are those of the cluster, and its folders are not shared with this machine.
    """

    module: ClassVar[str] = "rlnb_dask.host"
    name: ClassVar[str]
    """Name of the launcher, and of its module in dask-jobqueue."""
    title: ClassVar[str]
    """Name of the scheduler in messages."""
    jobqueue: ClassVar[str]
    """Prefix of the names of dask-jobqueue's classes."""
    job_ids: ClassVar[str] = ids.NUMBER
    end_of_options: ClassVar[Sequence[str]] = ()
    """Argument after which the command that ends jobs takes no option; empty if the command knows none."""
    single_job: ClassVar[bool] = False
    """Whether one job holds all nodes of a training; if False, each node is a job, and the jobs wait for each other."""
    needs_walltime: ClassVar[bool] = True
    """Whether a job needs a walltime."""
    outputs: ClassVar[Sequence[str]] = ("rlnb-{}.err",)
    """Patterns of the names of a job's output files, with ``{}`` for the job's id. The first is read first."""
    away: ClassVar[re.Pattern[str] | None] = None
    """Words of the queue's commands if they cannot connect to its controller; None if they are unknown."""
    full: ClassVar[re.Pattern[str] | None] = None
    """Words of the queue's refusal while too many jobs are in it; None if they are unknown."""
    waiting: ClassVar[str] = ""
    """Pattern of the states of jobs that wait or are suspended; empty if they are unknown."""
    max_running: ClassVar[None] = None
    walltime_s: ClassVar[None] = None

    nodes: int = 1
    cpus_per_node: int | None = None
    gpus_per_node: int = 0
    memory_gib_per_node: float | None = None
    walltime: str | None = None
    partition: str | int | None = None
    account: str | int | None = None
    interface: str | None = None
    host_interface: str | None = None
    directives: Sequence[str] | str = ()
    prologue: Sequence[str] | str = ()
    python: str | None = None
    max_restarts: int = 3
    grace_s: int = 60
    hang_after_s: float | None = 900.0
    patience_s: float | None = 900.0
    container: str | None = None
    container_runtime: str = "apptainer"
    dashboard: bool = False

    def __post_init__(self) -> None:
        for name in ("directives", "prologue"):
            lines = getattr(self, name)
            object.__setattr__(self, name, (lines,) if isinstance(lines, str) else tuple(lines))
        for field in fields(self):
            value = getattr(self, field.name)
            if hasattr(value, "dtype") and hasattr(value, "item"):  # NumPy's numbers are numbers
                object.__setattr__(self, field.name, value.item())
        for name in ("partition", "account"):
            value = getattr(self, name)
            object.__setattr__(self, name, str(value) if isinstance(value, int) else value)

    # -- the launcher as rlnb sees it

    @property
    def settings(self) -> Mapping[str, Setting]:
        """Arguments that make an equal launcher."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @property
    def nproc_per_node(self) -> int | None:
        """Ranks on each node for a training that does not set this number; None means one rank."""
        return self.gpus_per_node or None

    @property
    def limit_s(self) -> float | None:
        """Seconds that a node may train, counted from the start of its job; None without a walltime."""
        return None if self.duration_s is None else self.duration_s - self.grace_s

    @property
    def duration_s(self) -> int | None:
        """Seconds of the walltime; None without one, or if it is not a duration."""
        return seconds_of(self.walltime)

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return the problems of the settings; if there are none, the reason why the queue would refuse the job."""
        problems = [*setting_problems(self), *training_problems(self, manifest)]
        return problems or [*queue_problems(self)]

    # -- the job as the queue sees it

    def job_script(self, nodes: int | None = None) -> str:
        """Return the job script as the queue gets it, with placeholders for the Dask scheduler's address and the name.

        Args:
            nodes: Number of nodes; None is the launcher's own number.

        Raises:
            CheckError: A setting is missing or malformed.
        """
        if problems := [*setting_problems(self)]:
            raise CheckError(f"rlnb.{self.name}(...)", problems)
        job = self.job_class()("<scheduler>", name="<name>", **self.job_arguments(nodes or self.nodes))
        return str(job.job_script())

    def job_arguments(self, nodes: int, log_directory: Path | None = None) -> dict[str, Argument]:
        """Return the dask-jobqueue arguments of a job.

        Args:
            nodes: Number of nodes of the training.
            log_directory: Folder for the job's output.
        """
        arguments: dict[str, Argument] = {
            "cores": 1,
            "processes": 1,
            "memory": f"{self.memory_gib:g}GiB",
            "queue": self.partition,
            "account": self.account,
            "walltime": self.walltime_text(),
            "interface": self.interface,
            "worker_command": "rlnb_dask.worker",
            # Dask's memory limit would apply only to the Dask worker process, not to the ranks.
            "worker_extra_args": [
                *("--memory-limit", "0", "--no-nanny", "--no-dashboard", "--dashboard-address", LOOPBACK)
            ],
            "job_name": "rlnb",
            "job_script_prologue": self.prologue_lines(),
            "job_extra_directives": self.extra_directives(nodes),
            "python": f"{shlex.quote(self.python or sys.executable)} -P",  # before "-m", the worker command
            "log_directory": str(log_directory) if log_directory else None,
        }
        arguments |= self.own_arguments(nodes)
        if log_directory:
            lines = [f"export {JOB}={shlex.quote(str(log_directory))}"]
            arguments["job_script_prologue"] = [*arguments["job_script_prologue"], *lines]  # type: ignore[misc]
        return {name: value for name, value in arguments.items() if value is not None}

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return this scheduler's arguments, which override the common ones; None leaves an argument out."""
        return {}

    def prologue_lines(self) -> Sequence[str]:
        """Return the site's lines, the user's and those of the network interface, which run before the worker."""
        return [*self.site_lines("job-script-prologue"), *self.own_prologue(), *self.exports()]

    def own_prologue(self) -> Sequence[str]:
        """Return the user's lines, with others around them that end the job and name the line if one fails."""
        return [*PROLOGUE, *self.prologue, *PROLOGUE_END] if self.prologue else []

    def own_directives(self, nodes: int) -> Sequence[str]:
        """Return this scheduler's directives for the nodes of a job."""
        return ()

    def extra_directives(self, nodes: int) -> Sequence[str] | Mapping[str, str]:
        """Return all directives that dask-jobqueue does not write: the site's, the scheduler's and the user's."""
        return [*self.site_lines("job-extra-directives"), *self.own_directives(nodes), *self.directives]

    def walltime_text(self) -> str | None:
        """Return the walltime in the scheduler's format."""
        seconds = seconds_of(self.walltime)
        return self.walltime if seconds is None else "{:02}:{:02}:{:02}".format(*clock_of(seconds))

    @property
    def cores(self) -> int:
        """Cores of each node."""
        return self.cpus_per_node or self.gpus_per_node * GPU_CORES or 1

    @property
    def memory_gib(self) -> float:
        """Memory of each node, in GiB."""
        return self.memory_gib_per_node or self.gpus_per_node * GPU_MEMORY_GIB or DEFAULT_MEMORY_GIB

    def site(self, key: str) -> Any:
        """Return the value of a key in the site's ``jobqueue.yaml``, or of its former name; None if neither is set."""
        import dask

        value = dask.config.get(f"jobqueue.{self.name}.{key}", None)
        return value or dask.config.get(f"jobqueue.{self.name}.{FORMER_KEYS.get(key, key)}", None)

    def site_lines(self, key: str) -> Sequence[str]:
        """Return the lines of a key in the site's ``jobqueue.yaml``, because an argument replaces the site's lines."""
        lines = self.site(key) or ()
        return [lines] if isinstance(lines, str) else lines

    def site_size(self, key: str) -> Any:
        """Return the site's value for the size of a node; None if the user has set any size."""
        return None if self.cpus_per_node or self.gpus_per_node or self.memory_gib_per_node else self.site(key)

    def free_text(self) -> str:
        """Return the site's and the user's own text about the size of a job, which may request anything."""
        site = [*self.site_lines("job-extra-directives"), self.site_size("resource-spec") or ""]
        return "\n".join([*site, *self.directives])

    def size_problems(self) -> Sequence[Problem]:
        """Return the sizes that this scheduler cannot request as they are set."""
        return ()

    def exports(self) -> Iterator[str]:
        """Yield the shell lines that set the network interface of Gloo and NCCL."""
        if self.interface:
            for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
                yield f"export {variable}={shlex.quote(self.interface)}"

    # -- dask-jobqueue's classes

    def job_class(self) -> Any:
        """Return the dask-jobqueue class of this queue's jobs."""
        return getattr(jobqueue.module(self.name), f"{self.jobqueue}Job")

    def cluster_class(self) -> Any:
        """Return the dask-jobqueue class of this queue's clusters."""
        return getattr(jobqueue.module(self.name), f"{self.jobqueue}Cluster")

    # -- queries of the queue; the defaults are for schedulers without queries

    def refusal(self) -> Problem | None:
        """Return the reason why the queue would refuse a job; None if it would accept it."""
        return None

    def living(self, ids: Sequence[str]) -> Mapping[str, str] | None:
        """Return the queue's states, by id, of the jobs that wait or run; None if the queue does not answer."""
        return None

    def final(self, number: str) -> str | None:
        """Return the final state of an ended job; None while the queue does not report it."""
        return None

    def look(self, ids: Sequence[str]) -> str | None:
        """Return the queue's line about the jobs while all of them wait or run: empty if not, None if unknown."""
        states = self.living(ids)
        if states is None:
            return None
        return ", ".join(f"{number} {states[number]}" for number in ids) if all(n in states for n in ids) else ""

    def waits(self, line: str) -> str:
        """Return why jobs wait or are suspended according to a line of :meth:`look`; empty if they run."""
        return line if self.waiting and re.search(rf"(^|, )[\d.]+ ({self.waiting})", line) else ""

    def ended(self, ids: Sequence[str], within_s: float) -> Mapping[str, str]:
        """Return the final states by id of the jobs that have ended; nothing if the queue does not answer.

        Args:
            ids: Ids of the jobs.
            within_s: Seconds to wait for the queue's account of a job that has just ended.
        """
        deadline = time.monotonic() + min(within_s, ACCOUNT_S)
        living = self.living(ids)
        missing = [] if living is None else [number for number in ids if number not in living]
        while True:
            states = {number: self.final(number) for number in missing}
            if all(states.values()) or time.monotonic() > deadline:
                return {number: state or queries.LEFT for number, state in states.items()}
            time.sleep(0.5)

    def meaning(self, number: str, state: str) -> str:
        """Return a job's final state in words."""
        if queries.is_launch_failure(state):
            return f"{self.title}'s job {number} could not start{state.removeprefix(queries.LAUNCH_FAILED)}"
        return f"{self.title}'s job {number} is {state}"

    def end_s(self, ids: Sequence[str]) -> float | None:
        """Return the time at which the queue will end the jobs, in seconds since the epoch; None if unknown."""
        return None

    def is_away(self, error: str) -> bool:
        """Return whether a command failed only because the queue's controller does not answer at present."""
        return bool(self.away and self.away.search(error))

    def is_full(self, error: str) -> bool:
        """Return whether a submission failed only because too many jobs are in the queue at present."""
        return bool(self.full and self.full.search(error))

    def submitted(self, job_dir: Path) -> str | None:
        """Return the id of the job in the queue whose output goes to a folder.

        Returns:
            The id. It is empty if there is no such job, and None if the queue does not answer.
        """
        return ""

    def in_queue(self, job_dir: Path, ids: Sequence[str]) -> bool | None:
        """Return whether any job is still in the queue; None if the queue does not answer."""
        states = self.living(ids)
        return None if states is None else any(number in states for number in ids)

    def withdraw(self, job_dir: Path, ids: Sequence[str]) -> None:
        """Take a job whose host is gone out of the queue, and delete its TLS keys.

        Raises:
            RlnbError: The queue's command is not on this machine, or does not answer.
        """
        argv = [*shlex.split(self.job_class().cancel_command), *self.end_of_options]
        if ids and shutil.which(argv[0]) is None:
            raise RlnbError(f"There is no {argv[0]} here. Use it on a login node, for {' '.join(ids)}.")
        shutil.rmtree(job_dir / ".tls", ignore_errors=True)
        try:
            for number in ids:  # of jobs that may have ended long ago
                subprocess.run([*argv, number], capture_output=True, check=False, timeout=queries.ANSWER_S)
        except subprocess.TimeoutExpired as exc:
            what = f"{argv[0]} has not answered for {queries.ANSWER_S} s, so {' '.join(ids)} may still be in the queue."
            raise RlnbError(f"{what} Use it later: {shlex.join([*argv, *ids])}") from exc

    def unwanted(self, states: Sequence[str]) -> bool:
        """Return whether the final states show that resubmitting is pointless."""
        return any(map(queries.by_itself, states))

    def reason(self, output: str) -> str:
        """Return the line of a job's output that gives the cause of its end; an empty text if there is none."""
        # The first node on which the prologue fails ends the job on the others, whose last lines say less.
        prologues = [line.strip() for line in output.splitlines() if line.strip().startswith(PROLOGUE_FAILED)]
        return prologues[0] if prologues else last_line(without_reports(output))

    def __repr__(self) -> str:
        values = ((field, getattr(self, field.name)) for field in fields(self))
        arguments = ", ".join(f"{field.name}={value!r}" for field, value in values if value != field.default)
        return f"rlnb.{self.name}({arguments})"


def last_line(text: str) -> str:
    """Return the last non-empty line of a text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


# -- checks ----------------------------------------------------------------------------------------------------------


LINES = ("partition", "account", "interface", "host_interface", "python", "container")
NAMES = ("partition", "account", "interface", "host_interface")
IN_GPU_REQUEST = re.compile("gpu|gres", re.IGNORECASE)
"""Text of a directive that requests GPUs, whose number rlnb does not read."""
KEEP_S = 1.0
"""Seconds for which the queue's answer to the check of a job counts for equal jobs."""
NO_NAME = re.compile(r"[\s;&|$`\"'\\<>()]")

_answers: dict[str, tuple[float, Problem | None]] = {}
"""The latest answer of the queue with its time, in seconds of the monotonic clock, by launcher and job script."""


def setting_problems(launcher: QueueLauncher) -> Iterator[Problem]:
    """Yield a problem for each setting that is missing or malformed."""
    yield from _numbers(launcher)
    yield from _walltime(launcher)
    yield from _lines(launcher)
    if launcher.container_runtime not in RUNTIMES:
        yield Problem(what=f"container_runtime={launcher.container_runtime!r} is not one of {', '.join(RUNTIMES)}.")
    elif launcher.container and launcher.container_runtime == "pyxis" and launcher.name != "slurm":
        what = f"Pyxis is a plugin of Slurm, and {launcher.title} does not have it."
        yield Problem(what=what, fix='Use container_runtime="apptainer".')
    if launcher.dashboard and importlib.util.find_spec("bokeh") is None:
        yield Problem(what="Dask's dashboard needs bokeh, which is not installed.", fix="pip install bokeh")
    for name in NAMES:
        value = getattr(launcher, name)
        if isinstance(value, str) and NO_NAME.search(value):
            yield Problem(what=f"{name}={value!r} contains characters that are not allowed in it.")


def training_problems(launcher: QueueLauncher, manifest: Manifest) -> Iterator[Problem]:
    """Yield a problem for each folder and each size of a node that a training needs and the job would not have."""
    if launcher.container:
        yield from mount_problems(launcher.container_runtime, manifest)
    if any(_numbers(launcher)):
        return
    yield from launcher.size_problems()
    ranks, device = manifest.resources.nproc_per_node, manifest.resources.device
    kind, _, number = device.partition(":")
    if kind == "cpu" or not isinstance(ranks, int) or IN_GPU_REQUEST.search(launcher.free_text()):
        return
    ranks = launcher.gpu_ranks(manifest)
    if ranks < 1:
        return
    gpus, call = launcher.gpus_per_node, f"rlnb.{launcher.name}(gpus_per_node={ranks})"
    if kind == "cuda" and not gpus:
        what = f"device={device!r}, but gpus_per_node=0, so the job has no GPU."
        yield Problem(what=what, fix=f'Use {call}, or device="cpu".')
    elif number.isdigit() and int(number) >= gpus:
        yield Problem(what=f"device={device!r}, but gpus_per_node={gpus}.", fix='Use device="cuda".')
    elif number and ranks > 1:
        yield Problem(what=f"{ranks} ranks cannot share {device}.", fix='Use device="cuda", with a GPU for each rank.')
    elif gpus and ranks > gpus:
        what = f"{ranks} ranks need a GPU each, but gpus_per_node={gpus}."
        yield Problem(what=what, fix=f"Use nproc_per_node={gpus}, or {call}.")


def queue_problems(launcher: QueueLauncher) -> Iterator[Problem]:
    """Yield the reason why this machine's queue would not accept a job."""
    command = shlex.split(launcher.job_class().submit_command)[0]
    if shutil.which(command) is None:
        yield Problem(
            what=f"There is no {command} on this machine, so no job can be submitted from it.",
            fix="Run the notebook on a login node of the cluster.",
        )
    elif problem := _refusal(launcher):
        yield problem


def _refusal(launcher: QueueLauncher) -> Problem | None:
    """Return the queue's objection to a job, with one question for all trials of a sweep."""
    key = f"{launcher!r}\n{launcher.job_script()}"  # the site's file has settings too
    answer_s, problem = _answers.get(key, (-math.inf, None))
    if time.monotonic() - answer_s > KEEP_S:
        problem = launcher.refusal()
        _answers.clear()
        _answers[key] = (time.monotonic(), problem)
    return problem


def _numbers(launcher: QueueLauncher) -> Iterator[Problem]:
    for name in ("nodes", "cpus_per_node", "memory_gib_per_node"):
        value = getattr(launcher, name)
        if value is not None and not _is_positive(value):
            yield Problem(what=f"{name}={value!r} is not a number above 0.", fix=f"Use {name}=1.")
    if launcher.nodes is None or (_is_positive(launcher.nodes) and launcher.nodes != int(launcher.nodes)):
        yield Problem(what=f"nodes={launcher.nodes!r} is not a whole number.", fix="Use nodes=1.")
    for name in ("hang_after_s", "patience_s"):
        value = getattr(launcher, name)
        if value is not None and not _is_positive(value):
            what = f"{name}={value!r} is not a number of seconds above 0."
            yield Problem(what=what, fix=f"Use {name}=900, or None to wait forever.")
    for name in ("gpus_per_node", "max_restarts", "grace_s"):
        value = getattr(launcher, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            yield Problem(what=f"{name}={value!r} is not a whole number of 0 or more.", fix=f"Use {name}=0.")


def _is_positive(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value > 0  # type: ignore[arg-type, operator]


def _walltime(launcher: QueueLauncher) -> Iterator[Problem]:
    walltime, seconds = launcher.walltime, launcher.duration_s
    if walltime is None and launcher.needs_walltime:
        yield Problem(
            what=f"rlnb.{launcher.name}() needs a walltime, and there is no good default.",
            fix='Use walltime="08:00:00". A longer training resumes by itself in a new job.',
        )
    elif walltime is not None and seconds is None:
        yield Problem(what=f"walltime={walltime!r} is not a duration.", fix='Use walltime="2-08:00:00".')
    elif seconds is not None and isinstance(launcher.grace_s, int) and seconds <= launcher.grace_s:
        yield Problem(
            what=f"walltime={walltime!r} leaves no time to train: stopping needs the last {launcher.grace_s} s.",
            fix='Use walltime="00:30:00".',
        )


def _lines(launcher: QueueLauncher) -> Iterator[Problem]:
    values = {name: getattr(launcher, name) for name in LINES}
    values |= {f"directives[{number}]": value for number, value in enumerate(launcher.directives)}
    for name, value in values.items():
        if value is not None and (not isinstance(value, str) or not value or not value.isprintable()):
            yield Problem(what=f"{name}={value!r} is not a single line of text for the job script.")
        elif name.startswith("directives") and (why := reserved_reason(launcher.name, value or "")):
            yield Problem(what=f"{name}={value!r} cannot be used.", fix=why)
    for number, line in enumerate(launcher.prologue):
        if not isinstance(line, str) or "\0" in line:
            yield Problem(what=f"prologue[{number}]={line!r} is not text for the job script.")
