"""The journal of a sweep: its file, the lock of the kernel that drives it, and the search that it is of."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from rlnb.errors import RlnbError
from rlnb.spec import Task
from rlnb.storage.serial import to_json

if TYPE_CHECKING:
    import optuna


def storage(path: Path) -> optuna.storages.BaseStorage:
    """Return Optuna's journal in that file: appended to, so that a shared file system and a kill do it no harm."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(path)))


def hold(path: Path, name: str) -> IO[str]:
    """Return the lock of a sweep: one kernel drives it.

    Raises:
        RlnbError: Another does.
    """
    import fcntl  # Windows has none, and imports this module too

    lock = open(path, "w")  # noqa: SIM115  held by the driver
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        lock.close()
        raise RlnbError(f"Another kernel drives {name!r}. Look at it with rlnb.get_sweep({name!r}).") from exc
    return lock


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """The search that a sweep is, as text; a sweep keeps it in its journal and goes on with no other."""

    task: str
    library: str
    metric: str
    direction: Literal["maximize", "minimize"]
    space: str
    arguments: str
    """Everything that all trials have in common."""

    def write(self, study: optuna.Study) -> None:
        """Note it in a study; refuse a study of another search.

        Raises:
            RlnbError: The study is of another search.
        """
        for field in dataclasses.fields(self):
            name, text = field.name, getattr(self, field.name)
            record = study.direction.name.lower() if name == "direction" else study.user_attrs.get(name, text)
            if record != text:
                raise RlnbError(
                    f"The sweep {study.study_name!r} has {name}={record!r}, not {text!r}. Give this one another name."
                )
            if name not in study.user_attrs:
                study.set_user_attr(name, text)


def common(task: Task, **arguments: Any) -> str:
    """Return everything that all trials of a sweep have in common, as text."""
    of_task = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    common = {**of_task, **arguments}
    for name in ("id", "source", "launcher", "tags"):  # the first has its own name, the others change no value
        common.pop(name, None)
    values = {name: value for name, value in common.items() if value not in (None, (), {}, "")}
    origin = values.get("init_from")
    values |= {"init_from": getattr(origin, "id", str(origin))} if origin is not None else {}
    return json.dumps(to_json(values), sort_keys=True)
