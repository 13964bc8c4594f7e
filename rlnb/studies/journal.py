"""The journal of a sweep: its file, the lock of the driving kernel, and the description of the search."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from rlnb.errors import RlnbError
from rlnb.spec import Task
from rlnb.storage import files
from rlnb.storage.serial import to_json

if TYPE_CHECKING:
    import optuna


def storage(path: Path) -> optuna.storages.BaseStorage:
    """Return Optuna's journal in a file. It is append-only, so it survives a kill and works on a shared file system."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    if not path.exists():
        path.touch(files.file_mode(path.parent))
    return JournalStorage(JournalFileBackend(str(path)))


def hold(path: Path, name: str) -> IO[str]:
    """Take and return the lock of a sweep, which only one kernel may drive.

    Raises:
        RlnbError: Another kernel holds the lock.
    """
    import fcntl  # Windows has none, and imports this module too

    lock = open(os.open(path, os.O_WRONLY | os.O_CREAT, files.file_mode(path.parent)), "w")  # noqa: SIM115  held by the driver
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        lock.close()
        raise RlnbError(f"Another kernel drives {name!r}. Read its trials with rlnb.get_sweep({name!r}).") from exc
    return lock


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
