"""The pipes between a kernel and the node agent of its warm simulator, or the relay to an agent in a job."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb.errors import RlnbError, require_linux
from rlnb.launch.command import interpreter, own_env
from rlnb.protocol import messages, requests
from rlnb.protocol.messages import Adoption, Call, Control, Module, Original, Sent
from rlnb.protocol.requests import Request
from rlnb.protocol.wire import BEGIN, Lines
from rlnb.records.layout import RunDir, run_dir_of
from rlnb.spec import Task
from rlnb.storage import entries, files
from rlnb.storage.entries import files_below


def agent_command(python: str | None, asset_root: str | None, log: Path) -> tuple[Sequence[str], Mapping[str, str]]:
    """Return the argv and the environment of the node agent that starts a warm simulator on this machine.

    Args:
        python: Command of the worker's interpreter; None is this process's interpreter.
        asset_root: Explicit asset root.
        log: File for the worker's output; its folder is made.

    Raises:
        RlnbError: This is not Linux, or the interpreter does not exist.
    """
    require_linux("The warm simulator")
    command = interpreter(python)
    if shutil.which(command[0]) is None:
        raise RlnbError(
            f"The worker's Python {command[0]!r} is missing. Use python=None for this one, {sys.executable}."
        )
    files.make_folder(log.parent)
    worker = [*command, "-P", "-m", "rlnb.worker", "serve"]
    argv = [sys.executable, "-P", "-m", "rlnb.node", "--warm", str(log), *worker]
    variables = {"RLNB_ASSET_ROOT": asset_root} if asset_root else {}
    return argv, {**os.environ, **own_env(), **variables}


class Link:
    """A process whose standard streams lead to a warm simulator.

    Args:
        argv: Command of the process.
        env: Its environment.
        ships: Whether it is the relay to another machine, which gets the files of tasks and sends files back.
        run_there: Returns the folder there of a run in a folder here; None if its files have to be sent.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        ships: bool = False,
        run_there: Callable[[Path], str | None] = str,
    ) -> None:
        self.process = subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt of the kernel must not reach the process
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._input, self._ships, self._run_there = self.process.stdin, ships, run_there
        self._lines = Lines(self.process.stdout.fileno(), after=BEGIN if ships else b"")
        self.waiting, self.next = self._lines.waiting, self._lines.next
        self.cut = False
        """Whether the process was ended, because an interrupt came before a message was written to its end."""
        self._folders: set[str] = set()
        """Folders that requests have named for files."""
        self._shipped: dict[Path, str] = {}
        """Stamps of the files of tasks and of runs that were sent."""
        self._placed: set[Path] = set()
        """Folders of runs of which the other machine was told where they are there."""

    def send(self, message: Call | Adoption | Control, request: Request[Any] | None = None) -> None:
        """Send a message. If the simulator is on another machine, the files of the request are sent first.

        Raises:
            BrokenPipeError: The process has ended.
            ValueError: Another thread has closed the pipe.
        """
        try:
            if request is not None and self._ships:
                self._ship_files(request)
            self._input.write(messages.line(message))
            self._input.flush()
        except KeyboardInterrupt:
            self.cut = True
            self.process.kill()
            raise

    def _ship_files(self, request: Request[Any]) -> None:
        """Send the files of a request's tasks and runs, and note the folder that it names for files."""
        self._folders |= {str(folder)} if (folder := getattr(request, "out", None)) else set()
        for task in (getattr(request, "task", None), *getattr(request, "tasks", ())):
            if isinstance(task, Task) and task.source is not None:
                module = Path(str(task.source))
                self._ship(module.parent, [module, *(module.parent / name for name in task.files)])
        for run, paths in runs_of(request).items():
            original = self._run_there(run)
            if original is None:
                self._ship(run, paths)
            elif original != str(run) and run not in self._placed:
                self._input.write(messages.line(Original(root=str(run), original=original)))
                self._placed.add(run)

    def _ship(self, root: Path, paths: Sequence[Path]) -> None:
        """Send files below a folder, unless they are not there or were sent as they are."""
        for path in paths:
            stamp = files.stamp(path)
            if stamp and self._shipped.get(path) != stamp:
                content = entries.read_bytes(path)
                header = Module(module=path.relative_to(root).as_posix(), root=str(root), bytes=len(content))
                self._input.write(messages.line(header) + content)
                self._shipped[path] = stamp

    def receive(self, sent: Sent) -> None:
        """Read a file from the other machine, and write it into the folder that a request has named for it.

        A file whose end has not arrived is left out.
        """
        content = self._lines.take(sent.bytes)
        path = Path(sent.folder, sent.name)
        is_below = sent.name != ".." and path.name == sent.name
        if sent.folder in self._folders and is_below and path.parent.is_dir() and len(content) == sent.bytes:
            files.write_bytes(path, content)

    def close(self) -> None:
        """Close the input, which ends the process."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()


# -- run files -------------------------------------------------------------------------------------------------------


def runs_of(request: Request[Any]) -> Mapping[Path, list[Path]]:
    """Return the folders of the runs that a request is about, and the files that it reads in each of them."""
    if isinstance(request, requests.RunJobThere):
        run = run_dir_of(Path(request.job_dir))
        return {run.path: [*_always(run), run.path / str(request.job.options.get("checkpoint", ""))]}
    if isinstance(request, requests.Replay):
        run = RunDir(Path(request.run))
        return {run.path: [*_always(run), *files_below(Path(request.flight))]}
    if (policy := getattr(request, "policy", None)) is not None:
        run = RunDir(Path(policy.run))
        return {run.path: [*_always(run), run.path / policy.checkpoint]}
    return {}


def _always(run: RunDir) -> list[Path]:
    return [run.manifest, *files_below(run.source)]
