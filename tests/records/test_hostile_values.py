"""Hostile values in every field of every record of a run: none reaches a command, and none a page as markup."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hostile import MARKUP, VALUES, fields, put

import rlnb
from rlnb.launchers import Resources
from rlnb.records.incidents import Waits
from rlnb.records.notes import Note
from rlnb.records.record import QueueEntry
from rlnb.reports import sections
from rlnb.spec import Command, Job, Manifest, Result, Started
from rlnb.storage.serial import to_json

OF_END = ("result.json", "cause.json")
PROGRAMS = (
    "scancel",
    "squeue",
    "sacct",
    "scontrol",
    "sbatch",
    "sinfo",
    "srun",
    "ssh",
    "kubectl",
    "git",
    "ffmpeg",
    "sh",
)


HANDLES: dict[str, dict[str, str]] = {
    "local": {},
    "slurm": {},
    "slurm, job in the queue": {"slurm_job": "17"},
    "slurm, array": {"array": "/x/arrays/20260101-000000-abcd"},
}
"""What handles of jobs hold beside their host, by launcher and kind of job."""


def records(kind: str) -> dict[str, dict[str, Any]]:
    """Return the records of a lost run by their paths below its folder, with a value in every field."""
    manifest = Manifest(
        run_id="run",
        created="2026-01-01T00:00:00+00:00",
        task=rlnb.Task(id="Echo"),
        library="echo",
        resources=Resources(),
        launcher=kind.partition(",")[0],
        tags=("mine",),
    )
    started = Started(
        hosts=("gpu1",), devices=("cpu",), world_size=1, num_envs=4, horizon=8, frames_per_step=32.0, max_iterations=3
    )
    handle = {"host": socket.gethostname(), "pid": os.getpid(), "created_s": 1.0}
    job = "jobs/0-train/"
    return {
        "manifest.json": to_json(manifest),
        f"{job}job.json": to_json(Job(kind="train")),
        f"{job}command.json": to_json(Command(argv=("python",))),
        f"{job}handle.json": {**handle, **HANDLES[kind]},
        f"{job}submitted.json": to_json(QueueEntry(queue="slurm", jobs=("17",), dashboard=1)),
        f"{job}started.json": to_json(started),
        f"{job}result.json": to_json(Result(outcome="failed", error="no", ended="2026-01-01T00:00:00+00:00")),
        f"{job}waits.json": to_json(Waits(what="x", since="2026-01-01T00:00:00+00:00")),
        f"{job}cause.json": {"error": "x"},
        "remote.json": {"place": "anna@gpu7", "files": {"logs/a.pt": 1}},
        "notes/0.json": to_json(Note(kind="note", text="x", time="2026-01-01T00:00:00+00:00", author="anna")),
        "notes/1.json": to_json(Note(kind="tag", text="x", time="2026-01-01T00:00:00+00:00")),
    }


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file to which the programs append their arguments. They are stand-ins, first on PATH."""
    programs, file = tmp_path / "programs", tmp_path / "calls"
    programs.mkdir()
    file.touch()
    for name in PROGRAMS:
        (programs / name).write_text(f'#!/bin/bash\nprintf "%s\\0" {name} "$@" >> {file}\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return file


def write(run: Path, kept: Mapping[str, Mapping[str, Any]], *, without: Sequence[str]) -> None:
    shutil.rmtree(run, ignore_errors=True)
    for name, record in kept.items():
        if not name.endswith(tuple(without)):
            path = run / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record))
            os.utime(path, (1.0, 1.0))


PAGES: tuple[Callable[[rlnb.Run], object], ...] = (
    lambda run: run._repr_html_(),
    lambda run: run.goodput()._repr_html_(),
    lambda run: run.lineage()._repr_html_(),
    lambda run: "".join(part([run]) for part in (sections.summary, sections.parameters, sections.provenance)),
)
USES: tuple[Callable[[rlnb.Run], object], ...] = (
    lambda run: run.state,
    lambda run: run.reason,
    lambda run: run.waits,
    lambda run: run.logs(),
    lambda run: run.command,
    lambda run: run.progress,
    lambda run: run.alerts,
    lambda run: run.fetch(),
    lambda run: run.cancel(),
    *PAGES,
)


@dataclasses.dataclass(frozen=True)
class Turn:
    """One field of one record, with one value."""

    record: str
    field: tuple[str | int, ...]
    value: object
    ended: bool
    """Whether the run has a result. A run without one asks its queue, and can be cancelled."""


def turns(kind: str) -> list[Turn]:
    """Return each field of each record with each value. Runs with a result matter for their pages alone."""
    return [
        Turn(name, path, value, ended)
        for name, record in records(kind).items()
        for path in fields(record)
        for value in VALUES
        for ended in (False, True)
        if not ended or MARKUP.search(str(value)) or name.endswith(OF_END)
        if ended or not name.endswith(OF_END)
    ]


def take(turn: Turn, run_dir: Path, kept: Mapping[str, Mapping[str, Any]]) -> None:
    """Use a run with a hostile value in every way, and check its page."""
    odd = {**kept, turn.record: put(dict(kept[turn.record]), turn.field, turn.value)}
    write(run_dir, odd, without=() if turn.ended else OF_END)
    with contextlib.suppress(rlnb.RlnbError):
        run = rlnb.get_run(str(run_dir))
        for function in USES:
            with contextlib.suppress(rlnb.RlnbError):
                shown = function(run)
                assert function not in PAGES or MARKUP.search(str(shown)) is None, turn
    assert MARKUP.search(rlnb.runs()._repr_html_()) is None, turn


def reached(calls: Path) -> list[str]:
    """Return the hostile values that are anywhere in the arguments of a program, and forget these arguments."""
    arguments = calls.read_bytes().decode(errors="replace")
    calls.write_text("")
    return [text for text in map(str, VALUES) if text in arguments]


@pytest.fixture
def run_dir(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a run, in memory if possible: it is written and removed a thousand times."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else root) as folder:
        monkeypatch.setattr(rlnb.options, "root", Path(folder))
        yield Path(folder, "runs", "first")


def names_a_job(turn: Turn) -> bool:
    """Return whether a field is one from which a launcher makes the commands of its queue."""
    return not turn.ended and (turn.record.endswith("submitted.json") or turn.field[0] in ("slurm_job", "array"))


def in_array(run_dir: Path, number: str) -> None:
    """Write the array of a job, with the id that the queue gave it."""
    folder = run_dir.parents[1] / "arrays" / Path(HANDLES["slurm, array"]["array"]).name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "1.jobs").write_text(f"{run_dir}/jobs/0-train\n")
    (folder / "1.id").write_text(number)


@pytest.mark.parametrize(
    "kind", ["slurm", "slurm, array", pytest.param("slurm, job in the queue", marks=pytest.mark.slow)]
)
def test_what_names_a_job_of_a_queue_is_no_other_argument(run_dir: Path, calls: Path, kind: str) -> None:
    kept = records(kind)
    unchanged = Turn("jobs/0-train/submitted.json", ("jobs",), "17", ended=False)
    in_array(run_dir, "17")
    take(unchanged, run_dir, kept)
    assert "\x0017\0" in calls.read_text(), "the queue gets the id of a job"
    for turn in filter(names_a_job, turns(kind)):
        take(turn, run_dir, kept)
        assert reached(calls) == [], turn
    for value in map(str, VALUES) if "array" in kind else ():
        in_array(run_dir, value)
        take(unchanged, run_dir, kept)
        assert reached(calls) == [], value


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["slurm", "local"])
def test_a_value_of_a_record_is_neither_an_argument_nor_markup(run_dir: Path, calls: Path, kind: str) -> None:
    """What is recorded of a training is read alike with every launcher."""
    kept = records(kind)
    for turn in turns(kind):
        if kind == "slurm" or not turn.record.endswith(("manifest.json", "started.json", "result.json")):
            take(turn, run_dir, kept)
            assert reached(calls) == [], turn


def test_the_records_of_this_test_have_every_field_of_theirs() -> None:
    """A new field of a record takes part by itself, since its default is written too."""
    kept = records("slurm")
    assert set(kept["manifest.json"]) == {field.name for field in dataclasses.fields(Manifest)}
    assert set(kept["jobs/0-train/job.json"]) == {field.name for field in dataclasses.fields(Job)}
    assert set(kept["jobs/0-train/result.json"]) == {field.name for field in dataclasses.fields(Result)}
    assert set(kept["jobs/0-train/started.json"]) == {field.name for field in dataclasses.fields(Started)}
