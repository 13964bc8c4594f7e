"""The simulators of this kernel: one on this machine, and one in the job of each launcher.

A simulator starts when it is first needed. A training adopts it, and the pool takes it back at the end.
"""

from __future__ import annotations

import atexit
import logging
import math
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rlnb.contracts.launchers import Launcher
from rlnb.errors import FreshProcessError
from rlnb.launch.slots import holders
from rlnb.machine import threads
from rlnb.machine.gpus import gpu_count
from rlnb.protocol.requests import Request
from rlnb.records.layout import JobDir
from rlnb.settings import options
from rlnb.simulation import placement
from rlnb.simulation.process import SimulatorProcess
from rlnb.simulation.remote_job import ANNOUNCED_S, SimulatorJob, SimulatorLauncher, job_of, key_of
from rlnb.storage import files

logger = logging.getLogger(__name__)
A = TypeVar("A")
BESIDE_S = 60.0
"""Seconds without a request after which the simulator of a machine with GPUs ends if a run trains there."""
BACK_WITHIN_S = 3.0
"""Seconds to wait for the simulator of a training that has just ended."""
IDLE_POLL_S = 10.0
"""Seconds between two looks at whether the simulator of this machine is idle."""


class SimulatorPool:
    """The simulators of this kernel. The settings of a simulator are the same three in all calls.

    Common arguments:
        python: Command of the worker's interpreter; None is that of the simulator's machine.
        asset_root: Explicit asset root.
        launcher: Launcher whose job holds the simulator; None is this machine.
    """

    def __init__(self) -> None:
        self._places: dict[str, SimulatorPlace] = {}
        self.keeps = True
        """Whether the simulator of this machine comes back from a training; not in commands that end with their run."""

    def request(
        self,
        request: Request[A],
        python: str | None = None,
        asset_root: str | None = None,
        launcher: Launcher | None = None,
        *,
        warm: bool | None = None,
        meanwhile: Callable[[A], None] | None = None,
    ) -> A:
        """Send a request to a simulator of the pool, or to a process for this request only, and return the answer.

        Args:
            request: The request.
            python: Command of the worker's interpreter; None is ``rlnb.options.python``.
            asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.
            launcher: Launcher whose job holds the simulator; None is that of the verb, or ``rlnb.options.simulator``.
            warm: Whether a simulator of the pool gets the request; None is ``rlnb.options.warm``.
            meanwhile: Called with each interim value before the answer.

        Raises:
            RlnbError: The worker refused the request. The error has the same class as in the worker.
            WorkerError: The task's own code failed or the worker ended. The error has the traceback or the log.
            FreshProcessError: A process that has just started cannot serve the request either.
        """
        python, asset_root = python or options.python, asset_root or options.asset_root
        launcher = placement.launcher_of(launcher) or placement.chosen()
        place = self._place(python, asset_root, launcher)
        if options.warm if warm is None else warm:
            worker = place.running(python, asset_root)
            try:
                return worker.request(request, meanwhile=meanwhile)
            except FreshProcessError as exc:  # such as a task that needs Isaac Sim after one that does not
                logger.info("A fresh simulator serves the request. %s", exc)
                return place.replaced(worker).request(request, meanwhile=meanwhile)
        worker = place.start(python, asset_root)
        try:
            return worker.request(request, meanwhile=meanwhile)
        finally:
            worker.close()

    def running(
        self, python: str | None = None, asset_root: str | None = None, launcher: Launcher | None = None
    ) -> SimulatorProcess:
        """Return the simulator with these settings, starting one, and its job, if there is none."""
        python, asset_root = python or options.python, asset_root or options.asset_root
        return self._place(python, asset_root, launcher).running(python, asset_root)

    def current(
        self, python: str | None, asset_root: str | None, launcher: Launcher | None = None
    ) -> SimulatorProcess | None:
        """Return the simulator with these settings; None if there is none, or if a training has adopted it."""
        return self._place(python, asset_root, launcher).current(python, asset_root)

    def all_running(self) -> list[SimulatorProcess]:
        """Return the simulators that no training has adopted, that of this machine first."""
        running = [place.process for place in list(self._places.values())]
        return sorted((process for process in running if process is not None), key=lambda process: bool(process.job))

    def start(self, python: str | None, asset_root: str | None, launcher: Launcher | None = None) -> SimulatorProcess:
        """Start a further simulator, which the pool does not keep. The caller has to close it."""
        return self._place(python, asset_root, launcher).start(python, asset_root)

    def idle(
        self, python: str | None, asset_root: str | None, launcher: Launcher | None = None
    ) -> SimulatorProcess | None:
        """Return the simulator with these settings if it can train now, else None."""
        return self._place(python, asset_root, launcher).idle(python, asset_root)

    def release(self, process: SimulatorProcess, job: JobDir) -> None:
        """Note that a training has adopted a simulator. Requests start another one meanwhile.

        Args:
            process: The simulator.
            job: The training's job.
        """
        launcher = process.job.launcher if process.job is not None else None
        if launcher is None and not self.keeps:
            process.give_up()
            return
        self._place(process.python, process.asset_root, launcher).release(process, job)

    def restart(self, python: str | None, asset_root: str | None, launcher: Launcher | None = None) -> None:
        """End a simulator and start a fresh one, in the same job."""
        self._place(python, asset_root, launcher).restart(python, asset_root)

    def close(self, python: str | None, asset_root: str | None, launcher: Launcher | None = None) -> None:
        """End a simulator, and the job that holds it."""
        self._place(python, asset_root, launcher).close()

    def shut_down(self) -> None:
        """End all simulators and their jobs. Those that trainings have adopted end with them."""
        for place in list(self._places.values()):
            place.close()

    def _place(self, python: str | None, asset_root: str | None, launcher: Launcher | None) -> SimulatorPlace:
        key = "" if launcher is None else key_of(launcher, python, asset_root)
        return self._places.setdefault(key, SimulatorPlace(launcher))


class SimulatorPlace:
    """The place of one simulator. A further one may be there while a training has adopted the first.

    Args:
        launcher: Launcher whose job is the place; None is this machine.
    """

    def __init__(self, launcher: Launcher | None) -> None:
        self._launcher = launcher
        self._job: SimulatorJob | None = None
        self._process: SimulatorProcess | None = None
        self._adopted: dict[SimulatorProcess, JobDir] = {}
        """Simulators that trainings have adopted, with the jobs that they do."""
        self._unwanted: set[SimulatorProcess] = set()
        """Those that end when they come back."""
        self._lock = threading.RLock()
        self._is_back = threading.Condition(self._lock)

    @property
    def process(self) -> SimulatorProcess | None:
        """The simulator; None if there is none, or if a training has adopted it."""
        process = self._process
        return process if process is not None and process.alive else None

    def current(self, python: str | None, asset_root: str | None) -> SimulatorProcess | None:
        """Return the simulator if it has these settings; None if there is none, or if a training has adopted it."""
        process = self.process
        return process if process and (process.python, process.asset_root) == (python, asset_root) else None

    def running(self, python: str | None, asset_root: str | None) -> SimulatorProcess:
        """Return the simulator with these settings, starting one if there is none."""
        with self._lock:
            process = self._settled(python, asset_root)
            if process is not None:
                process.used_s = time.monotonic()
                return process
            if self._process is not None:
                self._process.close()
            return self._keep(self.start(python, asset_root))

    def start(self, python: str | None, asset_root: str | None) -> SimulatorProcess:
        """Start a further simulator."""
        if self._launcher is None:
            log = Path(tempfile.mkdtemp(prefix="rlnb-warm-")) / "worker.log"
            return SimulatorProcess(python, asset_root, log)
        with self._lock:
            if self._job is not None and self._job.ended:
                self._end(self._job)
            if self._job is None or self._job.ended:
                self._job = job_of(self._launcher, python, asset_root)
            return SimulatorProcess(python, asset_root, self._job.log, job=self._job)

    def replaced(self, process: SimulatorProcess) -> SimulatorProcess:
        """End a simulator, if no training has adopted it meanwhile, and return a fresh one with its settings."""
        with self._lock:
            if self._process is process:
                process.close()
            return self.running(process.python, process.asset_root)

    def idle(self, python: str | None, asset_root: str | None) -> SimulatorProcess | None:
        """Return the simulator if it can train now, else None.

        It has to be idle. On this machine it needs the user's number of threads. In a job, it has to see the folders of
        runs, and to have more than five minutes left.
        """
        if isinstance(self._launcher, SimulatorLauncher):
            return None
        with self._lock:
            process = self._settled(python, asset_root)
            if process is None or process.busy:
                return None
            if process.job is None:
                fits = process.threads == threads.of_user()
            else:
                ends_s = process.job.ends_s
                fits = bool(process.answered) and (ends_s is None or ends_s - time.time() > ANNOUNCED_S)
            if not fits:
                return None
            process.used_s = time.monotonic()
            return process

    def _settled(self, python: str | None, asset_root: str | None) -> SimulatorProcess | None:
        """Return the simulator with these settings once what it does for an earlier call has ended. Call it locked."""
        deadline = time.monotonic() + BACK_WITHIN_S
        while self.process is None:  # that of a training that has just ended will be back soon
            ended = [
                process
                for process, job in self._adopted.items()
                if (process.python, process.asset_root) == (python, asset_root)
                and process not in self._unwanted
                and files.there(job.result)
            ]
            if not ended or not self._is_back.wait(deadline - time.monotonic()):
                break
        if self._process is not None:
            self._process.settle()
        return self.current(python, asset_root)

    def _keep(self, process: SimulatorProcess) -> SimulatorProcess:
        """Make a process the simulator of this place."""
        self._process = process
        if self._launcher is None:  # a job ends by itself
            threading.Thread(target=self._end_when_idle, args=(process,), daemon=True, name="end when idle").start()
        return process

    def _end_when_idle(self, process: SimulatorProcess) -> None:
        """End an idle simulator, so that it holds no GPU memory that a run may need. Without a GPU it stays."""
        while gpu_count() and process.alive:
            time.sleep(IDLE_POLL_S)
            with self._lock:  # so that it does not end between its choice for a request and the request
                limit_s = math.inf if options.warm_idle_s is None else options.warm_idle_s
                process.end_if_idle(min(limit_s, BESIDE_S if _a_gpu_trains() else math.inf))

    def release(self, process: SimulatorProcess, job: JobDir) -> None:
        """Note that a training has adopted the simulator."""
        with self._lock:
            if self._process is process:
                self._process = None
            self._adopted[process] = job
        threading.Thread(target=self._take_back, args=(process,), daemon=True, name="take back").start()

    def _take_back(self, process: SimulatorProcess) -> None:
        """Wait for the end of a training, and keep its simulator if there is no better one."""
        is_back = process.is_back()
        with self._lock:
            del self._adopted[process]
            wanted = process not in self._unwanted and process.job is self._job
            self._unwanted.discard(process)
            if process.job is None and _a_gpu_trains():
                wanted = False
            other = self.process
            if is_back and wanted and (other is None or not (other.answered or other.busy)):
                if other is not None:  # it has only begun to start
                    other.close()
                self._keep(process)
            elif is_back:
                process.close()
            if process.job is not None and process.job is not self._job:  # the user has given it back meanwhile
                self._end(process.job)
            self._is_back.notify_all()

    def _end(self, job: SimulatorJob) -> None:
        """End a job, or let it end with the training in it, whose connection to this kernel may be lost."""
        if any(process.job is job for process in self._adopted):
            return  # until the training is back
        if job.trains:
            job.let_go()
        else:
            job.end()

    def restart(self, python: str | None, asset_root: str | None) -> None:
        """End the simulator and start a fresh one in the same job."""
        with self._lock:
            self._end_process()
            self.running(python, asset_root)

    def close(self) -> None:
        """End the simulator, and the job."""
        with self._lock:
            self._end_process()
            job, self._job = self._job, None
            if job is not None:
                self._end(job)

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.close()
        self._process = None
        self._unwanted.update(self._adopted)


def _a_gpu_trains() -> bool:
    """Return whether a run of this machine's queue may use a GPU now."""
    return bool(gpu_count()) and bool(holders())


pool = SimulatorPool()
"""The simulators of this kernel."""
atexit.register(pool.shut_down)
