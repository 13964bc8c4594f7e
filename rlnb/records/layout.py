"""Where every file of a run lies. Only the copies of runs on other machines have lists of their own.

::

    <root>/runs/<id>/manifest.json  source/  inputs/  like/  jobs/<n>-<kind>/  logs/  notes/  media/  exports/
    <root>/tasks/  cards/  sweeps/  simulators/<id>/jobs/0-simulator/

Standard library only: the node agent imports this.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rlnb.errors import RlnbError
from rlnb.spec import SYSTEM
from rlnb.storage import entries, files
from rlnb.storage.entries import MOST_ALIKE, files_below, walk

JOBS = "jobs"
"""Folder of a run's jobs."""
JOB, COMMAND, HANDLE = "job.json", "command.json", "handle.json"
"""First records of a job: its kind and options, its command, and the handle by which its launcher finds it."""
LAST_POINTS = "summary.json"
"""Record of a training that is of use on one machine only, since it has the stamps of the event files there."""
FILM = "training-"
"""Begin of the name of a film that was made during a training, before the learning iteration."""
_NUMBER = re.compile(r"\.?(\d+)")
"""Number of a job, or of its draft, whose folder name begins with a dot."""
_JOB = re.compile(r"(\d+)-([a-z]+)$")


@dataclass(frozen=True)
class RunDir:
    """The folder of one run."""

    path: Path

    @functools.cached_property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def source(self) -> Path:
        return self.path / "source"

    @property
    def inputs(self) -> Path:
        """Folder with the inputs of the library, which a new run copies."""
        return self.path / "inputs"

    def input(self, name: str, origin: str) -> Path:
        """File of an input, given its name and its origin, as in :attr:`rlnb.plugin.Manifest.inputs`."""
        return self.inputs / name / Path(origin).name

    def input_run(self, name: str) -> RunDir:
        """Manifest and source of the run that a policy comes from; other inputs have none."""
        return RunDir(self.inputs / name / "run")

    @property
    def like(self) -> RunDir:
        """Copies of the records of the run that this one repeats."""
        return RunDir(self.path / "like")

    @functools.cached_property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def system(self) -> Path:
        """Folder of the node agents' event files, which hold the load on the run's nodes."""
        return self.logs / SYSTEM

    def event_files(self) -> list[Path]:
        """Return the event files that the library wrote."""
        paths = files_below(self.logs, lambda name: "tfevents" in name, alike=MOST_ALIKE)
        return [path for path in paths if self.system not in path.parents]

    def logged(self) -> dict[str, int]:
        """Return the number of bytes of each event file, by path below the logs."""
        sizes = {}
        for path in self.event_files():
            with contextlib.suppress(OSError, RlnbError), files.open_regular(path) as file:  # NFS is exact once opened
                sizes[str(path.relative_to(self.logs))] = file.seek(0, os.SEEK_END)
        return sizes

    @property
    def exports(self) -> Path:
        return self.path / "exports"

    @property
    def notes(self) -> Path:
        """Folder with one small file for each note, and for each tag added or removed."""
        return self.path / "notes"

    @property
    def media(self) -> Path:
        return self.path / "media"

    def film(self, iteration: int) -> Path:
        """Film of the training, from a learning iteration on."""
        return self.media / f"{FILM}{iteration:06d}.mp4"

    @property
    def view(self) -> Path:
        """Folder of the request for camera frames and of the newest frame; none of its files is kept."""
        return self.path / "view"

    @property
    def wanted(self) -> Path:
        return self.view / "wanted.json"

    @property
    def frame(self) -> Path:
        return self.view / "frame.npz"

    def checkpoints(
        self, glob: str, pattern: str, further: Iterable[Path] = (), *, folders: bool = False
    ) -> list[Path]:
        """Return the checkpoints of the run, oldest iteration first.

        Args:
            glob: Which files below ``logs/`` are checkpoints.
            pattern: Regular expression whose first group is a file's iteration; files that do not match (a "best"
                file) come first.
            further: Checkpoints that are only on another machine.
            folders: Whether a checkpoint is a folder.
        """
        # A file that is being written has a name with a dot; see rlnb.backend.write_whole.
        matches = _matches(self.logs, glob)
        is_kind = Path.is_dir if folders else Path.is_file
        paths = {path for path in matches if not path.name.startswith(".") and is_kind(path)}
        numbers = {path: re.search(pattern, path.name) for path in paths.union(further)}
        return sorted(numbers, key=lambda path: (int(match[1]) if (match := numbers[path]) else -1, path))

    @functools.cached_property
    def jobs_folder(self) -> Path:
        return self.path / JOBS

    def jobs(self) -> list[JobDir]:
        """Return the run's jobs, oldest first."""
        children = entries.children(self.jobs_folder)
        folders = sorted((int(match[1]), child.name) for child in children if (match := _JOB.match(child.name)))
        return [JobDir(self.jobs_folder / name) for _, name in folders]

    def next_job(self, kind: str, records: Callable[[str], Mapping[str, object]] = lambda name: {}) -> JobDir:
        """Create the folder of the next job and return it.

        The folder appears together with its records: if this process is killed or the disk is full, the run stays
        unchanged.

        Args:
            kind: Kind of the job.
            records: ``function(name)`` returns the first records of the job whose folder is ``name``, by file name.
        """
        while True:
            files.make_subfolder(self.jobs_folder)  # fails if the run was deleted meanwhile
            names = (_NUMBER.match(child.name) for child in entries.children(self.jobs_folder))
            number = max((int(match[1]) for match in names if match), default=-1) + 1
            draft, job = JobDir(self.jobs_folder / f".{number}"), JobDir(self.jobs_folder / f"{number}-{kind}")
            try:
                entries.make(draft.path)
            except FileExistsError:  # another kernel is using that number
                continue
            try:
                # Another kernel may have finished a job folder with this number since the scan, for a job of any kind.
                if not any(child.name.startswith(f"{number}-") for child in entries.children(self.jobs_folder)):
                    for name, record in records(job.path.name).items():
                        files.write_once(draft.path / name, record)
                    entries.rename(draft.path, job.path.name)
                    return job
            finally:
                entries.remove_tree(draft.path, ignore_errors=True)


@dataclass(frozen=True)
class JobDir:
    """The folder of one job of a run."""

    path: Path

    @property
    def number(self) -> int:
        return int(self.path.name.split("-", 1)[0])

    @property
    def kind(self) -> str:
        return self.path.name.split("-", 1)[1]

    @functools.cached_property
    def job(self) -> Path:
        return self.path / JOB

    @property
    def command(self) -> Path:
        return self.path / COMMAND

    @property
    def handle(self) -> Path:
        return self.path / HANDLE

    @property
    def submitted(self) -> Path:
        """The job's entry in a cluster's queue."""
        return self.path / "submitted.json"

    @property
    def waits(self) -> Path:
        """Why the job waits. The file exists only as long as it does; see :mod:`rlnb.records.incidents`."""
        return self.path / "waits.json"

    @functools.cached_property
    def started(self) -> Path:
        return self.path / "started.json"

    @functools.cached_property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def last_points(self) -> Path:
        """The last values of the training's metrics; see :mod:`rlnb.records.last_points`."""
        return self.path / LAST_POINTS

    @property
    def saves(self) -> Path:
        """The checkpoints that the training has written, one line for each."""
        return self.path / "saves.jsonl"

    def flight(self, rank: int) -> Path:
        """Folder of the record of the steps before a value that was not finite."""
        return self.path / f"flight{rank}"

    def shortages(self, rank: int) -> Path:
        """Limits of the physics solver that envs of a rank have exceeded."""
        return self.path / f"shortages{rank}.json"

    @property
    def flight_request(self) -> Path:
        """Text of the newest alert, for which the flight recorder of each rank writes a record."""
        return self.path / "flight.request"

    @property
    def alerts(self) -> Path:
        """Folder of the training's alerts."""
        return self.path / "alerts"

    @property
    def cause(self) -> Path:
        """Cause of an interruption, from the process that owns the cluster; it replaces the error of the result."""
        return self.path / "cause.json"

    @property
    def deadline(self) -> Path:
        """Time at which the agents end the job, if it differs from the one that they were started with."""
        return self.path / "deadline.json"

    @property
    def cancel(self) -> Path:
        """Marker file; it exists once the job has been cancelled."""
        return self.path / "cancel.json"

    @property
    def stop(self) -> Path:
        """Result that the worker writes once it has saved a checkpoint; the agent's request to end early."""
        return self.path / "stop.json"

    @property
    def successor(self) -> Path:
        """Name of the training that continues this one. The first process to write it is the one that continues."""
        return self.path / "successor.json"

    @property
    def key(self) -> Path:
        """Certificate and key of a job that serves warm simulators. Only its user can read the file."""
        return self.path / "simulator.pem"

    @property
    def address(self) -> Path:
        """Address at which such a job listens."""
        return self.path / "address.json"

    @property
    def closed(self) -> Path:
        """Exists once the job's host, which lives on for other jobs, has decided not to continue this one."""
        return self.path / "closed.json"

    def successor_name(self) -> str:
        """Return the folder name of the training that continues this one; an empty string if there is none."""
        return str((files.read_json(self.successor, files.RECORD_BYTES) or {}).get("job", ""))

    def sibling(self, name: str) -> JobDir | None:
        """Return the job of the same run with a folder name; None if there is none."""
        job = JobDir(self.path.parent / name)
        return job if _JOB.fullmatch(name) and job.path.is_dir() else None

    def counts(self) -> bool:
        """Return whether the job belongs to its run.

        Two processes may resume a run at the same moment, and each makes the folder of a job. Only the job that the
        earlier training names as its successor is started. The other folder is removed, unless its process is killed.
        """
        if files.there(self.handle) or files.there(self.running()):
            return True
        try:
            earlier = self.sibling(str((files.read_json(self.job, files.RECORD_BYTES) or {}).get("after") or ""))
            return earlier is None or earlier.successor_name() == self.path.name
        except RlnbError:  # a damaged record is no reason to hide a job
            return True

    @property
    def reserve(self) -> Path:
        """Space reserved for the result, so that it can be written to a full disk."""
        return self.path / ".reserve"

    @property
    def evaluation(self) -> Path:
        return self.path / "evaluation.json"

    @property
    def rollout(self) -> Path:
        """Observations and actions recorded by an evaluation."""
        return self.path / "rollout.npz"

    def log(self, node: int = 0) -> Path:
        return self.path / f"node{node}.log"

    def alive(self, node: int = 0) -> Path:
        return self.path / f"node{node}.alive"

    def beats(self) -> list[Path]:
        """Return the heartbeat files of the nodes and of the process that owns their cluster, as far as they exist."""
        return [child for child in entries.children(self.path) if child.suffix == ".alive"]

    @property
    def host_alive(self) -> Path:
        """Heartbeat of the process that owns the cluster, if there is one."""
        return self.path / "host.alive"

    def running(self, node: int = 0) -> Path:
        """Exists once the agent has left the queue and started its worker."""
        return self.path / f"node{node}.running"

    def silent(self, node: int = 0) -> Path:
        """Exists while the starting worker of a node has printed only its thread stacks for minutes."""
        return self.path / f"node{node}.silent"

    def silent_logs(self) -> list[Path]:
        """Return the log of every node whose worker is starting and silent."""
        names = (re.fullmatch(r"node(\d+)\.silent", child.name) for child in entries.children(self.path))
        return [self.log(node) for node in sorted(int(match[1]) for match in names if match)]

    def refusal(self, name: str) -> Path:
        """Why a pod does not take part in the job, by the name of its node (``node1``) or of its host."""
        return self.path / f"{name}.refusal"

    def refusals(self) -> list[Path]:
        """Return the records of the pods that do not take part in the job."""
        return sorted(child for child in entries.children(self.path) if child.suffix == ".refusal")

    def hosts(self) -> tuple[str, ...]:
        """Return the hosts of the nodes that have started, in node order, up to the first that has not."""
        hosts: list[str] = []
        while (claim := files.read_json(self.running(len(hosts)), files.RECORD_BYTES)) is not None:
            hosts.append(str(claim.get("host", "")))
        return tuple(hosts)

    def logs(self) -> list[Path]:
        """Return the logs of the nodes, in order, and of the process that owns their cluster, as far as they exist."""
        children = entries.children(self.path)
        logs = {int(m[1]): child for child in children if (m := re.fullmatch(r"node(\d+)\.log", child.name))}
        host = self.path / "host.log"
        return [*(logs[node] for node in sorted(logs)), *([host] if host.exists() else [])]


def run_dir_of(job_dir: Path) -> RunDir:
    """Return the folder of the run that a job folder belongs to."""
    return RunDir(job_dir.parent.parent)


def is_match(path: str, glob: str) -> bool:
    """Return whether a path below the logs, with ``/`` between its parts, matches a checkpoint's pattern."""
    name = glob.removeprefix("**/")
    if "/" in name:
        return PurePosixPath(path).match(name)
    return fnmatch.fnmatchcase(path.rpartition("/")[2], name) and (name != glob or "/" not in path)


def _matches(folder: Path, glob: str) -> Iterable[Path]:
    """Return what matches a pattern below a folder, such as ``"nn/*.pth"``, or files at any depth, ``"**/*.pt"``."""
    name = glob.removeprefix("**/")
    if name != glob and "/" not in name:
        return files_below(folder, functools.partial(fnmatch.fnmatchcase, pat=name))
    found = [below for below, _, _ in walk(folder)] if name != glob else [folder]
    for part in name.split("/"):
        found = [path for below in found for path in entries.matching(below, part)]
    return found
