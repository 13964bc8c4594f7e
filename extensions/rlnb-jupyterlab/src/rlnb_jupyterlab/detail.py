"""A run as its tab shows it; the names of the fields are those of ``ts/server/protocol.ts``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import rlnb
from rlnb_jupyterlab.code import code_of
from rlnb_jupyterlab.opening import opened, walk
from rlnb_jupyterlab.rows import MOST_ALERTS, Row, row, text

MOST_FILES = 2000
MOST_NOTES = 100
MOST_DETAIL = 20_000
"""Maximum characters of a fact in the overview, such as a traceback."""
MOST_EVALUATIONS = 8 << 20
"""Maximum size of all evaluations of a run that a tab shows, in bytes; 80,000 episodes."""
MOST_LINES = 5000
"""Maximum number of lines of the difference between the sources of two runs."""
MOST_FOLDERS = 1000
"""Maximum number of folders whose files a tab lists."""
MOST_VALUE = 500
"""Maximum characters of a config value."""
OURS = {"jobs", "notes", "view"}
"""Folders of a run's records, which the tab does not list as files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogFile:
    """A log of a job."""

    name: str
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class JobDetail:
    """A job of a run."""

    number: int
    kind: str
    state: str
    error: str
    logs: Sequence[LogFile]


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointDetail:
    """A checkpoint of a run."""

    name: str
    iteration: float | None
    bytes: int
    abandoned: bool
    """Whether the run has trained its iterations again, from an older checkpoint."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationDetail:
    """An evaluation of a run."""

    title: str
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFile:
    """A file of a run."""

    path: str
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Detail:
    """Everything that a tab shows of a run except its curves, logs and pictures."""

    row: Row
    overview: Sequence[tuple[str, str]]
    jobs: Sequence[JobDetail]
    checkpoints: Sequence[CheckpointDetail]
    evaluations: Sequence[EvaluationDetail]
    files: Sequence[RunFile]
    config: Mapping[str, str]
    command: str
    notes: Sequence[str]
    tags: Sequence[str]
    live_cameras: bool
    code: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The values in which runs differ: a column for each run, a row for each name."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    sources: Sequence[Sequence[str]]
    """How the source of each further run's task differs from that of the first, as lines of a unified diff."""


def detail(run: rlnb.Run, key: str) -> Detail:
    """Return a run as its tab shows it."""
    return Detail(
        row=row(run, key),
        overview=[(name, value[:MOST_DETAIL]) for name, value in _overview(run) if value],
        jobs=[_job(job) for job in run.jobs],
        checkpoints=list(_checkpoints(run)),
        evaluations=list(_evaluations(run)),
        files=[RunFile(path=str(path.relative_to(run.path)), bytes=_size(path)) for path in files(run)],
        config={_short(name): _short(value) for name, value in itertools.islice(run.config.items(), MOST_FILES)},
        command=text(run.command),
        notes=[text(note.text) for note in run.notes][-MOST_NOTES:],
        tags=[text(tag) for tag in run.tags][:MOST_NOTES],
        live_cameras=run.state == "running" and not run.manifest.script,
        code=code_of(run.manifest),
    )


def files(run: rlnb.Run) -> list[Path]:
    """Return the files that a page may open: all in the run's folder except records, hidden files and links."""
    root, paths = run.path.resolve(), []
    for folder, below, names in itertools.islice(walk(root), MOST_FOLDERS):
        below[:] = sorted(name for name in below if not name.startswith(".") and not (folder == root and name in OURS))
        for name in sorted(names):
            path = folder / name
            if not name.startswith(".") and not path.is_symlink() and path.is_file() and name == text(name):
                paths.append(run.path / path.relative_to(root))
        if len(paths) >= MOST_FILES:
            break
    return paths[:MOST_FILES]


def open_offered(run: rlnb.Run, path: Path) -> BinaryIO | None:
    """Open a file for a page, by the rules of :func:`files` but without the limit on their number; else return None."""
    inside = path.relative_to(run.path).parts if path.is_relative_to(run.path) else ()
    hidden = any(part.startswith(".") for part in inside)
    return opened(path, run.path) if inside and not hidden and inside[0] not in OURS else None


def difference(runs: list[rlnb.Run]) -> Difference:
    """Return the values in which runs differ."""
    table = rlnb.Runs(runs).diff()
    rows = [[str(name), *(_short(value) for value in values)] for name, *values in table.itertuples()]
    changes = (run.source_diff(runs[0]).lines[:MOST_LINES] for run in runs[1:])
    sources = [[text(line) for line in lines] for lines in changes if lines]
    return Difference(columns=[run.title for run in runs], rows=rows, sources=sources)


def _overview(run: rlnb.Run) -> Iterator[tuple[str, str]]:
    started, result = run.started, run.result
    *rows, folder = run.overview()
    alerts = [row for row in rows if row[0] == "alert"][-MOST_ALERTS:]
    yield from (row for row in rows if row[0] != "alert" or row in alerts)
    yield "detail", result.detail if result else ""
    for symptom in run.diagnose().symptoms:
        yield "fix", f"{symptom.name}: {symptom.what} {symptom.fix}"
    yield "created", run.created.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    yield "launcher", run.manifest.launcher
    yield "queue's job", ", ".join(job.submission.jobs) if (job := run.record.training) else ""
    if started:
        ranks = f" over {started.world_size} ranks" if started.world_size > 1 else ""
        yield "hosts", ", ".join(dict.fromkeys(started.hosts))
        yield "devices", ", ".join(dict.fromkeys(started.devices))
        yield "envs", f"{started.num_envs}{ranks}"
        yield "asset root", started.asset_root
        yield "versions", ", ".join(f"{name} {version}" for name, version in sorted(started.versions.items()))
    yield folder


def _job(job: Any) -> JobDetail:
    state, result = job.state(), job.result
    return JobDetail(
        number=job.folder.number,
        kind=job.kind,
        state=state,
        error=text(result.error) if result and result.error != state else "",
        logs=[LogFile(name=path.name, bytes=_size(path)) for path in job.folder.logs()],
    )


def _checkpoints(run: rlnb.Run) -> Iterator[CheckpointDetail]:
    checkpoints = run.checkpoints
    for path, iteration in zip(checkpoints, checkpoints.iterations, strict=True):
        abandoned = path in checkpoints.abandoned
        yield CheckpointDetail(name=path.name, iteration=iteration, bytes=checkpoints.size(path), abandoned=abandoned)


def _evaluations(run: rlnb.Run) -> Iterator[EvaluationDetail]:
    size = sum(_size(job.folder.evaluation) for job in run.jobs)
    if size > MOST_EVALUATIONS:
        yield EvaluationDetail(title=f"{size >> 20} MiB, too large for this tab", rows=[["run.evaluations", "", ""]])
        return
    for evaluation in run.evaluations:
        rows = [[str(cell) for cell in cells] for cells in evaluation.rows()]
        yield EvaluationDetail(title=text(evaluation.checkpoint or evaluation.title), rows=rows)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # a checkpoint that was just deleted in favour of a newer one
        return 0


def _short(value: object) -> str:
    whole = str(value)
    return text(whole) if len(whole) <= MOST_VALUE else f"{text(whole[:MOST_VALUE])}…"
