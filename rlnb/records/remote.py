"""What the folder of a run says of its original on another machine; see :mod:`rlnb.mirror`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlnb.errors import RlnbError, RunError
from rlnb.records.layout import JobDir, RunDir
from rlnb.storage import files
from rlnb.storage.serial import from_json

REMOTE, LOCK, LOG = "remote.json", ".mirror.lock", "mirror.log"
ORDER, SENT, BEGUN, SETTLED = "order.json", "sent.json", "begun.json", "settled.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Remote:
    """The other machine's folder of a run, as stored in ``remote.json``."""

    place: str
    """The other machine, as the user named it, e.g. ``"anna@gpu7"``."""
    files: Mapping[str, int] = field(default_factory=dict)
    """Sizes in bytes of the files that are copied only on request, by path below the folder of the run."""
    ahead_ns: int = 0
    """Nanoseconds by which the other machine's clock is ahead of this one's."""


def remote_of(run: RunDir) -> Remote | None:
    """Return what is known of a run's original on another machine; None if the run is on this one.

    A damaged record names no place and no files, which a warning says once.
    """
    path = run.path / REMOTE
    try:
        data = files.read_json(path)
        return None if data is None else from_json(Remote, data, ignore_unknown=True)
    except RlnbError as exc:
        files.warn_once(f"{path}: {exc}")
        return Remote(place="another machine")


def write(run: RunDir, remote: Remote) -> None:
    """Write the record of a run's original in place of an earlier one."""
    files.replace_json(run.path / REMOTE, remote)


def remote_files(run: RunDir) -> dict[Path, int]:
    """Return the files of a run that are only on another machine, with their sizes in bytes.

    Each has the path at which it is here once it is copied.
    """
    remote = remote_of(run)
    sizes = {run.path / path: size for path, size in remote.files.items()} if remote else {}
    return {path: size for path, size in sizes.items() if not files.there(path)}


def refuse_remote(run: RunDir, path: Path) -> None:
    """Refuse to read a file, or a folder with files, that is only on another machine.

    Raises:
        RunError: The file is not here. The message has the call that copies it.
    """
    if any(path == other or path in other.parents for other in remote_files(run)):
        remote = remote_of(run)
        place = remote.place if remote else "another machine"
        raise RunError(
            f"{path.name} of {run.path.name} is on {place}, and not here. "
            f"Use rlnb.get_run({run.path.name!r}).fetch({path.name!r}) first."
        )


def lock_of(run: RunDir) -> Path:
    """Return the file that the process which mirrors a run has locked."""
    return run.path / LOCK


def order(job: JobDir) -> Path:
    """Return the record of a job that was submitted on this machine, as it is sent; no other job is ever sent."""
    return job.path / ORDER


def sent(job: JobDir) -> Path:
    """Return the mark of a job that may have been started on the other machine."""
    return job.path / SENT


def begun(job: JobDir) -> Path:
    """Return the mark, on the other machine, of a job that one of the connections starts, or has started."""
    return job.path / BEGUN


def settled(job: JobDir) -> Path:
    """Return the mark of a job that has ended on the other machine, and of which everything is here."""
    return job.path / SETTLED
