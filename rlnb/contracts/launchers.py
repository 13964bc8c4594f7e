"""The contract of launchers, which rlnb calls to start the jobs of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from rlnb.errors import Problem
from rlnb.spec import Command, Json, Manifest

RUN_VARIABLES = ("RLNB_ALERT_WEBHOOK", "OMP_NUM_THREADS")
"""Environment variables that say something about a run, and not about a machine.

On this machine, and with a shared folder, an agent has the whole environment of the process that submits its job.
Another machine has its own, because its queue (``RLNB_QUEUE``), GPUs (``CUDA_VISIBLE_DEVICES``), network (``NCCL_*``,
``GLOO_*``, proxies) and assets (``ISAACSIM_ASSET_ROOT``) are not those of the kernel. A launcher for another machine
passes on these variables, and those that its user sets.
"""


class Launcher(Protocol):
    """Starts jobs and reports whether they still run.

    Another process finds a job again through the launcher's name, which the run records. The launcher's factory,
    called without arguments, must therefore return a launcher that understands the handles of all others of its name.
    """

    name: str
    """Name of the launcher, the same as in its :class:`rlnb.launchers.LauncherType`."""

    @property
    def nodes(self) -> int:
        """Number of nodes that each training gets."""
        ...

    @property
    def nproc_per_node(self) -> int | None:
        """Ranks on each node if a training sets no ``nproc_per_node``; None is one rank."""
        ...

    @property
    def settings(self) -> Mapping[str, Json]:
        """Arguments that make an equal launcher, as JSON values. A run records them for its later jobs."""
        ...

    @property
    def max_running(self) -> int | None:
        """Most trainings that run at once on a machine; others wait. None if the launcher has a queue of its own."""
        ...

    @property
    def walltime_s(self) -> float | None:
        """Seconds after which a job is stopped with outcome ``timeout``; None sets no limit."""
        ...

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return every reason why this launcher cannot start the run; an empty sequence if it can.

        The user waits for the answer. A launcher that asks another machine answers within a minute, also if that
        machine is away.

        Args:
            manifest: The run that would be started.
        """
        ...

    def submit(self, command: Command, job_dir: Path) -> Mapping[str, Json]:
        """Start a job and return the handle by which it is found again.

        The launcher starts the job's agent, ``python -P -m rlnb.node JOB_DIR``, in such a way that the agent outlives
        this process. The agent reads the command from ``job_dir``, runs it, and takes care of log, cancellation,
        walltime and result. The command begins with ``manifest.python``, or with the interpreter of this process; on
        another machine it has to be an interpreter of that machine. The agent adds ``command.env`` to its own
        environment, which :data:`RUN_VARIABLES` describes, for the command that it runs. If ``command.nodes``
        is more than one, the launcher starts one agent on each node: ``python -P -m rlnb.node JOB_DIR --node K
        --master HOST:PORT``, with a free port of the first node.

        Args:
            command: Command that the agent will run.
            job_dir: Folder of the job. Append the agent's own output to ``node0.log`` in this folder.

        Returns:
            A JSON mapping, for example with a process id or the id of a job in a queue.
        """
        ...

    def alive(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        """Return whether the job still exists; None if this machine cannot tell.

        Every look at a run calls this, several times a second: answer within a tenth of a second. A launcher that asks
        another machine or a queue keeps its answer for some seconds, and answers None or its last answer while the
        other side is silent.

        Args:
            handle: Handle that :meth:`submit` returned.
            job_dir: Folder of the job.
        """
        ...

    def cancel(self, handle: Mapping[str, Json], job_dir: Path) -> None:
        """Remove a waiting job from the launcher's queue, and return at once.

        A running job needs no action: its agent finds the request to cancel in ``job_dir``. If the job is lost, the
        process that owned it is gone, but its entry may still be in the queue.

        Args:
            handle: Handle that :meth:`submit` returned.
            job_dir: Folder of the job.
        """
        ...


class ArrayLauncher(Launcher, Protocol):
    """A :class:`Launcher` that also starts many jobs as one array of its queue."""

    def check_array(self, count: int) -> Sequence[Problem]:
        """Return every reason why the queue would refuse an array of ``count`` jobs."""
        ...

    def submit_array(self, job_dirs: Sequence[Path], *, at_once: int | None) -> Sequence[Mapping[str, Json]]:
        """Start jobs as one array and return the handle of each, in order. An exception means that none was started.

        Args:
            job_dirs: Folders of the jobs. Each holds the command of its job.
            at_once: Largest number of jobs that run at once; None leaves it to the queue.
        """
        ...


@runtime_checkable
class MirrorLauncher(Launcher, Protocol):
    """A :class:`Launcher` of another machine, whose runs are only mirrored in their folders here."""

    def fetch(self, run_dir: Path, names: Sequence[str]) -> None:
        """Copy files of a run here, which are too large to be mirrored.

        Args:
            run_dir: Folder of the run here.
            names: Paths of the files below that folder.
        """
        ...
