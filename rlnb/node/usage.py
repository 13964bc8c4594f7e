"""CPU, memory and GPU use of a job on its node, sampled into TensorBoard event files of its own.

``waited_cores`` is the time for which threads of the job were ready to run but had no core, per second.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rlnb.machine import threads
from rlnb.machine.nvml import GIB, Gpus
from rlnb.node.alerts import AlertMonitor
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.spec import SYSTEM
from rlnb.storage import entries, files

if TYPE_CHECKING:
    import psutil

SAMPLE_S = 5.0


class Usage:
    """Samples the processes below this one: busy cores, memory, and the GPUs they may use."""

    def __init__(self, folder: Path, node: int, gpus: Sequence[str]) -> None:
        """Start counting; the first sample is due after ``SAMPLE_S``.

        Args:
            folder: Folder of the event file.
            node: Number of this node in the job.
            gpus: Indices or UUIDs of the GPUs that the job may use.
        """
        self._folder, self._node = folder, node
        self._gpus = Gpus(gpus) if gpus else None
        self._file: IO[bytes] | None = None
        self._busy_s: dict[tuple[int, float], float] = {}
        self._threads: threads.ThreadTimes = {}
        self._since = time.monotonic()
        self._failed = False
        self._try(self._begin)

    def _begin(self) -> None:
        """Count what the processes have used already, as a warm simulator has."""
        self._busy_s = self._count()[0]
        self._threads = threads.spent(pid for pid, _ in self._busy_s)

    def tick(self) -> None:
        """Take a sample if one is due."""
        if time.monotonic() - self._since >= SAMPLE_S:
            self._since, before = time.monotonic(), self._since
            self._try(lambda: self._take(self._since - before))

    def _try(self, work: Callable[[], None]) -> None:
        """Call ``work``. Its failure, such as a full disk or a driver error, must not end the job."""
        try:
            work()
        except Exception as exc:
            if not self._failed:
                with contextlib.suppress(OSError):  # the log is on the same full disk
                    sys.stderr.write(f"rlnb.node: the load on this node could not be sampled: {exc}\n")
            self._failed = True

    def close(self) -> None:
        """Close the event file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()

    def _take(self, passed_s: float) -> None:
        busy_s, memory = self._count()
        if any(memory.values()):  # a job that has just ended uses nothing, and zeros would be its last values
            self._write(dict(self._sample(passed_s, busy_s, memory)))

    def _sample(
        self, passed_s: float, busy_s: dict[tuple[int, float], float], memory: dict[str | None, int]
    ) -> Iterator[tuple[str, float]]:
        spent_s = sum(seconds - self._busy_s.get(process, 0.0) for process, seconds in busy_s.items())
        self._busy_s = busy_s
        yield "cpu_cores", spent_s / passed_s
        times = threads.spent(pid for pid, _ in busy_s)
        if times:
            spent = threads.spent_since(self._threads, times).values()
            yield "waited_cores", sum(thread.waited_s for thread in spent) / passed_s
        self._threads = times
        yield "memory_gib", sum(memory.values()) / GIB
        yield from ((f"rank{rank}_memory_gib", resident / GIB) for rank, resident in memory.items() if rank)
        if self._gpus is not None:
            yield from self._gpus.sample()

    def _count(self) -> tuple[dict[tuple[int, float], float], dict[str | None, int]]:
        """Return CPU seconds of each process below this one, and resident bytes by rank."""
        import psutil

        busy_s: dict[tuple[int, float], float] = {}
        memory: dict[str | None, int] = defaultdict(int)
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error), process.oneshot():
                times, resident = process.cpu_times(), process.memory_info().rss
                memory[_rank(process)] += resident
                busy_s[process.pid, process.create_time()] = times.user + times.system
        return busy_s, memory

    def _write(self, values: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        now = time.time()
        if self._file is None:
            folder = self._folder / f"node{self._node}"
            for path in (self._folder.parent, self._folder, folder):  # no parents=True: the user may remove a run
                files.make_subfolder(path)
            name = f"events.out.tfevents.{int(now)}.{socket.gethostname()}.{os.getpid()}"
            self._file = entries.open_to_add(folder / name)
            RecordWriter(self._file).write(Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
        tags = {f"{SYSTEM}/node{self._node}/{name}": value for name, value in values.items()}
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in tags.items()])
        RecordWriter(self._file).write(Event(wall_time=now, step=int(now), summary=summary).SerializeToString())


def _rank(process: psutil.Process) -> str | None:
    """Return the rank of a process that torchrun, or skrl for JAX, started; None for any other."""
    environ = process.environ()
    return environ.get("RANK") or environ.get("JAX_RANK")


# -- sampling --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def sampling(job: JobDir, node: int, gpus: Sequence[str], *, is_script: bool) -> Iterator[Callable[[], None]]:
    """Yield a function that samples the load on this node and looks for alerts, if the job is a training.

    Args:
        job: Folder of the job.
        node: Number of this node. The first one looks for alerts.
        gpus: Indices or UUIDs of the GPUs that the job may use.
        is_script: Whether the job is a script, which is sampled at once. A worker is sampled only once it has started,
            since its start needs every core.
    """
    if job.kind != "train":
        yield lambda: None
        return
    usage: Usage | None = None
    monitor = AlertMonitor(job) if node == 0 else None

    def tick() -> None:
        nonlocal usage
        if usage is not None:
            usage.tick()
            if monitor is not None:
                monitor.tick()
        elif is_script or files.there(job.started):
            usage = Usage(run_dir_of(job.path).system, node, gpus)

    try:
        yield tick
    finally:
        if usage is not None:
            usage.close()
