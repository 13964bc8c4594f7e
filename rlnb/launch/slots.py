"""The queue of one machine: a limited number of runs at once, first come, first served.

A waiting run holds a ticket and a running one holds a slot. Both are file locks (flock). Linux releases them however
a process ends, so there is nothing to clean up.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from rlnb.errors import RlnbError


def queue_folder() -> Path:
    """Return this user's queue folder on this machine. The folder is created if it does not exist.

    Raises:
        RlnbError: The folder belongs to another user.
    """
    base = Path(os.environ.get("RLNB_QUEUE") or Path(tempfile.gettempdir()) / f"rlnb-{os.getuid()}")
    for folder in (base, base / "tickets", base / "slots"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if base.stat().st_uid != os.getuid():
        raise RlnbError(f"{base} belongs to another user. Set RLNB_QUEUE to a folder of your own.")
    return base


def take_slots(
    max_running: int, give_up: Callable[[], bool], count: int = 1, poll_s: float = 0.1, *, name: str = ""
) -> dict[int, IO[str]] | None:
    """Wait for ``count`` of ``max_running`` slots; return their numbers and the locks that hold them.

    Args:
        max_running: Slots of this machine.
        give_up: Called at every poll; the wait ends with None once it returns true.
        count: Slots that this job takes, at most ``max_running``.
        poll_s: Seconds between polls.
        name: Name of the run that :func:`holders` returns for these slots.
    """
    folder = queue_folder()
    ticket_path, ticket = _draw_ticket(folder / "tickets")
    slots: dict[int, IO[str]] = {}
    try:
        while not give_up():
            if _first(ticket_path):  # only the first in line takes slots, so a partial set blocks no other job
                for number in range(max_running):
                    slot = _lock(folder / "slots" / str(number)) if number not in slots else None
                    if slot is not None:
                        slots[number] = slot
                        slot.truncate(0)
                        slot.write(name)
                        slot.flush()
                    if len(slots) == count:
                        return slots
            time.sleep(poll_s)
        for slot in slots.values():
            slot.close()
        return None
    finally:
        ticket_path.unlink(missing_ok=True)
        ticket.close()


def holders() -> list[str]:
    """Return the names of the runs that currently hold slots of this machine."""
    names = []
    for slot in sorted((queue_folder() / "slots").iterdir()):
        free = _lock(slot, create=False, exclusive=False)  # held for a moment only; a waiting run retries
        if free is None:
            names.append(slot.read_text(encoding="utf-8"))
        else:
            free.close()
    return list(dict.fromkeys(name for name in names if name))


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
            return False
        (ticket.parent / name).unlink(missing_ok=True)  # its process is gone
        lock.close()
    return True


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
