"""The folder of an array, ``<root>/arrays/<time>-<number>``: its request, the script of an element, and its output.

The queue executes the script as this user. If others share the root, the folder is therefore in a folder of this user,
``<root>/runs/.arrays-<user id>``, unless an administrator has made ``arrays`` for all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rlnb import RlnbError
from rlnb_dask.queues.launcher import Setting

MODE, FILE_MODE = 0o755, 0o644
"""Modes of the folder and its files, on which the umask is applied. The script in it is executed, and the files say for
which jobs, so others never may write to them."""
MOST_BYTES = 1 << 26
"""Largest file that is read, in bytes; an array may have a hundred thousand elements."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArrayRequest:
    """What the kernel asks of the host of an array."""

    launcher: str
    """Name of the launcher."""
    settings: Mapping[str, Setting]
    """Settings of the launcher."""
    at_once: int | None
    """Largest number of elements that run at once; None leaves it to the queue."""
    job_dirs: Sequence[str]
    """Folders of the jobs, one for each element."""


@dataclass(frozen=True)
class ArrayFolder:
    """The folder of an array."""

    path: Path

    @classmethod
    def create(cls, root: Path) -> ArrayFolder:
        """Make the folder of a new array.

        Args:
            root: Folder that holds rlnb's runs, on a file system that all nodes share.

        Raises:
            RlnbError: Another user has taken the place of this user's folder.
        """
        path = _place(root) / f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        path.mkdir(MODE)
        return cls(path)

    @classmethod
    def of_handle(cls, handle: Mapping[str, Any], job_dir: Path) -> ArrayFolder:
        """Return the folder of a job's array. The handle says its name, and in which of its two places it is.

        Args:
            handle: Handle of the job.
            job_dir: Folder of the job.

        Raises:
            RlnbError: The handle does not name the folder of an array.
        """
        path, runs = Path(str(handle["array"])), job_dir.parents[2]
        place, name = path.parent.name, path.name
        if not re.fullmatch(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4}", name):
            raise RlnbError(f"{job_dir}: {name!r} is not the name of an array's folder. Move its handle.json away.")
        return cls((runs / place if re.fullmatch(r"\.arrays-[0-9]+", place) else runs.parent / "arrays") / name)

    @property
    def script(self) -> Path:
        """The job script of an element."""
        return self.path / "element.sh"

    def members(self, number: int) -> Path:
        """File with the job folder of each element of the array's submission with this number, one a line."""
        return self.path / f"{number}.jobs"

    def write_script(self, script: str) -> None:
        """Write the job script of an element."""
        self._write(self.script, script)

    def write_request(self, request: ArrayRequest) -> None:
        """Write the request of the kernel."""
        self._write(self.path / "array.json", json.dumps(dataclasses.asdict(request), indent=1))

    def request(self) -> ArrayRequest:
        """Return the request of the kernel."""
        return ArrayRequest(**json.loads((self.path / "array.json").read_text()))

    def write_members(self, number: int, job_dirs: Sequence[Path]) -> None:
        """Write the job folders of the elements of a submission."""
        self._write(self.members(number), "".join(f"{path}\n" for path in job_dirs))

    def write_id(self, number: int, array: str) -> None:
        """Write the id that the queue gave a submission."""
        self._write(self._id(number), array)

    def place(self, job_dir: Path) -> tuple[str, int] | None:
        """Return the queue's id of a job's array, and the job's position in it; None before it was submitted.

        Only the files of the job's owner count: another user may have made the folder.
        """
        try:
            owner = job_dir.stat().st_uid
        except OSError:
            return None
        for members in self.path.glob("*.jobs"):
            lines = (_read(members, owner) or "").splitlines()
            if not members.stem.isdecimal() or str(job_dir) not in lines:
                continue
            if (array := _read(self._id(int(members.stem)), owner)) is not None:
                return array, lines.index(str(job_dir))
        return None

    def output(self, array: str, number: int) -> str:
        """Return what the queue and the script printed for an element.

        Args:
            array: The queue's id of the array.
            number: The queue's number of the element.
        """
        path = self.path / f"{array}.{number}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def remove_empty_outputs(self) -> None:
        """Remove the output files of elements to which nothing was written, which is the usual case."""
        for path in self.path.glob("*.out"):
            if path.stat().st_size == 0:
                path.unlink()

    def _id(self, number: int) -> Path:
        return self.path / f"{number}.id"

    def _write(self, path: Path, text: str) -> None:
        """Write a file, which appears as a whole: other processes read it at any moment."""
        part = path.with_name(f".{path.name}.part")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, FILE_MODE), "w") as file:
            file.write(text)
        part.replace(path)


def _place(root: Path) -> Path:
    """Return the folder for new arrays in which no other user can replace one. It is made if it does not exist.

    Raises:
        RlnbError: Another user has taken the place.
    """
    arrays, own = root / "arrays", root / "runs" / f".arrays-{os.getuid()}"
    with contextlib.suppress(FileExistsError, PermissionError):
        if not _is_writable_by_others(root.stat()):
            arrays.mkdir(MODE)
    if _is_safe(arrays, root):
        return arrays
    with contextlib.suppress(FileExistsError):
        own.mkdir(MODE)
    if not _is_safe(own, root):
        raise RlnbError(f"{own} can be changed by others than you. Ask its owner or an administrator to remove it.")
    return own


def _is_safe(folder: Path, root: Path) -> bool:
    """Return whether this user or root has made a folder, and the link to it if its path is one.

    If others can write to it, it has to be sticky.
    """
    try:
        status, owners = folder.stat(), {folder.lstat().st_uid, folder.stat().st_uid}
    except OSError:
        return False
    if not owners <= {0, os.getuid()}:
        with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=root / "runs") as file:
            owners.discard(os.fstat(file.fileno()).st_uid)  # a share may give all files to one user
    sticky = bool(status.st_mode & stat.S_ISVTX)
    return (
        stat.S_ISDIR(status.st_mode) and owners <= {0, os.getuid()} and (sticky or not _is_writable_by_others(status))
    )


def _is_writable_by_others(status: os.stat_result) -> bool:
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _read(path: Path, owner: int) -> str | None:
    """Return the text of a regular file; None if there is none, or if it is not of this owner. A pipe would block."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner or status.st_size > MOST_BYTES:
            return None
        return file.read().decode(errors="replace")
