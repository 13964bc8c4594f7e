"""``rlnb.simulator``: the warm simulator as an object, with its state, its memory and the job that holds it."""

from __future__ import annotations

import contextlib
import html
from pathlib import Path
from typing import Literal

from rlnb.contracts.launchers import Launcher
from rlnb.display.status import status
from rlnb.protocol import requests
from rlnb.settings import options
from rlnb.simulation import placement
from rlnb.simulation.pool import pool
from rlnb.simulation.process import SimulatorProcess
from rlnb.spec import Task
from rlnb.tasks.task import as_task


class Simulator:
    """The warm simulator of this kernel: a process that has loaded Isaac Lab and makes an env in under a second.

    The simulator answers previews, evaluations, exports and checks, one at a time. The next training with one process
    adopts it and gives it back at its end. A simulator ends with its kernel, and on a machine with NVIDIA GPUs after
    ``rlnb.options.warm_idle_s`` seconds without a request, or a minute if a run of this machine's queue trains; the
    next request starts a fresh one.

    With a launcher, the simulator is in a job on a node, see :func:`rlnb.simulator`.
    """

    def __init__(self, python: str | None, asset_root: str | None, launcher: Launcher | None = None) -> None:
        self._settings = python, asset_root, launcher

    @property
    def state(self) -> Literal["starting", "idle", "busy", "none"]:
        """State of the simulator, ``"starting"`` until its first answer, then ``"idle"`` or ``"busy"``.

        ``"none"`` is the state without a simulator; the next request starts one.
        """
        worker = self._worker
        if worker is None:
            return "none"
        if not worker.answered:
            return "starting"
        return "busy" if worker.busy else "idle"

    @property
    def pid(self) -> int | None:
        """Process id of the worker; None without one."""
        worker = self._worker
        return worker.pid if worker else None

    @property
    def memory_gib(self) -> float:
        """Resident memory of the simulator now, in GiB."""
        worker = self._worker
        return worker.usage().memory_bytes / 2**30 if worker else 0.0

    @property
    def gpu_memory_gib(self) -> float:
        """Memory of all GPUs that the simulator holds now, in GiB.

        0.0 without a GPU, and where the driver does not report the memory of a process: below WSL, and in a container
        that has process ids of its own.
        """
        worker = self._worker
        return worker.usage().gpu_memory_bytes / 2**30 if worker else 0.0

    @property
    def requests(self) -> int:
        """Number of requests that the simulator has answered."""
        worker = self._worker
        return worker.answered if worker else 0

    @property
    def log(self) -> Path | None:
        """File with the simulator's output; None without a simulator."""
        worker = self._worker
        return worker.log if worker else None

    def compile(self, task: Task | str) -> float:
        """Compile and load the physics and rendering kernels of a task, by making its env once.

        Returns:
            Duration in seconds.
        """
        return pool.request(requests.Compile(task=as_task(task)), *self._settings, warm=True).seconds

    def wait(self) -> Simulator:
        """Wait until the simulator answers, starting it if necessary."""
        pool.request(requests.Ping(), *self._settings, warm=True)
        return self

    @property
    def job(self) -> str:
        """The job that holds the simulator as text, such as ``"slurm job 12 on node3 until 14:05"``.

        The text is empty for a simulator on this machine, and without a simulator.
        """
        worker = self._worker
        return str(worker.job) if worker and worker.job else ""

    def restart(self) -> Simulator:
        """End the simulator and start a fresh one in the background. A job on a node goes on."""
        pool.restart(*self._settings)
        return self

    def close(self) -> None:
        """End the simulator, and its job on a node. The next request starts a fresh one."""
        pool.close(*self._settings)

    @property
    def _worker(self) -> SimulatorProcess | None:
        return pool.current(*self._settings)

    def __repr__(self) -> str:
        if self._worker is None:
            return "Simulator(none; the next request starts one)"
        gpu_gib = self.gpu_memory_gib
        memory = f"{self.memory_gib:.2f} GiB{f' and {gpu_gib:.2f} GiB of GPU memory' if gpu_gib else ''}"
        place = f"{self.job}, " if self.job else ""
        return f"Simulator({self.state}, {place}pid {self.pid}, {memory}, {self.requests} requests)"

    def _repr_html_(self) -> str:
        log = f"<br><small>log: {html.escape(str(self.log))}</small>" if self.log else ""
        return f"<b>{html.escape(repr(self))}</b>{log}"


def simulators() -> list[Simulator]:
    """Return the warm simulators of this kernel, on this machine and in jobs. None is started."""
    return [
        Simulator(process.python, process.asset_root, process.job.launcher if process.job else None)
        for process in pool.all_running()
    ]


def simulator(
    launcher: Launcher | None = None, *, python: str | None = None, asset_root: str | None = None
) -> Simulator:
    """Return this kernel's warm simulator, starting it in the background if there is none.

    With a launcher, one interactive job holds the simulator on a node. It ends with this kernel, after
    ``rlnb.options.warm_idle_s`` seconds without a request, or at its walltime, which a warning announces five minutes
    before. Requests and pictures pass through an encrypted connection for which only this user has the key. To let all
    verbs use it, set ``rlnb.options.simulator``.

    Args:
        launcher: Launcher of the job; None is ``rlnb.options.simulator``, or else this machine, without a job.
        python: Command of the worker's interpreter; None is ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.

    Raises:
        CheckError: The launcher cannot start the job; nothing was started.
    """
    settings = python or options.python, asset_root or options.asset_root
    launcher = placement.launcher_of(launcher or options.simulator)
    with status(f"Starting the simulator on {launcher.name}") if launcher else contextlib.nullcontext():
        pool.running(*settings, launcher)
    return Simulator(*settings, launcher)
