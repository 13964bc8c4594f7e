"""The base class of all queues' launchers: the settings, and the job that they become. Starts nothing."""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from rlnb import HostedLauncher, Manifest, Problem
from rlnb_dask.queues import checks
from rlnb_dask.queues.walltime import clock_of, seconds_of

Setting: TypeAlias = "str | int | float | bool | Sequence[str] | None"
Argument: TypeAlias = "str | int | Sequence[str] | Mapping[str, str] | None"
"""A value that dask-jobqueue takes; None leaves the argument out."""

LOOPBACK = "127.0.0.1:0"
"""Address of Dask's web pages, which have no password."""
DEFAULT_MEMORY_GIB = 4.0


@dataclass(frozen=True, kw_only=True, repr=False)
class QueueLauncher(HostedLauncher):
    """Runs trainings as jobs of a cluster's queue, through dask-jobqueue.

    The site's own ``jobqueue.yaml`` (https://jobqueue.dask.org) applies wherever an argument is not given.

    Args:
        nodes: Machines of each training.
        cpus_per_node: Cores of each node.
        gpus_per_node: GPUs of each node; one rank is started for each GPU.
        memory_gib_per_node: Memory of each node, in GiB.
        walltime: ``"08:00:00"`` or ``"2-00:00:00"``. There is no default.
        partition: Slurm's partition, or another scheduler's queue.
        account: Account that pays for the job.
        interface: Network of the nodes for ranks and Dask, such as ``"ib0"``; None lets them choose.
        host_interface: Network of the machine of this call, towards the nodes.
        directives: Further options of the job, as the queue's own commands take them: ``["--constraint=h200"]``.
        prologue: Lines of shell that run first on each node: ``["module load cuda"]``.
        python: Interpreter of the nodes; None is this one, on a shared folder.
        max_restarts: Interruptions (walltime, preemption, lost nodes) after which a training goes on by itself from
            its last checkpoint.
        grace_s: Seconds before the end of the walltime at which the training is stopped, so that it can go on later.
        hang_after_s: Seconds without a new scalar after which a rank counts as hanging: the log then shows where every
            rank is, and the training ends. None waits for ever.
        container: Image that the ranks run in: a ``.sif`` file or ``"docker://..."``. The agents run outside of it,
            with ``python``; both interpreters need rlnb and the plugins.
        container_runtime: ``"apptainer"``, or ``"docker"``, whose ``container`` is the name of an image.
        dashboard: Whether Dask's own dashboard of a job is served on this machine's loopback (needs bokeh). It shows
            little of a training, and each start waits for its imports.
    """

    module: ClassVar[str] = "rlnb_dask.host"
    name: ClassVar[str]
    """Name of the launcher, and of dask-jobqueue's module."""
    title: ClassVar[str]
    """Name of the scheduler in messages."""
    jobqueue: ClassVar[str]
    """First part of the names of dask-jobqueue's classes."""
    single_job: ClassVar[bool] = False
    """Whether one job holds all nodes of a training; else each node is a job, and the jobs wait for each other."""
    needs_walltime: ClassVar[bool] = True
    """Whether a job has to have a walltime."""
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
    container: str | None = None
    container_runtime: str = "apptainer"
    dashboard: bool = False

    def __post_init__(self) -> None:
        for name in ("directives", "prologue"):
            lines = getattr(self, name)
            object.__setattr__(self, name, (lines,) if isinstance(lines, str) else tuple(lines))
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
        """Ranks on each node of a training that does not set them; None is one rank."""
        return self.gpus_per_node or None

    @property
    def limit_s(self) -> float | None:
        """Seconds that a node may train, from the start of its job; None without a walltime."""
        seconds = seconds_of(self.walltime)
        return None if seconds is None else seconds - self.grace_s

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return the wrong settings; where there are none, the reason for which the queue would refuse such a job."""
        return [*checks.setting_problems(self)] or [*checks.queue_problems(self)]

    # -- the job as the queue sees it

    def job_script(self, nodes: int | None = None) -> str:
        """Return the text of the job as the queue gets it, with placeholders for Dask's address and name.

        Args:
            nodes: Machines; None is the launcher's own number.
        """
        job = self.job_class()("<scheduler>", name="<name>", **self.job_arguments(nodes or self.nodes))
        return str(job.job_script())

    def job_arguments(self, nodes: int, log_directory: Path | None = None) -> dict[str, Argument]:
        """Return dask-jobqueue's arguments for a job.

        Args:
            nodes: Machines of the training.
            log_directory: Folder in which the queue writes the job's output.
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
            # Dask's own limit of memory would apply to its own process alone, which does nothing.
            "worker_extra_args": [
                *("--memory-limit", "0", "--no-nanny", "--no-dashboard", "--dashboard-address", LOOPBACK)
            ],
            "job_name": "rlnb",
            "job_script_prologue": [*self.site_lines("job-script-prologue"), *self.prologue, *self._exports()],
            "job_extra_directives": self.extra_directives(nodes),
            "python": shlex.quote(self.python or sys.executable),
            "log_directory": str(log_directory) if log_directory else None,
        }
        arguments |= self.own_arguments(nodes)
        return {name: value for name, value in arguments.items() if value is not None}

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the arguments of this scheduler, which come in place of the common ones; None leaves one out."""
        return {}

    def own_directives(self, nodes: int) -> Sequence[str]:
        """Return the directives of this scheduler for the nodes of a job."""
        return ()

    def extra_directives(self, nodes: int) -> Sequence[str] | Mapping[str, str]:
        """Return all directives that dask-jobqueue does not write: the site's, the scheduler's and the user's."""
        return [*self.site_lines("job-extra-directives"), *self.own_directives(nodes), *self.directives]

    def walltime_text(self) -> str | None:
        """Return the walltime as the scheduler writes it."""
        seconds = seconds_of(self.walltime)
        return self.walltime if seconds is None else "{:02}:{:02}:{:02}".format(*clock_of(seconds))

    @property
    def cores(self) -> int:
        """Cores of each node."""
        return self.cpus_per_node or 1

    @property
    def memory_gib(self) -> float:
        """Memory of each node."""
        return self.memory_gib_per_node or DEFAULT_MEMORY_GIB

    def site(self, key: str) -> Any:
        """Return the value of a key in the site's ``jobqueue.yaml``; None where the site has none."""
        import dask

        return dask.config.get(f"jobqueue.{self.name}.{key}", None)

    def site_lines(self, key: str) -> Sequence[str]:
        """Return the lines of a key in the site's ``jobqueue.yaml``; an argument of ours would replace them."""
        return self.site(key) or ()

    def site_size(self, key: str) -> Any:
        """Return the site's value for the size of a node; None where the user has set any size."""
        return None if self.cpus_per_node or self.gpus_per_node or self.memory_gib_per_node else self.site(key)

    def _exports(self) -> Iterator[str]:
        """Yield the lines that tell torch's and NCCL's sockets the network."""
        if self.interface:
            for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
                yield f"export {variable}={shlex.quote(self.interface)}"

    # -- dask-jobqueue's classes

    def job_class(self) -> Any:
        """Return dask-jobqueue's class of this queue's jobs."""
        return getattr(importlib.import_module(f"dask_jobqueue.{self.name}"), f"{self.jobqueue}Job")

    def cluster_class(self) -> Any:
        """Return dask-jobqueue's class of this queue's clusters."""
        return getattr(importlib.import_module(f"dask_jobqueue.{self.name}"), f"{self.jobqueue}Cluster")

    # -- the queue's answers; a scheduler that is not asked has none

    def refusal(self) -> Problem | None:
        """Return the reason for which the queue would refuse a job; None where it would take it."""
        return None

    def look(self, ids: Sequence[str]) -> str | None:
        """Return the queue's line about waiting or running jobs: empty when it has none any more, None if unknown."""
        return None

    def ended(self, ids: Sequence[str], within_s: float) -> Mapping[str, str]:
        """Return the final state of each job that has ended, by its id, as far as the queue tells.

        Args:
            ids: The jobs.
            within_s: Seconds to wait for a job that is about to end.
        """
        return {}

    def unwanted(self, states: Sequence[str]) -> bool:
        """Return whether final states show that a further job is of no use."""
        return False

    def reason(self, output: str) -> str:
        """Return the line of a job's output that tells why the job ended; an empty text where there is none."""
        return last_line(output)

    def __repr__(self) -> str:
        values = ((field, getattr(self, field.name)) for field in fields(self))
        arguments = ", ".join(f"{field.name}={value!r}" for field, value in values if value != field.default)
        return f"rlnb.{self.name}({arguments})"


def last_line(text: str) -> str:
    """Return the last line of a text that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
