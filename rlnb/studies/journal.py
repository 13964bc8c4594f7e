"""The journal of a sweep: its file, the lock of the driving kernel, and the description of the search."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from rlnb.errors import RlnbError
from rlnb.settings import options
from rlnb.spec import Task
from rlnb.storage import files
from rlnb.storage.access import Folder, another_owner
from rlnb.storage.serial import to_json

if TYPE_CHECKING:
    import optuna


def storage(path: Path) -> optuna.storages.BaseStorage:
    """Return Optuna's journal in a file. It is append-only, so it survives a kill and works on a shared file system.

    Raises:
        RlnbError: The file is a link of another user, or no regular file.
    """
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    os.close(_opened(path, os.O_RDONLY))
    return JournalStorage(JournalFileBackend(str(path)))


def refuse_anothers(path: Path, name: str) -> None:
    """Refuse to drive a sweep of which another user has made a file, and so decides what it holds.

    Args:
        path: File of the journal.
        name: Name of the sweep.

    Raises:
        RlnbError: The journal, or a lock of it, belongs to another user.
    """
    if options.team:
        return
    for file in (path, path.with_suffix(".lock"), path.with_name(f"{path.name}.lock")):  # the last one is Optuna's
        with contextlib.suppress(FileNotFoundError):
            if (owner := another_owner(file, file.parent)) is not None:
                raise RlnbError(
                    f"The sweep {name!r} is the user {owner}'s: {file} belongs to that user. Use another name."
                )


def is_own(path: Path) -> bool:
    """Return whether a journal is this user's, or is gone."""
    try:
        return another_owner(path, path.parent) is None
    except OSError:
        return True


def hold(path: Path, name: str) -> IO[str]:
    """Take and return the lock of a sweep, which only one kernel may drive.

    Raises:
        RlnbError: Another kernel holds the lock.
    """
    import fcntl  # Windows has none, and imports this module too

    lock = open(_opened(path, os.O_WRONLY), "w")  # noqa: SIM115  held by the driver
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        lock.close()
        raise RlnbError(f"Another kernel drives {name!r}. Read its trials with rlnb.get_sweep({name!r}).") from exc
    return lock


def _opened(path: Path, access: int) -> int:
    """Open a regular file, which is made if it does not exist, and return its descriptor."""
    access |= getattr(os, "O_NONBLOCK", 0)  # a pipe would block
    with Folder(path.parent) as folder:
        try:
            descriptor = folder.open(path.name, access)
        except FileNotFoundError:
            descriptor = folder.open(path.name, access | os.O_CREAT, files.file_mode(path.parent))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RlnbError(f"{path} is not a regular file. Move it away.")
    return descriptor


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """Description of a search, as text. The journal keeps it, so that a sweep continues only with the same search."""

    task: str
    """Id of the task."""
    library: str
    """Name of the RL library."""
    metric: str
    """Name or raw tag of the metric."""
    direction: Literal["maximize", "minimize"]
    """Whether more or less of the metric is better."""
    space: str
    """The search space."""
    arguments: str
    """Task settings and training arguments that all trials share, as JSON."""

    def write(self, study: optuna.Study) -> None:
        """Write the description into a study that has none; refuse a study of another search.

        Raises:
            RlnbError: The study has another description.
        """
        for field in dataclasses.fields(self):
            name, text = field.name, getattr(self, field.name)
            record = study.direction.name.lower() if name == "direction" else study.user_attrs.get(name, text)
            if record != text:
                raise RlnbError(
                    f"The sweep {study.study_name!r} has {name}={record!r}, not {text!r}. Use another name."
                )
            if name not in study.user_attrs:
                study.set_user_attr(name, text)


def common(task: Task, **arguments: Any) -> str:
    """Return the task settings and training arguments that all trials of a sweep share, as JSON."""
    of_task = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    common = {**of_task, **arguments}
    for name in ("id", "source", "launcher", "tags"):  # id is Subject.task; the others do not affect the results
        common.pop(name, None)
    values = {name: value for name, value in common.items() if value not in (None, (), {}, "")}
    origin = values.get("init_from")
    values |= {"init_from": _text(origin)} if origin is not None else {}
    inputs = values.get("inputs")
    values |= {"inputs": {name: _text(one) for name, one in inputs.items()}} if isinstance(inputs, Mapping) else {}
    return json.dumps(to_json(values), sort_keys=True)


def _text(origin: object) -> str:
    """Return the id of a run, or the path of a file."""
    return str(getattr(origin, "id", origin))
