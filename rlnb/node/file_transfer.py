"""Carries files between a kernel and a worker that see no common folder.

The kernel sends the module of a task, and files of a run, before the request. The worker writes pictures into a folder
of its own machine, and each file that an answer names goes to the kernel before the answer. All paths are changed on
the way, so that both sides see those of their own machine.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rlnb.spec import Json

RUN_FOLDERS = ("run", "flight", "job_dir")
"""Fields of requests, and of their policy, that name a folder of a run, which the node has to see."""
MOST_OUTS = 16
"""Most folders for files of the kernel that are kept. Each request for an env names a new one and ends the last env."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferredFile:
    """A file for the kernel."""

    folder: str
    """Folder on the kernel's machine, which its request has named."""
    name: str
    """Name in that folder."""
    content: bytes


class FileTransfer:
    """Carries the files of one kernel.

    Args:
        folder: Existing, empty folder of this machine for the files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[Path, str] = {}
        """Folder on the kernel's machine by the folder here that stands for it."""
        self._outs: dict[Path, None] = {}
        """Folders here into which requests let the worker write files for the kernel, the newest last."""
        self._count = 0
        """Number of folders that were made."""
        self._seen: dict[str, dict[str, bool]] = {}
        """Whether this machine sees a file of the kernel's machine, by the file's root and relative path."""

    def take(self, root: str, name: str, content: bytes) -> None:
        """Take a file of a task or of a run, which a request will need.

        Args:
            root: Folder of the task's module, or of a run, on the kernel's machine.
            name: Path of the file relative to it.
            content: Content of the file.

        Raises:
            ValueError: The path leaves the folder.
        """
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise ValueError(f"{name!r} is not below the folder of its task.")
        path = self._local(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self._seen.setdefault(root, {})[name] = _holds(Path(root, name), content)

    def place(self, root: str, original: str) -> None:
        """Let a folder of this machine stand for a folder of the kernel's machine.

        Args:
            root: Folder of a run on the kernel's machine.
            original: Folder of the same run on this machine; ``~`` is the home.
        """
        self._names[Path(original).expanduser()] = root

    def translate(self, payload: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a request with the paths of this machine.

        Raises:
            FileNotFoundError: The request is about a run whose folder this machine does not see.
        """
        values = {**payload, **self._runs(payload)}
        if isinstance(policy := payload.get("policy"), Mapping):
            values["policy"] = {**policy, **self._runs(policy)}
        if isinstance(out := values.get("out"), str):
            values["out"] = str(self._out(out))
        if isinstance(task := values.get("task"), Mapping):
            values["task"] = self._task(task)
        if isinstance(tasks := values.get("tasks"), Sequence) and not isinstance(tasks, str):
            values["tasks"] = [self._task(task) if isinstance(task, Mapping) else task for task in tasks]
        return values

    def received(self, line: bytes) -> Iterator[TransferredFile]:
        """Yield the files that an answer names, if they are in a folder of a request, and remove them here."""
        for name in re.findall(re.escape(str(self._folder)).encode() + rb'/[0-9]+/[^"/\\]+(?=")', line):
            path = Path(name.decode())
            if path.parent in self._outs and path.is_file():
                yield TransferredFile(folder=self._names[path.parent], name=path.name, content=path.read_bytes())
                path.unlink()

    def answer(self, line: bytes) -> bytes:
        """Return a line of the worker with the paths of the kernel's machine."""
        for local, folder in self._names.items():
            name = _text(folder).replace(b"\\", rb"\\")  # re.sub reads a backslash as an escape
            line = re.sub(re.escape(str(local)).encode() + rb"(?![0-9])", name, line)
        return line

    def _runs(self, fields: Mapping[str, Json]) -> dict[str, Json]:
        """Return the fields that name a folder of a run, with the paths of this machine.

        Raises:
            FileNotFoundError: This machine does not see the folder.
        """
        values: dict[str, Json] = {}
        for name in RUN_FOLDERS:
            if isinstance(folder := fields.get(name), str) and folder:
                homes = (local for local, root in self._names.items() if Path(folder).is_relative_to(root))
                home = next(homes, None)
                path = home / Path(folder).relative_to(self._names[home]) if home else Path(folder)
                if not (home or path).is_dir():
                    raise FileNotFoundError(folder)
                values[name] = str(path)
        return values

    def _task(self, task: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return a task whose module is a file of this machine."""
        source = task.get("source")
        root = str(Path(source).parent) if isinstance(source, str) else ""
        if not isinstance(source, str) or all(self._seen.get(root, {}).values()):
            return task
        return {**task, "source": str(self._local(root) / Path(source).name)}

    def _out(self, folder: str) -> Path:
        """Return the folder here for files that a request wants in a folder of the kernel's machine."""
        local = self._local(folder)
        self._outs.pop(local, None)
        self._outs[local] = None
        for old in [*self._outs][:-MOST_OUTS]:
            del self._outs[old], self._names[old]
            if old.parent == self._folder:
                shutil.rmtree(old, ignore_errors=True)
        return local

    def _local(self, folder: str) -> Path:
        """Return the folder of this machine that stands for one of the kernel's machine."""
        for local, name in self._names.items():
            if name == folder:
                return local
        local = self._folder / str(self._count)
        local.mkdir()
        self._count += 1
        self._names[local] = folder
        return local


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _text(path: str) -> bytes:
    """Return a path as it is written inside a text of JSON."""
    return json.dumps(path)[1:-1].encode()
