"""Keep a living simulator for a kernel, and hand it over to a run."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlnb.node.agent import Agent
from rlnb.node.child import die_with_parent
from rlnb.node.descendants import kill_descendants
from rlnb.node.environment import environment
from rlnb.node.silence import Silence
from rlnb.records.layout import JobDir
from rlnb.spec import Command
from rlnb.storage import files
from rlnb.storage.serial import from_json


def keep_simulator(log: Path, argv: Sequence[str]) -> int:
    """Start a living simulator and pass JSON lines between the kernel (stdin, stdout) and it.

    The simulator ends with the kernel. A line with the key ``adopt`` names the folder of a job: the simulator then
    trains that job under this agent, and the kernel reaches it only through the job's folder.
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
    handover = _relay(worker, replies, log)
    path.unlink(missing_ok=True)  # the kernel may have removed the folder
    if handover is None:
        kill_descendants(0.0)
        return 0
    job, earlier_log = handover.job, open(log, "rb")  # noqa: SIM115 - the kernel removes the file
    earlier_log.seek(0, os.SEEK_END)
    _tell_kernel("adopted", True)
    _let_go_of_kernel(job.log())

    def start(_: Command) -> subprocess.Popen[bytes]:
        assert worker.stdin is not None
        worker.stdin.write(handover.line)
        worker.stdin.flush()
        return worker

    command = from_json(Command, files.read_json(job.command) or {})
    return Agent(job, command, earlier_log=earlier_log).run(start)


@dataclass(frozen=True, kw_only=True, slots=True)
class Handover:
    """The kernel's last line, which gives the worker to a job."""

    line: bytes
    """The line itself, for the worker."""
    job: JobDir
    """Folder of the job."""

    @classmethod
    def of(cls, line: bytes) -> Handover | None:
        """Parse a line of JSON from the kernel as a handover; return None for an ordinary request."""
        folder = json.loads(line).get("adopt")
        return None if folder is None else cls(line=line, job=JobDir(Path(folder)))


def _open_pipe(path: Path) -> int:
    """Create the named pipe for the worker's replies, and return a descriptor that reads them.

    A wrapper such as ``isaaclab.sh -p`` prints to stdout, and passes no descriptor above 2 on to the worker.
    """
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR)  # a reader alone would wait for the worker's start


def _relay(worker: subprocess.Popen[bytes], replies: int, log: Path) -> Handover | None:
    """Pass lines both ways; return the handover, or None if either side exits or the start hangs."""
    assert worker.stdin is not None
    process, pending, ready, was_silent = os.pidfd_open(worker.pid), b"", False, False
    start = Silence(log, lambda: ready)
    with selectors.DefaultSelector() as selector:
        for descriptor in (0, replies, process):
            selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if hangs := start.hangs():
                _tell_kernel("hangs", hangs)
                return None
            if start.silent and not was_silent:
                _tell_kernel("silent", str(log))
            was_silent = start.silent
            events = {key.fd for key, _ in selector.select(None if ready else 1.0)}
            if replies in events:
                ready = True  # the worker's first message reports that it has started
                os.write(1, os.read(replies, 1 << 16))
            elif process in events:  # only now, since the last replies come before the exit
                return None
            if 0 in events:
                data = os.read(0, 1 << 16)
                if not data:
                    return None
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    if handover := Handover.of(line + b"\n"):
                        return handover
                    try:
                        worker.stdin.write(line + b"\n")
                        worker.stdin.flush()
                    except BrokenPipeError:
                        return None


def _tell_kernel(key: Literal["adopted", "hangs", "silent"], value: bool | str) -> None:
    os.write(1, json.dumps({key: value}).encode() + b"\n")


def _let_go_of_kernel(log: Path) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
