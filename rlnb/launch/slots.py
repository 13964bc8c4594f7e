"""The queue of one machine: a limited number of runs at once, first come, first served.

A waiting run holds a ticket and a running one holds a slot, which is a number or a GPU. Both are file locks (flock).
Linux releases them however a process ends, so there is nothing to clean up.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rlnb.errors import RlnbError
from rlnb.storage.files import make_folder, warn_once
from rlnb.storage.temporary import shared_folder

TELL_S = 1.0
"""Seconds between two looks at the runs that a waiting run has to wait for."""


def queue_folder() -> Path:
    """Return this user's queue folder on this machine. The folder is created if it does not exist.

    Every user can make folders in the temporary folder. If another user has taken this user's name there, the queue is
    in the user's cache folder instead, which a warning says once.

    Raises:
        RlnbError: ``RLNB_QUEUE`` is a folder of another user, or there is no folder for the queue.
    """
    given = os.environ.get("RLNB_QUEUE")
    faults: list[str] = []
    for base in [Path(given)] if given else _usual_folders():
        folders = (base, base / "tickets", base / "slots")
        found = (_fault(folder, follow=bool(given) and folder is base) for folder in folders)
        if not (fault := next(filter(None, found), "")):
            if faults:
                warn_once(f"{faults[0]} The queue of this machine is in {base} instead.")
            return base
        faults.append(fault)
    raise RlnbError(" ".join([*faults, "Set RLNB_QUEUE to a folder of your own."]))


def _usual_folders() -> Iterator[Path]:
    """Yield this user's folder among the temporary files, and the one in the cache, if there are any."""
    with contextlib.suppress(OSError):  # no folder for temporary files can be written
        yield shared_folder() / f"rlnb-{os.getuid()}"
    with contextlib.suppress(RuntimeError):  # a user without a home, as in containers
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        yield cache / "rlnb" / f"queue-{socket.gethostname()}"


def _fault(folder: Path, *, follow: bool) -> str:
    """Return why a folder, which is made if it does not exist, is not this user's own; an empty string if it is.

    Args:
        folder: The folder.
        follow: Whether the folder may be a symbolic link, which the user has named.
    """
    try:
        make_folder(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if found.st_uid != os.getuid():  # also a link of another user, which could lead into a folder of this one
            return f"{folder} belongs to another user."
        found = folder.stat() if follow else found
        if not stat.S_ISDIR(found.st_mode):
            return f"{folder} is not a folder."
        if found.st_mode & 0o022:  # made by hand
            folder.chmod(0o700)
    except OSError as exc:
        return f"{folder} cannot be used: {exc.strerror or exc}."
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotTicket:
    """A run's request for slots of this machine."""

    max_running: int
    """Most runs at a time."""
    count: int = 1
    """Slots that the run takes, at most as many as there are names."""
    run: str = ""
    """Name of the run, which :func:`holders` returns for these slots."""
    names: Sequence[str] | None = None
    """Slots that the run can use, such as its GPUs; None means the numbers below ``max_running``."""
    gpus: Sequence[str] = ()
    """Slots of all GPUs that this process may use. Their runs count as running, whatever slots the run takes."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the slots that are numbers."""
        return tuple(str(number) for number in range(self.max_running))


def take_slots(
    request: SlotTicket,
    give_up: Callable[[], bool],
    poll_s: float = 0.1,
    *,
    on_wait: Callable[[Sequence[str]], None] = lambda _: None,
) -> dict[str, IO[str]] | None:
    """Wait for slots; return their names and the locks that hold them.

    Args:
        request: The slots that the run needs.
        give_up: Called at every poll; the wait ends with None once it returns true.
        poll_s: Seconds between polls.
        on_wait: Called about once a second during the wait with the names of the other runs that hold slots.
    """
    folder = queue_folder()
    ticket_path, ticket = _draw_ticket(folder / "tickets")
    slots: dict[str, IO[str]] = {}
    look_s = float("-inf")
    try:
        while not give_up():
            _take_free(request, folder / "slots", ticket_path, slots)
            if len(slots) == request.count:
                return slots
            if time.monotonic() - look_s > TELL_S:
                look_s = time.monotonic()
                keep([ticket, *slots.values()])
                on_wait([name for name in holders() if name != request.run])
            time.sleep(poll_s)
        for lock in slots.values():
            lock.close()
        return None
    finally:
        ticket_path.unlink(missing_ok=True)
        ticket.close()


def _take_free(request: SlotTicket, folder: Path, ticket: Path, slots: dict[str, IO[str]]) -> None:
    """Add free slots to ``slots``, if it is the turn of this ticket and one more run may run."""
    if not _first(ticket):  # only the first in line holds a partial set, so that it blocks no other job
        for held in slots.values():
            held.close()
        slots.clear()
        return
    rivals = [folder / slot for slot in (*request.numbers, *request.gpus) if slot not in slots] if request.gpus else []
    if len(_runs(rivals)) >= request.max_running:
        return
    for slot in request.numbers if request.names is None else request.names:
        if len(slots) == request.count:
            return
        lock = _lock(folder / slot) if slot not in slots else None
        if lock is not None:
            slots[slot] = lock
            lock.truncate(0)
            lock.write(request.run)
            lock.flush()


def keep(locks: Iterable[IO[str]]) -> None:
    """Renew the times of locks: cleaners of temporary folders remove files that have not changed for some days.

    Without its file, a lock would not keep others away.
    """
    for lock in locks:
        with contextlib.suppress(OSError):
            os.utime(lock.fileno())


def holders() -> list[str]:
    """Return the names of the runs that currently hold slots of this machine."""
    slots = sorted((queue_folder() / "slots").iterdir())
    return [name for name in _runs(slots) if name not in {slot.name for slot in slots}]


def _runs(slots: Sequence[Path]) -> list[str]:
    """Return the names of the runs that hold these slots. A run without a name has the name of its slot."""
    names = []
    for slot in slots:
        free = _lock(slot, create=False, exclusive=False)  # held for a moment only; a waiting run retries
        if free is None:
            names.append(slot.read_text(encoding="utf-8") or slot.name)
        else:
            free.close()
    return list(dict.fromkeys(names))


def _draw_ticket(folder: Path) -> tuple[Path, IO[str]]:
    name = f"{time.time_ns():020d}-{os.getpid()}"
    draft = folder / f".{name}"
    lock = _lock(draft)
    assert lock is not None, "no other process locks a file with our pid"
    draft.rename(folder / name)  # visible only once it is locked
    return folder / name, lock


def _first(ticket: Path) -> bool:
    for name in sorted(os.listdir(ticket.parent)):
        if name == ticket.name:
            return True
        if name.startswith("."):
            continue
        lock = _lock(ticket.parent / name, create=False)
        if lock is None:
            if _is_stopped(name):
                continue
            return False
        (ticket.parent / name).unlink(missing_ok=True)  # its process is gone
        lock.close()
    return True


def _is_stopped(ticket: str) -> bool:
    """Return whether the process of a ticket was stopped, for example with Ctrl+Z; others do not wait for it."""
    import psutil

    try:
        return bool(psutil.Process(int(ticket.rpartition("-")[2])).status() == psutil.STATUS_STOPPED)
    except (ValueError, psutil.Error):
        return False


def _lock(path: Path, create: bool = True, exclusive: bool = True) -> IO[str] | None:
    try:
        file = open(path, "a" if create else "r+", encoding="utf-8")  # noqa: SIM115 - held as long as the lock
    except FileNotFoundError:
        file = open(os.devnull, encoding="utf-8")  # its owner has just left  # noqa: SIM115
        return file
    try:
        import fcntl  # Windows has none, and imports this module too

        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
