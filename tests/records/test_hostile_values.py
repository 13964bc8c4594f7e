"""Hostile values in every field of every record of a run: none reaches a command, and none a page as markup."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.records.notes import Note
from rlnb.records.submission import Submission
from rlnb.records.waits import Waits
from rlnb.spec import Command, Job, Manifest, Result, Started
from rlnb.storage.serial import to_json

MARKUP = "<script>alert(1)</script>"
VALUES = (
    "--user=x",
    "-oProxyCommand=id",
    "../../x",
    "$(id)",
    "`id`;id",
    "a\nb",
    "a\0b",
    MARKUP,
    "<img src=x onerror=alert(1)>",
    "\x1b]0;x\x07\x1b[31m",
    -1,
    2**70,
)
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
MARKS = re.compile("<script>alert|<img src=x", re.IGNORECASE)


def records(launcher: str) -> dict[str, dict[str, Any]]:
    """Return the records of a lost run by their paths below its folder, with a value in every field."""
    manifest = Manifest(
        run_id="run",
        created="2026-01-01T00:00:00+00:00",
        task=rlnb.Task(id="Echo"),
        library="echo",
        resources=rlnb.Resources(),
        launcher=launcher,
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
        f"{job}handle.json": {**handle, "slurm_job": "17", "array": "/x/arrays/20260101-000000-abcd"},
        f"{job}submitted.json": to_json(Submission(queue="slurm", jobs=("17",), dashboard=1)),
        f"{job}started.json": to_json(started),
        f"{job}result.json": to_json(Result(outcome="failed", error="no", ended="2026-01-01T00:00:00+00:00")),
        f"{job}waits.json": to_json(Waits(what="x", since="2026-01-01T00:00:00+00:00")),
        f"{job}cause.json": {"error": "x"},
        "remote.json": {"place": "anna@gpu7", "files": {"logs/a.pt": 1}},
        "notes/0.json": to_json(Note(kind="note", text="x", time="2026-01-01T00:00:00+00:00", author="anna")),
        "notes/1.json": to_json(Note(kind="tag", text="x", time="2026-01-01T00:00:00+00:00")),
    }


def fields(record: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each field of a record, also of those that are in a field."""
    for name, value in record.items():
        yield (*path, name)
        if isinstance(value, Mapping):
            yield from fields(value, (*path, name))


def put(record: dict[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return a record with another value in a field, as a list or a mapping where the field has one."""
    first, *rest = path
    old = record.get(first)
    if rest:
        return {**record, first: put(dict(old or {}), tuple(rest), value)}
    return {**record, first: [value] if isinstance(old, list) else {"a": value} if isinstance(old, dict) else value}


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


PAGES: tuple[Callable[[rlnb.Run], object], ...] = (lambda run: run._repr_html_(),)
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


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["slurm", "local"])
def test_a_value_of_a_record_is_neither_an_argument_nor_markup(root: Path, calls: Path, launcher: str) -> None:
    """One field of each record has a value at a time: of the manifest in one run, of the other records in another."""
    kept = records(launcher)
    turns = {name: list(fields(record)) for name, record in kept.items()}
    for number in range(max(map(len, turns.values()))):
        value = VALUES[number % len(VALUES)]
        odd = {name: put(kept[name], paths[number % len(paths)], value) for name, paths in turns.items()}
        ended = ("result.json", "cause.json") if number % 2 else ()
        write(root / "runs" / "first", {**kept, "manifest.json": odd["manifest.json"]}, without=ended)
        write(root / "runs" / "second", {**odd, "manifest.json": kept["manifest.json"]}, without=ended)
        for name in ("first", "second"):
            with contextlib.suppress(rlnb.RlnbError):
                run = rlnb.get_run(str(root / "runs" / name))
                for function in USES:
                    with contextlib.suppress(rlnb.RlnbError):
                        text = str(function(run)) if function in PAGES else function(run)
                        assert function not in PAGES or MARKS.search(str(text)) is None, (number, name)
        assert MARKS.search(rlnb.runs()._repr_html_()) is None, number
    arguments = calls.read_bytes().decode().split("\0")
    assert [text for text in VALUES if isinstance(text, str) and text in arguments] == []


def test_the_records_of_this_test_have_every_field_of_theirs() -> None:
    """A new field of a record takes part by itself, since its default is written too."""
    kept = records("slurm")
    assert set(kept["manifest.json"]) == {field.name for field in dataclasses.fields(Manifest)}
    assert set(kept["jobs/0-train/job.json"]) == {field.name for field in dataclasses.fields(Job)}
    assert set(kept["jobs/0-train/result.json"]) == {field.name for field in dataclasses.fields(Result)}
    assert set(kept["jobs/0-train/started.json"]) == {field.name for field in dataclasses.fields(Started)}
