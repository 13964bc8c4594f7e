"""The end of a mirror on the machine where the runs are: it starts their jobs, and sends what changes in a run."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rlnb.errors import CheckError, Problem, RlnbError
from rlnb.hooks import plugins
from rlnb.hooks.registry import package_versions
from rlnb.jobs.cancellation import withdraw
from rlnb.jobs.jobs import NewJob
from rlnb.mirror import run_files
from rlnb.mirror.frames import CHUNK, Channel, Frame
from rlnb.mirror.run_files import Entry, PartialFile
from rlnb.records import remote
from rlnb.records.layout import COMMAND, JOB, JobDir, RunDir
from rlnb.records.record import JobRecord, RunRecord
from rlnb.settings import Root, options
from rlnb.simulation.remote_job import SharedJob
from rlnb.spec import ENDED, Job, Json, Manifest
from rlnb.storage import access, files
from rlnb.storage.serial import from_json
from rlnb.version import __version__

LOOK_S, LONGEST_LOOK_S = 0.25, 1.0
"""Seconds between two looks at the folder of the run, on a fast file system and on a slow one."""
LOOK_SHARE = 4.0
"""Ratio of the time between two looks to that of a look, up to the longest one, so that a slow file system is spared
as far as the curves stay live."""
STATES_S = 1.0
"""Seconds between two reports of the jobs' states, which also show that this process lives."""
CANCEL_S = 60.0
"""Seconds between two attempts to take a job that was cancelled out of its queue."""
WITHDRAW_S = 2.0
"""Seconds to wait for such an attempt. It goes on behind if the queue does not answer."""
SILENT_S = 60.0
"""Seconds without a frame from the other end after which this process ends."""


class RunServer:
    """One connection's end on the machine of the run.

    Args:
        channel: Connection to the other machine.
        root: Folder of runs on this machine.
        manifest: The run.
        have: Size in bytes, time of change and digest (:func:`rlnb.mirror.run_files.digest`) of each file
            that the other machine has.
    """

    def __init__(self, channel: Channel, root: Root, manifest: Manifest, have: Mapping[str, Json]) -> None:
        self._channel = channel
        self._run = RunDir(root.runs / manifest.run_id)
        _make(self._run, manifest)
        self._record = RunRecord(self._run.path)
        self._library = plugins.library(manifest.library)
        self._sent = {path: (int(size), int(time_ns)) for path, (size, time_ns, _) in have.items()}  # type: ignore[misc, arg-type, str-unpack]
        self._digests = {path: digest for path, (*_, digest) in have.items() if digest}  # type: ignore[misc, str-unpack]
        self._list: dict[str, Json] = {}
        self._states_s = float("-inf")
        self._withdrawn_s: dict[str, float] = {}
        """When each job that was cancelled was taken out of its queue the last time, by the name of the job."""
        self._withdrawal: threading.Thread | None = None

    def serve(self) -> None:
        """Answer the requests of the other machine, and send what changes.

        Raises:
            Closed: The connection has ended.
        """
        pause_s = 0.0
        self._channel.send(Frame(kind="clock", mtime_ns=time.time_ns()))
        while time.monotonic() - self._channel.heard_s < SILENT_S:
            frame, begin_s = self._channel.receive(pause_s), time.monotonic()
            while frame is not None:
                self._do(frame)
                # Also while a large file arrives without a pause, the other end has to hear of this one.
                frame = self._channel.receive(0) if time.monotonic() - begin_s < STATES_S else None
            begin_s = time.monotonic()
            states = self._states() if begin_s - self._states_s > STATES_S else None
            self._send_changes()
            # The states are older than the changes. So once the end of a job is sent, all its files have been sent.
            if states is not None:
                self._channel.send(states)
                self._states_s = begin_s
            look_s = time.monotonic() - begin_s
            pause_s = min(max(LOOK_S, LOOK_SHARE * look_s), LONGEST_LOOK_S)

    # -- requests of the other machine

    def _do(self, frame: Frame) -> None:
        if frame.kind == "put":
            _put(self._run, frame)
        elif frame.kind == "cancel":
            self._cancel(frame)
        elif frame.kind == "start":
            try:
                self._start(frame)
            except (RlnbError, OSError) as exc:
                self._channel.send(Frame(kind="refused", path=frame.path, data={"error": str(exc)}))

    def _job(self, name: str) -> JobDir:
        if not run_files.is_inside(name) or "/" in name:
            raise RlnbError(f"{name!r} is not the name of a job.")
        return JobDir(self._run.jobs_folder / name)

    def _start(self, frame: Frame) -> None:
        """Start a job, unless an earlier connection has.

        Raises:
            RlnbError: The job cannot be started.
            OSError: The same, because of the file system.
        """
        folder = self._job(frame.path)
        if any(map(files.there, (remote.begun(folder), folder.handle, folder.running()))):
            return
        record = from_json(Job, frame.data, ignore_unknown=True)
        paths = {name: record.options.get(name) for name in run_files.FILES}
        options = {name: str(self._run.path / str(path)) for name, path in paths.items() if _is_copy(path)}
        job = dataclasses.replace(record, options={**record.options, **options})
        if job.after and (other := self._job(job.after).successor_name()) not in ("", frame.path):
            raise RlnbError(f"The training goes on already, as job {other}.")
        manifest = self._record.manifest
        new = NewJob(run_path=self._run.path, manifest=manifest, job=job, launcher=plugins.launcher_of(manifest))
        files.make_folder(folder.path)
        if job.after:
            files.write_once(self._job(job.after).successor, {"job": frame.path, "time": files.now()})
        for name, content in new.records(frame.path).items():
            assert name in (JOB, COMMAND)
            files.write_once(folder.path / name, content)
        if files.write_once(remote.begun(folder), {"time": files.now()}):  # an earlier connection's end may still live
            new.start(folder, warm=False, undo=lambda: None)

    def _cancel(self, frame: Frame) -> None:
        """Ask a job to end. The next report of the states also takes it out of a queue in which it waits."""
        folder = self._job(frame.path)
        if folder.path.is_dir():
            files.write_once(folder.cancel, frame.data)

    def _withdraw(self, job: JobRecord) -> None:
        """Take a job that was cancelled out of its queue, again and again as long as it has not ended."""
        now_s = time.monotonic()
        if now_s - self._withdrawn_s.get(job.folder.path.name, float("-inf")) < CANCEL_S:
            return
        if self._withdrawal is not None and self._withdrawal.is_alive():  # the queue does not answer
            return
        self._withdrawn_s[job.folder.path.name] = now_s
        self._withdrawal = threading.Thread(target=self._cancel_there, args=(job,), daemon=True, name="withdraw")
        self._withdrawal.start()
        self._withdrawal.join(WITHDRAW_S)

    def _cancel_there(self, job: JobRecord) -> None:
        with contextlib.suppress(RlnbError, OSError):  # the agent ends the job, or its queue is away
            withdraw(self._record, job)

    # -- reports to the other machine

    def _states(self) -> Frame:
        """Return the state of each job, whether it goes on, and why it waits."""
        states: dict[str, Json] = {}
        for job in self._record.jobs:
            state, waits = job.state(), job.waits
            over = state in ENDED and not job.goes_on()
            if state not in ENDED and files.there(job.folder.cancel):
                self._withdraw(job)
            states[job.folder.path.name] = {"state": state, "over": over, "waits": waits.what if waits else ""}
        return Frame(kind="states", data=states)

    def _send_changes(self) -> None:
        entries = run_files.scan(self._run, self._library)
        sizes: dict[str, Json] = {path: entry.size for path, entry in entries.items() if entry.way == "list"}
        if sizes != self._list or self._states_s == float("-inf"):
            self._channel.send(Frame(kind="list", data=sizes))  # a job that has ended here has all its checkpoints
            self._list = sizes
        for path, entry in entries.items():
            if entry.way != "list":
                with contextlib.suppress(FileNotFoundError, RlnbError):  # removed since
                    self._send_change(path, entry)
        for path in [path for path in self._sent if path not in entries]:
            del self._sent[path]
            if run_files.PASSING.fullmatch(path):
                self._channel.send(Frame(kind="gone", path=path))

    def _send_change(self, path: str, entry: Entry) -> None:
        size, mtime_ns = self._sent.get(path, (-1, 0))
        if (digest := self._digests.pop(path, None)) is not None and digest != run_files.digest(
            self._run.path / path, size
        ):
            size = -1  # the file was written anew while there was no connection
        same = size == entry.size if entry.way == "grow" else (size, mtime_ns) == (entry.size, entry.mtime_ns)
        if same or (entry.way == "once" and size >= 0):
            return
        begin = size if entry.way == "grow" and 0 <= size < entry.size else 0
        with files.open_regular(self._run.path / path) as file:
            status = os.fstat(file.fileno())
            end = entry.size if entry.way == "grow" else status.st_size
            change = Frame(kind=entry.way, path=path, total=end, mtime_ns=status.st_mtime_ns)
            if begin == end:
                self._channel.send(change)
            for offset, body in run_files.chunks(file, begin, end, CHUNK):
                self._channel.send(dataclasses.replace(change, offset=offset, body=body))
        self._sent[path] = end, status.st_mtime_ns


def _is_copy(path: Json) -> bool:
    """Return whether an option is the path of a checkpoint that was copied here for the job."""
    return isinstance(path, str) and path.startswith("init/") and run_files.is_inside(path)


def _make(run: RunDir, manifest: Manifest) -> None:
    """Make the folder of a run, unless an earlier connection has."""
    files.make_folder(run.jobs_folder)
    files.make_folder(run.logs)
    if manifest.script:  # its original is on the other machine
        copy = run.source / Path(manifest.script[0]).name
        manifest = dataclasses.replace(manifest, script=(str(copy), *manifest.script[1:]))
    files.write_once(run.manifest, manifest, limit_bytes=files.RECORD_BYTES)


def _put(run: RunDir, frame: Frame) -> None:
    """Write a part of a file; the file appears as a whole with its last part.

    Raises:
        RlnbError: The path leads out of the folder of the run.
        Closed: The part is not the next one.
        OSError: The file cannot be written.
    """
    if not run_files.is_inside(frame.path):
        raise RlnbError(f"{frame.path!r} is not a path below the folder of a run.")
    PartialFile(run.path / frame.path).write(frame)


def send_file(channel: Channel, run: RunDir, wish: Frame) -> None:
    """Send a file of a run. If the file has changed since the other machine got its part, all of it is sent.

    Args:
        channel: Connection to the other machine.
        run: The run.
        wish: Path of the file below the folder of the run, the number of bytes that the other machine has, and the time
            of change of the file from which they are.

    Raises:
        RlnbError: The path leads out of the folder of the run, or to something else than a file.
        OSError: The file does not exist, or cannot be read.
    """
    if not run_files.is_inside(wish.path):
        raise RlnbError(f"{wish.path!r} is not a path below the folder of a run.")
    with files.open_regular(run.path / wish.path) as file:
        status = os.fstat(file.fileno())
        frame = Frame(kind="part", path=wish.path, total=status.st_size, mtime_ns=status.st_mtime_ns)
        is_same = wish.mtime_ns == status.st_mtime_ns and wish.offset <= status.st_size
        offset = wish.offset if is_same else 0
        if offset == status.st_size:
            channel.send(dataclasses.replace(frame, offset=offset))
        for begin, body in run_files.chunks(file, offset, status.st_size, CHUNK):
            channel.send(dataclasses.replace(frame, offset=begin, body=body))


# -- questions to the other machine ----------------------------------------------------------------------------------


def answer_inquiry(root: Root, manifest: Manifest) -> Frame:
    """Return the versions of this machine, and every problem that the run would have here.

    Args:
        root: Folder of runs on this machine.
        manifest: The run, with its launcher on this machine.
    """
    problems = entries_of(_find(root, manifest))
    return Frame(kind="answer", data={"python": sys.executable, "versions": dict(versions()), "problems": problems})


def entries_of(problems: Iterable[Problem]) -> list[Json]:
    """Return problems as a frame carries them."""
    return [{"what": str(problem.what), "fix": str(problem.fix)} for problem in problems]


def problems_of(frame: Frame) -> Sequence[Problem]:
    """Return the problems that a frame from the other machine carries."""
    entries = frame.data.get("problems")
    items = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return [Problem(what=str(entry.get("what", "")), fix=str(entry.get("fix", ""))) for entry in items]


def versions() -> dict[str, str]:
    """Return the versions of rlnb and of the packages of its plugins, by name."""
    return {"rlnb": __version__, **package_versions()}


def _find(root: Root, manifest: Manifest) -> Iterator[Problem]:
    existing = next(folder for folder in (root.path, *root.path.parents) if os.path.exists(folder))
    fix = "Use root= with a folder of yours on that machine."
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield Problem(what=f"the folder {root.path} cannot be written.", fix=fix)
    for problem in access.sharing_problems(root.path):
        team = 'To trust everybody who can write there instead: env={"RLNB_TEAM": "1"}.'
        yield Problem(what=problem.what, fix=f"{fix} {team}")
    assets = manifest.asset_root
    if assets and "://" not in assets and not Path(assets).expanduser().is_dir():
        yield Problem(what=f"asset_root={assets!r} is not a folder.", fix="Use a folder of that machine, or None.")
    try:
        plugins.library(manifest.library)
    except RlnbError as exc:
        yield Problem(what=str(exc), fix="Install the library's plugin on that machine.")
    try:
        yield from plugins.make_launcher(manifest.launcher, manifest.launcher_settings).check(manifest)
    except CheckError as exc:
        yield from exc.problems
    except RlnbError as exc:
        yield Problem(what=str(exc))


# -- simulators there ------------------------------------------------------------------------------------------------


STATE_S = 1.0
"""Seconds between two reports of the job's state, which also show that this process lives."""
HOLDER_SILENT_S = 30.0
"""Seconds without a word from the kernel after which the job is ended."""


def hold(channel: Channel, root: Root, manifest: Manifest, idle_s: float | None) -> None:
    """Start a job for warm simulators, and end it when the kernel is gone.

    Args:
        channel: Connection to the kernel.
        root: Folder of rlnb on this machine.
        manifest: The launcher of this machine, the interpreter of the worker and the asset root.
        idle_s: Seconds without a request after which the job ends by itself; None means never.

    Raises:
        Closed: The kernel is gone.
        RlnbError: The job cannot be started.
    """
    options.root, options.warm_idle_s = root.path, idle_s
    launcher = plugins.make_launcher(manifest.launcher, manifest.launcher_settings)
    try:
        job = SharedJob(launcher, manifest.python, manifest.asset_root)
    except CheckError as exc:
        channel.send(Frame(kind="refused", data={"problems": entries_of(exc.problems)}))
        return
    try:
        channel.send(Frame(kind="started", data={"folder": str(job.folder.path)}))
        _report(channel, job)
    finally:
        job.end()


def _report(channel: Channel, job: SharedJob) -> None:
    """Report the state of the job to the kernel, until the kernel is silent.

    Raises:
        Closed: The kernel is gone.
    """
    told_s = float("-inf")
    while time.monotonic() - channel.heard_s < HOLDER_SILENT_S:
        frame = channel.receive(STATE_S)
        if frame is not None and frame.kind == "reason":
            channel.send(Frame(kind="reason", data={"text": job.reason()}))
        if time.monotonic() - told_s > STATE_S:
            told_s = time.monotonic()
            channel.send(Frame(kind="state", data={"name": job.name, "ended": job.ended}))
