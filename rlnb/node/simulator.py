"""Keep a living simulator for a kernel, and hand it over to a run."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from rlnb.node.agent import Agent
from rlnb.node.child import die_with_parent
from rlnb.node.descendants import kill_descendants
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
    replies, worker_end = os.pipe()
    with open(log, "ab") as output:
        worker = subprocess.Popen(
            [*argv, str(worker_end)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(worker_end,),
            preexec_fn=die_with_parent,
        )
    os.close(worker_end)
    assert worker.stdin is not None
    handover = _relay(replies, worker.stdin, log)
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


def _relay(replies: int, worker: IO[bytes], log: Path) -> Handover | None:
    """Pass lines both ways; return the handover, or None if either side exits or the start hangs."""
    pending, ready, was_silent = b"", False, False
    start = Silence(log, lambda: ready)
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(replies, selectors.EVENT_READ)
        while True:
            if hangs := start.hangs():
                _tell_kernel("hangs", hangs)
                return None
            if start.silent and not was_silent:
                _tell_kernel("silent", str(log))
            was_silent = start.silent
            for key, _ in selector.select(None if ready else 1.0):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    return None
                if key.fd == replies:
                    ready = True  # the worker's first message reports that it has started
                    os.write(1, data)
                    continue
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    if handover := Handover.of(line + b"\n"):
                        return handover
                    try:
                        worker.write(line + b"\n")
                        worker.flush()
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
