"""The end of a mirror on this machine: it writes what arrives into the folder of the run, and sends what is new."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from rlnb.contracts.libraries import Library
from rlnb.errors import RlnbError
from rlnb.jobs.detached_job import DetachedJob
from rlnb.mirror import run_files
from rlnb.mirror.frames import CHUNK, Channel, Closed, Frame
from rlnb.mirror.run_files import PartialFile, write_at
from rlnb.records import remote
from rlnb.records.checkpoints import companions_of, files_of
from rlnb.records.layout import JOBS, JobDir, RunDir
from rlnb.records.remote import Remote
from rlnb.spec import Job, Json
from rlnb.storage import entries, files
from rlnb.storage.entries import files_below
from rlnb.storage.serial import from_json, to_json

DOUBT_NS = 2_000_000_000
"""Largest difference between two comparisons of the clocks that a slow connection may cause, in nanoseconds."""
MISSING_S = 15.0
"""Seconds without a word of a job that has begun there after which its folder there counts as gone. The states that the
other machine sends are some seconds older than the files."""


class RunReplica:
    """The folder of a run here, whose original is on another machine.

    Args:
        run: Folder of the run.
        library: Library of the run.
        place: Name of the other machine.
    """

    def __init__(self, run: RunDir, library: Library, place: str) -> None:
        self._run, self._library, self._place = run, library, place
        self._jobs: dict[str, DetachedJob] = {}
        self._done: dict[Path, tuple[int, int]] = {}
        """Inode and time of change of each file that was sent on this connection."""
        self._started: set[str] | None = None
        """Jobs that have been started on the other machine; None until it has said so on this connection."""
        self._missing_s: dict[str, float] = {}
        """Time since which the other machine does not know a job that has begun there, by the name of the job."""
        record = remote.remote_of(run)
        self._ahead_ns = record.ahead_ns if record else 0

    # -- the jobs

    def open_jobs(self) -> list[JobDir]:
        """Return the jobs that have not ended on the other machine, or whose files have not all arrived."""
        return [job for job in self._run.jobs() if files.there(job.command) and not files.there(remote.settled(job))]

    def detached(self, job: JobDir) -> DetachedJob:
        """Return a job, to record why it waits and how it ended."""
        if job.path.name not in self._jobs:
            entries.remove(job.waits)  # of an earlier process
            self._jobs[job.path.name] = DetachedJob(job.path)
        return self._jobs[job.path.name]

    def beat(self, waits: str) -> None:
        """Show that this process lives, and record why jobs wait.

        Args:
            waits: Why there is no connection; empty while there is one.
        """
        for job in self.open_jobs():
            self.detached(job).beat()
            if waits:
                self.detached(job).waits(waits + ("; the job goes on there" if files.there(remote.sent(job)) else ""))

    def end_unsent(self) -> None:
        """End the jobs that were cancelled before they left this machine."""
        for job in self.open_jobs():
            if files.there(job.cancel) and not files.there(remote.sent(job)):
                self._end(job, "cancelled", f"cancelled before it was sent to {self._place}")

    def _end(self, job: JobDir, outcome: str, error: str) -> None:
        self.detached(job).end("cancelled" if outcome == "cancelled" else "failed", error)
        self._settle(job)

    def _settle(self, job: JobDir) -> None:
        self.detached(job).waits("")
        files.write_once(remote.settled(job), {"time": files.now()})

    # -- what leaves

    def have(self) -> dict[str, Json]:
        """Return size and time of change of every file that is here, by path, and the digest of one that grows."""
        entries: dict[str, list[Json]] = {}
        for path in files_below(self._run.path):
            name = path.relative_to(self._run.path).as_posix()
            if (way := run_files.way_of(name, self._library)) not in (None, "list"):
                with contextlib.suppress(OSError, RlnbError):  # removed since, or a link to something else
                    status = path.stat()
                    end = run_files.digest(path, status.st_size) if way == "grow" else ""
                    entries[name] = [status.st_size, status.st_mtime_ns + self._ahead_ns, end]
        return dict(entries)

    def begin(self) -> None:
        """Forget what was sent, for a new connection."""
        self._done.clear()
        self._missing_s.clear()
        self._started = None

    def send(self, channel: Channel) -> None:
        """Send jobs that have not started, cancellations and requests for pictures, as far as they are new.

        Raises:
            Closed: The connection has ended.
        """
        for job in self.open_jobs():
            if not files.there(remote.order(job)):
                pass  # the job began on the other machine, whose records name no files of this user
            elif not files.there(remote.sent(job)):
                if not files.there(job.cancel):
                    self._start(channel, job)
            elif self._started is not None and job.path.name not in self._started:
                if job.logs() or files.there(job.started):
                    self._miss(job)
                elif self._is_new(job.path):
                    if files.there(job.cancel):
                        self._end(job, "cancelled", f"cancelled before it reached {self._place}")
                        continue
                    self._start(channel, job)  # an earlier connection has ended before the job arrived
            if self._is_new(job.cancel):
                data = files.read_json(job.cancel) or {}
                channel.send(Frame(kind="cancel", path=job.path.name, data=data))
            self._send_new(channel, job.flight_request)
        self._send_new(channel, self._run.wanted)

    def _miss(self, job: JobDir) -> None:
        """Say that a job that has begun there is not there any more. It must not begin a second time by itself.

        Its folder may be gone for good, or for as long as a file system there is not mounted.
        """
        now_s = time.monotonic()
        if now_s - self._missing_s.setdefault(job.path.name, now_s) < MISSING_S:
            return
        what = f"{self._place} does not have the folder of this job any more"
        if files.there(job.cancel):
            self._end(job, "cancelled", f"cancelled: {what}")
        else:
            self.detached(job).waits(f"{what}. If it is gone for good, use run.cancel()")

    def _is_new(self, path: Path) -> bool:
        """Return whether a file exists and has changed since the last call."""
        try:
            status = path.stat()
        except OSError:
            return False
        mark = (status.st_ino, 0 if path.is_dir() else status.st_mtime_ns)
        if self._done.get(path) == mark:
            return False
        self._done[path] = mark
        return True

    def _send_new(self, channel: Channel, path: Path) -> None:
        if self._is_new(path):
            with contextlib.suppress(OSError):  # removed since
                self._put(channel, path, path.relative_to(self._run.path).as_posix())

    def _start(self, channel: Channel, job: JobDir) -> None:
        """Send a job and what it needs."""
        record = from_json(Job, files.read_json(remote.order(job)) or {}, ignore_unknown=True)
        options = dict(record.options)
        try:
            if job.kind == "train":
                # The training before a resumed one has brought the inputs, which may be large.
                inputs = [] if record.after else self._inputs()
                for path in (*files_below(self._run.source), *itertools.chain.from_iterable(map(files_of, inputs))):
                    self._put(channel, path, path.relative_to(self._run.path).as_posix())
            for name in run_files.FILES:
                file = options.get(name)
                if isinstance(file, str) and os.path.isabs(file):
                    options[name] = self._send_checkpoint(channel, Path(file), f"init/{job.path.name}/{name}")
        except OSError as exc:
            self._end(job, "failed", f"{exc.filename} cannot be sent to {self._place}: {exc.strerror or exc}")
            return
        files.write_once(remote.sent(job), {"time": files.now()})
        self._is_new(job.path)
        wish = dataclasses.replace(record, options=options)
        channel.send(Frame(kind="start", path=job.path.name, data=to_json(wish)))

    def _inputs(self) -> list[Path]:
        folders = entries.matching(self._run.inputs, "*")
        return [path for folder in folders for path in entries.matching(folder, "*")]

    def _send_checkpoint(self, channel: Channel, checkpoint: Path, folder: str) -> str:
        """Send a checkpoint that is not one of the run; return its path below the folder of the run.

        Only a training that is resumed needs the companions, which may be large. A new one takes the weights.
        """
        paths = [*files_of(checkpoint)]
        if folder.endswith("checkpoint"):
            paths += filter(files.there, companions_of(checkpoint, self._library))
        for path in paths:
            self._put(channel, path, f"{folder}/{path.relative_to(checkpoint.parent).as_posix()}")
        return f"{folder}/{checkpoint.name}"

    def _put(self, channel: Channel, path: Path, name: str) -> None:
        with files.open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                channel.send(Frame(kind="put", path=name))
            for offset, body in run_files.chunks(file, 0, size, CHUNK):
                channel.send(Frame(kind="put", path=name, offset=offset, total=size, body=body))

    # -- what arrives

    def receive(self, frame: Frame) -> None:
        """Write what has arrived.

        Raises:
            Closed: The frame does not fit what is here, so that the connection has to begin anew.
            OSError: A file cannot be written.
        """
        if frame.kind in ("grow", "whole", "once"):
            self._write(dataclasses.replace(frame, mtime_ns=max(1, frame.mtime_ns - self._ahead_ns)))
        elif frame.kind == "clock":
            self._compare(frame.mtime_ns)
        elif frame.kind == "list":
            sizes = {
                path: size for path, size in frame.data.items() if run_files.is_inside(path) and isinstance(size, int)
            }
            remote.write(self._run, Remote(place=self._place, files=sizes, ahead_ns=self._ahead_ns))
        elif frame.kind == "gone" and run_files.PASSING.fullmatch(frame.path):
            entries.remove(self._run.path / frame.path)
        elif frame.kind == "states":
            self._follow(frame.data)
        elif frame.kind == "refused":
            for job in self.open_jobs():
                if job.path.name == frame.path:
                    self._end(job, "failed", str(frame.data.get("error", "")))
        elif frame.kind == "failed":
            raise Closed(str(frame.data.get("error", "")))

    def _compare(self, time_ns: int) -> None:
        """Compare the other machine's clock with that of this one, by which the times of files are given here."""
        ahead_ns = time_ns - time.time_ns()
        if abs(ahead_ns - self._ahead_ns) > DOUBT_NS:
            self._ahead_ns = ahead_ns
            record = remote.remote_of(self._run) or Remote(place=self._place)
            remote.write(self._run, dataclasses.replace(record, ahead_ns=ahead_ns))

    def _follow(self, states: Mapping[str, Json]) -> None:
        """Copy the state of the jobs there into the local records."""
        entries = {name: entry for name, entry in states.items() if isinstance(entry, Mapping)}
        self._started = {name for name, entry in entries.items() if entry.get("state") != "created"}
        self._missing_s = {name: since_s for name, since_s in self._missing_s.items() if name not in self._started}
        for job in self.open_jobs():
            if (entry := entries.get(job.path.name)) is not None:
                self.detached(job).waits(str(entry.get("waits", "")))
                if entry.get("over"):
                    self._settle(job)

    def _write(self, frame: Frame) -> None:
        if run_files.way_of(frame.path, self._library) != frame.kind:
            raise Closed(f"{frame.path!r} is no file of a run that is copied")
        if not self._run.path.is_dir():
            raise Closed(f"{self._run.path} was removed")
        path = self._run.path / frame.path
        self._make_job(frame.path)
        if frame.kind == "grow":
            files.make_folder(path.parent)
            write_at(path, frame)
        else:  # a record that this machine was the first to write stays
            PartialFile(path, run_files.most_bytes(frame.path)).write(frame, once=frame.kind == "once")

    def _make_job(self, path: str) -> None:
        """Make the folder of a job that has begun on the other machine, as after an interruption."""
        parts = path.split("/")
        if len(parts) < 3 or parts[0] != JOBS or (self._run.jobs_folder / parts[1]).exists():
            return
        job = JobDir(self._run.jobs_folder / parts[1])
        files.make_folder(job.path)
        files.write_once(remote.sent(job), {"time": files.now()})
        files.write_once(job.handle, handle())


def handle() -> dict[str, Json]:
    """Return the handle of a job that this machine mirrors."""
    return {"host": socket.gethostname()}
