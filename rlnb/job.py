"""``python -m rlnb.job``: the node agent, one per node for every launcher.

It runs one command and answers for it: log, heartbeat, queue, cancel, walltime, result, and that no
process of it is left when it ends. Single-threaded, and free of torch and of the simulator.

``python -m rlnb.job JOB_DIR`` runs the command of that job. ``python -m rlnb.job --warm LOG ARGV``
keeps a warm worker for a kernel and passes its requests on; when the kernel hands it a job, the
agent lets the kernel go and becomes that job's agent. ``python -m rlnb.job --beside ARGV`` runs a
command until the kernel is gone, however it went.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import select
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from rlnb.launch.local import visible_gpus
from rlnb.launch.slots import take_slots
from rlnb.launch.usage import Usage
from rlnb.records import files
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.spec import Command, Outcome, Result, from_json, to_json

POLL_S = 0.25
"""Seconds between looks at the job's folder; the end of the child and signals are heard at once."""
HEARTBEAT_S = 1.0
TERM_GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
EXIT_GRACE_S = 20.0
"""Seconds that a worker has to leave after it wrote its result; simulators are known not to exit."""
RESERVE_BYTES = 32768
FULL_BYTES = 2**20
"""Free space below which a failure is the disk's."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


class Agent:
    """Runs one job of one node to its end."""

    def __init__(self, job: JobDir, command: Command, node: int = 0) -> None:
        self._job, self._command, self._node = job, command, node
        self._signalled = False
        self._beat = 0.0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        self._signalled = True

    def run(self, start: Callable[[Command], subprocess.Popen[bytes]]) -> int:
        """Wait for a slot, start the process, watch it, write the result; return the exit status."""
        _keep_space(self._job.reserve)
        slots: Mapping[int, IO[str]] = {}
        if self._command.queued:
            taken = take_slots(self._command.max_running, self._must_stop, self._command.slots)
            if taken is None:
                return self._end("cancelled", "cancelled while it waited in the queue", None)
            slots = taken
            if self._command.gpu_per_slot:
                gpus = visible_gpus()
                env = {**self._command.env, "CUDA_VISIBLE_DEVICES": ",".join(gpus[number] for number in sorted(slots))}
                self._command = dataclasses.replace(self._command, env=env)
        try:
            files.write_once(self._job.running(self._node), {"pid": os.getpid(), "time": files.now()})
            child = start(self._command)
        except OSError as exc:
            return self._end("failed", f"{self._command.argv[0]!r} could not be started: {exc}", None)
        outcome, error = self._watch(child)
        kill_descendants(0.0 if outcome == "completed" else TERM_GRACE_S)
        code = self._end(outcome, error, child.poll())
        for slot in slots.values():
            slot.close()
        return code

    def _watch(self, child: subprocess.Popen[bytes]) -> tuple[Outcome, str]:
        deadline = time.monotonic() + self._command.walltime_s if self._command.walltime_s else None
        leave_by: float | None = None
        with _wakes(child) as wait, self._sampling() as sample:
            while (code := child.poll()) is None:
                if self._must_stop():
                    return "cancelled", "cancelled"
                if deadline is not None and time.monotonic() > deadline:
                    return "timeout", f"stopped after its walltime of {self._command.walltime_s:.0f} s"
                if leave_by is None and self._job.result.exists():
                    leave_by = time.monotonic() + EXIT_GRACE_S
                if leave_by is not None and time.monotonic() > leave_by:
                    return "completed", ""
                sample()
                wait()
        if code == 0:
            return "completed", ""
        return "failed", _describe_exit(code)

    @contextlib.contextmanager
    def _sampling(self) -> Iterator[Callable[[], None]]:
        """Yield what samples the use of this node; of a training only, whose curves they stand beside."""
        if self._job.kind != "train":
            yield lambda: None
            return
        gpus = self._command.env.get("CUDA_VISIBLE_DEVICES", ",".join(visible_gpus()))
        folder = run_dir_of(self._job.path).system
        with contextlib.closing(Usage(folder, self._node, [name for name in gpus.split(",") if name])) as usage:
            yield usage.tick

    def _must_stop(self) -> bool:
        """Keep the heartbeat, and tell whether somebody wants the job to end."""
        if time.monotonic() - self._beat > HEARTBEAT_S:
            self._beat = time.monotonic()
            with contextlib.suppress(OSError):  # a full disk must not end the job
                self._job.alive(self._node).touch()
        return self._signalled or self._job.cancel.exists()

    def _end(self, outcome: Outcome, error: str, code: int | None) -> int:
        """Write the result unless the worker did, which knows more."""
        if outcome == "failed" and shutil.disk_usage(self._job.path).free < FULL_BYTES:
            error += f". No space left on the disk of {self._job.path}"  # nor for the log to say so
        self._job.reserve.unlink(missing_ok=True)
        detail = files.tail(self._job.log(self._node)) if outcome == "failed" else ""
        result = Result(outcome=outcome, error=error, detail=detail, exit_code=code, ended=files.now())
        try:
            files.write_once(self._job.result, to_json(result))
        except OSError as exc:
            sys.stderr.write(f"rlnb.job: the result could not be written: {exc}\n")
            return 1
        return 0 if outcome == "completed" else 1


@contextlib.contextmanager
def _wakes(child: subprocess.Popen[bytes]) -> Iterator[Callable[[], object]]:
    """Yield a wait of ``POLL_S`` that the child's end and signals cut short.

    Every wake-up takes a core from a training that fills them all, so there are few.
    """
    process = os.pidfd_open(child.pid)
    heard, signalled = os.pipe()
    for end in (heard, signalled):
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    try:
        yield lambda: select.select([process, heard], [], [], POLL_S)
    finally:
        signal.set_wakeup_fd(before)
        for end in (process, heard, signalled):
            os.close(end)


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"the worker ended with status {code}"
    name = signal.Signals(-code).name
    hint = " (out of memory?)" if -code == signal.SIGKILL else ""
    return f"the worker was killed by {name}{hint}"


def _keep_space(path: Path) -> None:
    with contextlib.suppress(OSError), open(path, "wb") as file:
        file.write(b"\0" * RESERVE_BYTES)


def kill_descendants(grace_s: float) -> None:
    """End every process below this one: SIGTERM, then SIGKILL until none is left.

    This process is a subreaper, so what detached itself (setsid, double fork) is still below it.
    """
    import psutil

    me = psutil.Process()
    for process in me.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    deadline = time.monotonic() + grace_s
    while left := _living(me):
        if time.monotonic() > deadline:
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        time.sleep(0.02)


def _living(me: object) -> list:  # type: ignore[type-arg]
    import psutil

    living = []
    for process in me.children(recursive=True):  # type: ignore[attr-defined]
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_ZOMBIE:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
            else:
                living.append(process)
    return living


def _die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, however that happens."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def spawn(command: Command, log: Path) -> subprocess.Popen[bytes]:
    """Start the command with its output in ``log``."""
    with open(log, "ab") as output:
        return subprocess.Popen(
            command.argv,
            env={**os.environ, **command.env},
            cwd=command.cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with_parent,
        )


def run_job(job_dir: Path) -> int:
    """Run the command that was written for this job."""
    job = JobDir(job_dir)
    command = from_json(Command, files.read_json(job.command) or {})
    return Agent(job, command).run(lambda command: spawn(command, job.log()))


# -- the warm worker -------------------------------------------------------------------------------------


def keep_warm(log: Path, argv: Sequence[str]) -> int:
    """Start a warm worker and pass JSON lines between the kernel (stdin, stdout) and it.

    Ends with the kernel. A line with the key ``adopt`` names a job: the worker then trains it under
    this agent, and the kernel has no further say but through the job's folder.
    """
    replies, worker_end = os.pipe()
    with open(log, "ab") as output:
        worker = subprocess.Popen(
            [*argv, str(worker_end)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(worker_end,),
            preexec_fn=_die_with_parent,
        )
    os.close(worker_end)
    assert worker.stdin is not None
    line = _relay(replies, worker.stdin)
    if line is None:
        kill_descendants(0.0)
        return 0
    job = JobDir(Path(json.loads(line)["adopt"]))
    os.write(1, json.dumps({"adopted": True}).encode() + b"\n")
    _let_go_of_kernel(job.log())

    def start(_: Command) -> subprocess.Popen[bytes]:
        assert worker.stdin is not None
        worker.stdin.write(line)
        worker.stdin.flush()
        return worker

    return Agent(job, from_json(Command, files.read_json(job.command) or {})).run(start)


def _relay(replies: int, worker: IO[bytes]) -> bytes | None:
    """Pass lines both ways; return the line that hands over a job, None when either side is gone."""
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(replies, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                data = os.read(key.fd, 1 << 16)
                if not data:
                    return None
                if key.fd == replies:
                    os.write(1, data)
                    continue
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    if b'"adopt"' in line and "adopt" in json.loads(line):
                        return line + b"\n"
                    try:
                        worker.write(line + b"\n")
                        worker.flush()
                    except BrokenPipeError:
                        return None


def _let_go_of_kernel(log: Path) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)


def keep_beside(argv: Sequence[str]) -> int:
    """Run a command, with its output as this process's own, until it ends or the kernel (stdin) is gone."""
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)
    process = os.pidfd_open(child.pid)
    ready: list[int] = []
    while process not in ready and not (0 in ready and not os.read(0, 1 << 16)):
        ready, _, _ = select.select([0, process], [], [])
    kill_descendants(TERM_GRACE_S)
    return child.poll() or 0


def main(argv: Sequence[str]) -> int:
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if argv[:1] == ["--beside"]:
        return keep_beside(argv[1:])
    if argv[:1] == ["--warm"]:
        return keep_warm(Path(argv[1]), argv[2:])
    return run_job(Path(argv[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
