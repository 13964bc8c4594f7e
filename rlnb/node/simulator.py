"""Keep a warm simulator for a kernel, let runs adopt it, and take it back.

The kernel knows the simulator by messages alone, so that it may be on another machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rlnb.machine import nvml
from rlnb.node.child import describe_exit, die_with_parent, environment
from rlnb.node.descendants import descendants, kill_descendants
from rlnb.node.supervisor import AdoptedWorker, Agent
from rlnb.node.watchdog import Watchdog
from rlnb.records.incidents import WEBHOOK
from rlnb.records.layout import JobDir
from rlnb.spec import Command, Json
from rlnb.storage import files
from rlnb.storage.serial import from_json

if TYPE_CHECKING:
    import psutil

SAVED_BEFORE_S = 40.0
"""Seconds before the end of its job at which a training in an adopted simulator is told to save and to end."""


def keep_simulator(log: Path, argv: Sequence[str]) -> int:
    """Start a warm simulator and pass JSON lines between the kernel (stdin, stdout) and it.

    The simulator ends with the kernel. A line with the key ``adopt`` names the folder of a job: the simulator then
    trains that job under this agent, and the kernel reaches it only through the job's folder. After the job, the
    kernel gets the simulator back. If the kernel is gone by then, or the job ended the simulator, this agent ends.
    """
    path = log.with_suffix(".replies")
    try:
        replies = _open_pipe(path)
    except OSError as exc:
        log.write_text(f"{log.parent} cannot hold a named pipe: {exc}. Set TMPDIR to a folder on a local disk.\n")
        return 1
    with open(log, "ab") as output:
        worker = subprocess.Popen(
            [*argv, str(path)],
            env=environment(argv, {}),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )
    process, status, ready, controls = os.pidfd_open(worker.pid), 0, False, ControlChannel(log)
    with open(log, "rb") as earlier_log:  # which is gone later, if a cleaner of temporary folders has removed it
        while adoption := _relay(worker, process, replies, log, controls, ready=ready):
            _tell_kernel({"adopted": True})
            status, adopted = _do_job(worker, replies, earlier_log, adoption)
            if adopted is None:
                _remove(log)  # which the kernel no longer knows of
                break
            ready = ready or adopted.ready
            for line in (*adopted.greetings, adopted.line):
                controls.note(line)
            os.write(1, adopted.line)
        else:
            if (code := worker.poll()) is not None:
                with contextlib.suppress(OSError):  # the kernel may be gone
                    _tell_kernel({"died": describe_exit(code, log)})
    path.unlink(missing_ok=True)  # the kernel may have removed the folder
    kill_descendants(0.0)
    return status


def _do_job(
    worker: subprocess.Popen[bytes], replies: int, earlier_log: IO[bytes], adoption: Adoption
) -> tuple[int, AdoptedWorker | None]:
    """Do a job with the worker; return the job's status, and the worker if the kernel can have it back."""
    job, adopted = adoption.job, AdoptedWorker(worker, replies)
    os.environ[WEBHOOK] = adoption.webhook  # the kernel's, which may have changed since this process started

    def start(_: Command) -> AdoptedWorker:
        adopted.begin(adoption.line)
        return adopted

    with _away_from_kernel(job.log()) as kernel:
        earlier_log.seek(0, os.SEEK_END)
        command = from_json(Command, files.read_own_json(job.command))
        files.restrict_umask(job.path)
        agent = Agent(job, command, earlier_log=earlier_log, deadline=adoption.deadline, revocable=adoption.in_job)
        status = agent.run(start)
        # Without a result, such as on a full disk, the end of this process is what shows the end of the job.
        ended = adopted.returned and worker.poll() is None and files.there(job.result)
        return status, adopted if ended and not _is_gone(kernel) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Adoption:
    """The kernel's last line, after which a job has the worker."""

    line: bytes
    """The line itself, for the worker."""
    job: JobDir
    """Folder of the job."""
    webhook: str = ""
    """Address for alerts; empty without one."""
    in_job: bool = False
    """Whether this process is in a job of a cluster, which may take its node away."""
    ends_s: float | None = None
    """Time at which that job is ended, in seconds since the epoch; None if it has no walltime."""

    @property
    def deadline(self) -> float | None:
        """Time at which the training has to end, so that it can save before the job around it ends."""
        return None if self.ends_s is None else self.ends_s - SAVED_BEFORE_S

    @classmethod
    def of(cls, line: bytes) -> Adoption | None:
        """Parse a line of JSON from the kernel as an adoption; return None for an ordinary request."""
        values = json.loads(line)
        folder, ends_s = values.get("adopt"), values.get("ends_s")
        if folder is None:
            return None
        return cls(
            line=line,
            job=JobDir(Path(folder)),
            webhook=str(values.get("webhook", "")),
            in_job=bool(values.get("hosted")),
            ends_s=None if ends_s is None else float(ends_s),
        )


def _open_pipe(path: Path) -> int:
    """Create the named pipe for the worker's replies, and return a descriptor that reads them.

    A wrapper such as ``isaaclab.sh -p`` prints to stdout, and passes no descriptor above 2 on to the worker.
    """
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR)  # a reader alone would wait for the worker's start


def _relay(
    worker: subprocess.Popen[bytes], process: int, replies: int, log: Path, controls: ControlChannel, *, ready: bool
) -> Adoption | None:
    """Pass lines both ways; return the adoption, or None if either side exits or the start hangs.

    Args:
        worker: The warm simulator.
        process: Descriptor that can be read once it has ended.
        replies: Descriptor of the pipe that it writes to.
        log: Its log.
        controls: Answers the kernel's questions about it.
        ready: Whether it has started.
    """
    pending, partial, was_silent = b"", b"", False
    start = Watchdog(log, lambda: ready)
    with selectors.DefaultSelector() as selector:
        for descriptor in (0, replies, process):
            selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if hangs := start.hangs():
                _tell_kernel({"hangs": hangs})
                return None
            if start.silent and not was_silent:
                _tell_kernel({"silent": str(log)})
            was_silent = start.silent
            events = {key.fd for key, _ in selector.select(None if ready else 1.0)}
            if replies in events:
                lines, end, partial = (partial + os.read(replies, 1 << 16)).rpartition(b"\n")
                if not ready and end:  # the worker's first message reports that it has started
                    controls.note(lines.partition(b"\n")[0])
                    ready = True
                os.write(1, lines + end)  # whole lines, since answers to controls may follow
            elif process in events:  # only now, since the last replies come before the exit
                return None
            if 0 in events:
                data = os.read(0, 1 << 16)
                *calls, pending = (pending + data).split(b"\n")
                goes_on, adoption = _pass_on(calls, worker, controls)
                if not data or not goes_on or adoption:
                    return adoption


def _pass_on(
    lines: Sequence[bytes], worker: subprocess.Popen[bytes], controls: ControlChannel
) -> tuple[bool, Adoption | None]:
    """Pass lines of the kernel on; return whether the simulator goes on, and the adoption that a line may be."""
    assert worker.stdin is not None
    for line in lines:
        values = json.loads(line)
        if "control" in values:
            if values["control"] == "kill":
                return False, None
            if (message := controls.answer(values["control"])) is not None:
                _tell_kernel(message)
        elif adoption := Adoption.of(line + b"\n"):
            return True, adoption
        else:
            try:
                worker.stdin.write(line + b"\n")
                worker.stdin.flush()
            except BrokenPipeError:
                return False, None
    return True, None


def _remove(log: Path) -> None:
    """Remove a log, and its folder if nothing else is in it."""
    with contextlib.suppress(OSError):
        log.unlink(missing_ok=True)
        log.with_suffix(".replies").unlink(missing_ok=True)
        log.parent.rmdir()


def _tell_kernel(message: Mapping[str, Json]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


@contextlib.contextmanager
def _away_from_kernel(log: Path) -> Iterator[int]:
    """Use a job's log as the output, and no input. At the end, the kernel's pipes and the signal handlers are back.

    Yields:
        A descriptor that shows whether the kernel still holds the other end of its pipe.
    """
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    handlers = [signal.getsignal(number) for number in numbers]
    kept = [os.dup(descriptor) for descriptor in (0, 1, 2)]
    null = os.open(os.devnull, os.O_RDWR)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
    for descriptor, other in enumerate((null, output, output)):
        os.dup2(other, descriptor)
    try:
        yield kept[0]
    finally:
        for descriptor, other in enumerate(kept):
            os.dup2(other, descriptor)
        for descriptor in (*kept, null, output):
            os.close(descriptor)
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)


def _is_gone(kernel: int) -> bool:
    """Return whether the other end of the kernel's pipe is closed."""
    hangup = select.poll()
    hangup.register(kernel, 0)  # POLLHUP only; data stays in the pipe
    return bool(hangup.poll(0))


# -- answers to a kernel ---------------------------------------------------------------------------------------------
# The kernel may be on another machine, so it cannot look at the worker itself.


STACKS_WITHIN_S = 1.0
"""Seconds that a worker has to write its stacks."""


class ControlChannel:
    """Answers the kernel's questions about a worker.

    Args:
        log: Log of the worker.
    """

    def __init__(self, log: Path) -> None:
        self._log, self._pid = log, 0

    def note(self, line: bytes) -> None:
        """Note the process id in a message of the worker, which a wrapper may have started."""
        self._pid = int(json.loads(line).get("pid") or 0) or self._pid

    def answer(self, control: str) -> Mapping[str, Json] | None:
        """Do what a kernel asks; return the message for it, or None if it needs none.

        Args:
            control: Kind of the question, as in :class:`rlnb.protocol.messages.Control`.
        """
        if control == "interrupt":
            self._signal(signal.SIGINT)
        elif control == "pulse":
            return {"log_bytes": self._size()}
        elif control == "stacks":
            return {"stacks": self._stacks(), "end_bytes": self._size()}
        elif control == "usage":
            return _usage()
        return None

    def _signal(self, number: signal.Signals) -> bool:
        """Send a signal to the worker; return whether it could be sent. A container has process ids of its own."""
        if any(process.pid == self._pid for process in descendants()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)
                return True
        return False

    def _size(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:
            return 0

    def _stacks(self) -> str:
        """Return the stacks that the worker appends to its log."""
        begin, deadline = self._size(), time.monotonic() + STACKS_WITHIN_S
        if not self._signal(signal.SIGUSR1):
            return ""
        while self._size() == begin and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.05)  # the stacks are written line by line
        with contextlib.suppress(OSError), files.open_regular(self._log) as file:
            file.seek(begin)
            return file.read().decode(errors="replace")
        return ""


def _usage() -> Mapping[str, Json]:
    processes = descendants()
    return {
        "memory_bytes": sum(_resident_bytes(process) for process in processes),
        "gpu_memory_bytes": nvml.process_memory_bytes({process.pid for process in processes}),
    }


def _resident_bytes(process: psutil.Process) -> int:
    import psutil

    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0
