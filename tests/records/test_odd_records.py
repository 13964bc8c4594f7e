"""An odd or unreadable record of one run never hides the other runs."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from typer.testing import CliRunner

import rlnb
from rlnb.cli import app
from rlnb.plugin import Command, Manifest
from rlnb.records import notes
from rlnb.records.layout import RunDir
from rlnb.records.record import RunRecord
from rlnb.settings import options
from rlnb.spec import Result, Started
from rlnb.storage import files
from rlnb.storage.serial import from_json, to_json

GOOD = ["c-good", "a-good"]
ODD = "b-odd"
ORDINARY_UID, SPARSE_BYTES = 65534, 20 * 2**30
MEMORY_BYTES = 2 * 2**30
"""Memory in bytes that a test may allocate, so that an endless file raises an error instead of filling memory."""
MANIFEST, STARTED, RESULT, HANDLE = (
    "manifest.json",
    "jobs/0-train/started.json",
    "jobs/0-train/result.json",
    "jobs/0-train/handle.json",
)
NOTE, EVENTS = "notes/0.json", "logs/events.out.tfevents.1.odd"

Change = Callable[[RunDir], None]

pytestmark = pytest.mark.timeout(30)


def lay_out(root: Path, name: str, number: int) -> RunDir:
    """Lay out a completed run with a curve, two checkpoints and a note."""
    run = RunDir(root / "runs" / name)
    job = run.path / "jobs" / "0-train"
    for folder in (job, run.logs, run.notes):
        folder.mkdir(parents=True)
    created = f"2026-01-0{number}T00:00:00+00:00"
    manifest = Manifest(run_id=name, created=created, task=rlnb.Task(id="Echo"), library="echo")
    started = Started(
        hosts=("here",), devices=("cpu",), world_size=1, num_envs=4, horizon=16, frames_per_step=64.0, max_iterations=4
    )
    files.write_once(run.manifest, to_json(manifest))
    files.write_once(job / "command.json", to_json(Command(argv=("true",))))
    files.write_once(job / "started.json", to_json(started))
    files.write_once(job / "result.json", to_json(Result(outcome="completed")))
    files.write_once(run.notes / "1.json", {"kind": "tag", "text": "seen", "time": created})
    for step in (0, 3):
        (run.logs / f"model_{step}.json").write_text("{}")
    writer = EventFileWriter(str(run.logs))
    for step in range(4):
        values = [Summary.Value(tag="Train/mean_reward", simple_value=float(step))]
        writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
    writer.close()
    return run


def lay_out_three(root: Path) -> RunDir:
    """Lay out two good runs and, between them, the run that a test damages."""
    lay_out(root, GOOD[1], 1)
    odd = lay_out(root, ODD, 2)
    lay_out(root, GOOD[0], 3)
    return odd


@pytest.fixture
def odd(root: Path) -> RunDir:
    return lay_out_three(root)


@pytest.fixture
def open_odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDir]:
    """Like ``odd``, in a root that every user can enter, unlike pytest's folders."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o755)
        monkeypatch.setattr(options, "root", Path(made) / "rlnb-runs")
        yield lay_out_three(Path(made) / "rlnb-runs")
        for folder, _, _ in os.walk(made):
            os.chmod(folder, 0o755)


@contextlib.contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Become an ordinary user, since root may read every file."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(ORDINARY_UID)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


# -- ways to damage a run


def fifo(name: str) -> Change:
    def change(run: RunDir) -> None:
        (run.path / name).unlink(missing_ok=True)
        os.mkfifo(run.path / name)

    return change


def endless(name: str) -> Change:
    def change(run: RunDir) -> None:
        (run.path / name).unlink(missing_ok=True)
        (run.path / name).symlink_to("/dev/zero")

    return change


def sparse(name: str) -> Change:
    def change(run: RunDir) -> None:
        with open(run.path / name, "wb") as file:
            file.truncate(SPARSE_BYTES)

    return change


def fields(name: str, **values: Any) -> Change:
    def change(run: RunDir) -> None:
        path = run.path / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return change


def handle(text: str) -> Change:
    def change(run: RunDir) -> None:
        (run.path / RESULT).unlink()
        (run.path / HANDLE).write_text(text)

    return change


def logs_lead_to(folder: str) -> Change:
    def change(run: RunDir) -> None:
        shutil.rmtree(run.logs)
        run.logs.symlink_to(folder)

    return change


def many_folders(run: RunDir) -> None:
    for number in range(3000):
        (run.logs / "many" / f"{number}").mkdir(parents=True)


def text(name: str, content: str) -> Change:
    def change(run: RunDir) -> None:
        (run.path / name).parent.mkdir(exist_ok=True)
        (run.path / name).write_text(content)

    return change


def jobs_is_a_file(run: RunDir) -> None:
    shutil.rmtree(run.jobs_folder)
    run.jobs_folder.touch()


def task_of_a_newer_rlnb(run: RunDir) -> None:
    fields(MANIFEST, task={"id": "Echo", "curriculum": ["a"]})(run)


FILES: dict[str, tuple[Change, str | None]] = {
    "manifest fifo": (fifo(MANIFEST), None),
    "result fifo": (fifo(RESULT), "lost"),
    "started fifo": (fifo(STARTED), "completed"),
    "note fifo": (fifo(NOTE), "completed"),
    "event file fifo": (fifo(EVENTS), "completed"),
    "manifest endless": (endless(MANIFEST), None),
    "result endless": (endless(RESULT), "lost"),
    "note endless": (endless(NOTE), "completed"),
    "event file endless": (endless(EVENTS), "completed"),
    "manifest sparse": (sparse(MANIFEST), None),
    "result sparse": (sparse(RESULT), "lost"),
    "note sparse": (sparse(NOTE), "completed"),
    "event file sparse": (sparse(EVENTS), "completed"),
    "event file that leads nowhere": (lambda run: (run.path / EVENTS).symlink_to("nowhere"), "completed"),
    "jobs is a file": (jobs_is_a_file, "created"),
    "job fifo": (fifo("jobs/0-train/job.json"), "completed"),
    "command fifo": (fifo("jobs/0-train/command.json"), "completed"),
    "log fifo": (fifo("jobs/0-train/node0.log"), "completed"),
    "checkpoint fifo": (fifo("logs/model_9.json"), "completed"),
    "logs lead out of the run": (logs_lead_to("/"), "completed"),
    "logs lead to themselves": (logs_lead_to("logs"), "completed"),
    "many folders": (many_folders, "completed"),
    "evaluation fifo": (fifo("jobs/0-train/evaluation.json"), "completed"),
}
VALUES: dict[str, tuple[Change, str | None]] = {
    "created is a number": (fields(MANIFEST, created=5), None),
    "created is no time": (fields(MANIFEST, created="yesterday"), None),
    "task is text": (fields(MANIFEST, task="Echo"), None),
    "library is a list": (fields(MANIFEST, library=["echo"]), None),
    "tags hold a number": (fields(MANIFEST, tags=["a", 5]), "completed"),
    "tags hold a list": (fields(MANIFEST, tags=["a", []]), None),
    "schema is text": (fields(MANIFEST, schema="new"), None),
    "manifest of a newer rlnb": (fields(MANIFEST, cluster={"a": 1}), "completed"),
    "task of a newer rlnb": (task_of_a_newer_rlnb, "completed"),
    "handle with a negative pid": (
        handle(json.dumps({"host": os.uname().nodename, "pid": -5, "created_s": 1.0})),
        "running",
    ),
    "handle with a pid only": (handle('{"pid": -5}'), "running"),
    "handle is null": (handle("null"), "running"),
    "values are text": (fields(RESULT, values="x"), "lost"),
    "values are text of a failure": (fields(RESULT, outcome="failed", values="x"), "lost"),
    "outcome is none": (fields(RESULT, outcome="great"), "lost"),
    "horizon is 0": (fields(STARTED, horizon=0), "completed"),
    "horizon is NaN": (fields(STARTED, horizon=float("nan")), "completed"),
    "horizon is text": (fields(STARTED, horizon="16"), "completed"),
    "horizon is huge": (fields(STARTED, horizon=10**400), "completed"),
    "no envs": (fields(STARTED, num_envs=0), "completed"),
    "frames are NaN": (fields(STARTED, frames_per_step=float("nan")), "completed"),
    "frames are huge": (fields(STARTED, frames_per_step=1e308), "completed"),
    "max_iterations is text": (fields(STARTED, max_iterations="4"), "completed"),
    "tags are many": (fields(MANIFEST, tags=["tag"] * 300_000), None),
    "detail is long": (fields(RESULT, outcome="failed", detail="x" * (2 << 20)), "lost"),
    "note is long": (text(NOTE, json.dumps({"kind": "note", "text": "x" * (2 << 20), "time": ""})), "completed"),
    "devices are text": (fields(STARTED, devices="cpu"), "completed"),
}


def lists(odd_state: str | None) -> None:
    """Check that every list has the good runs in full, and the odd run if it has a state."""
    wanted = {id: "completed" for id in GOOD} | ({ODD: odd_state} if odd_state else {})
    runs = rlnb.runs()
    assert {run.id: run.state for run in runs} == wanted
    texts = {"lost": "lost: its process ended without a result"}
    shown = {f"Run({id!r}, task='Echo', library='echo', {texts.get(state, state)})" for id, state in wanted.items()}
    assert set(map(repr, runs)) == shown
    assert [run.id for run in rlnb.runs(state="completed") if run.id != ODD] == GOOD
    table = runs.table("reward").set_index("id")
    assert dict(table.state) == wanted
    assert list(table.loc[GOOD].iteration) == ["4/4"] * 2
    assert list(table.loc[GOOD].reward) == [3.0] * 2
    assert all(id in runs._repr_html_() for id in wanted)
    assert [run.id for run in runs.sorted("reward") if run.id != ODD] == GOOD
    assert [run.id for run in rlnb.runs(tag="seen") if run.id != ODD] == GOOD
    assert {id for id, _, _ in runs.prune().items} >= set(GOOD)
    assert {id for id, _, _ in runs.prune(whole=True).items} >= set(GOOD)
    assert rlnb.get_run("c-go").id == "c-good"
    printed = CliRunner().invoke(app.app, ["runs", "--json"])
    assert printed.exit_code == 0, printed.output
    assert {row["id"]: row["state"] for row in json.loads(printed.stdout)} == wanted


@pytest.mark.parametrize("name", FILES)
def test_a_record_that_is_not_a_regular_file_hides_no_other_run(odd: RunDir, name: str) -> None:
    change, state = FILES[name]
    change(odd)
    lists(state)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_rlnb_never_writes_hides_no_other_run(odd: RunDir, name: str) -> None:
    change, state = VALUES[name]
    change(odd)
    lists(state)


@pytest.mark.parametrize(
    ("folder", "state"),
    [(".", None), ("jobs", "created"), ("jobs/0-train", "lost"), ("logs", "completed"), ("notes", "completed")],
)
def test_a_folder_of_another_user_hides_no_other_run(open_odd: RunDir, folder: str, state: str | None) -> None:
    lists("completed")
    (open_odd.path / folder).chmod(0)
    with as_ordinary_user():
        lists(state)


@pytest.mark.parametrize("name", [name for name, (_, state) in (FILES | VALUES).items() if state is None])
def test_a_run_that_is_not_listed_is_logged_once_with_its_file(
    odd: RunDir, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    (FILES | VALUES)[name][0](odd)
    rlnb.runs()
    (line,) = caplog.messages
    assert line.startswith(f"{odd.path} is not listed. ")
    assert "manifest" in line
    assert line.endswith((" Move it away.", " Correct it."))


def test_a_folder_that_is_not_listed_is_logged_once_with_its_file(
    open_odd: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    open_odd.path.chmod(0)
    with as_ordinary_user():
        rlnb.runs()
    (line,) = caplog.messages
    assert f"{open_odd.manifest} cannot be read: Permission denied. Make it readable" in line


def test_each_odd_run_is_logged_in_one_line(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3):
        fields(MANIFEST, created=5)(lay_out(root, f"odd-{number}", 1))
    assert len(rlnb.runs()) == 0
    assert [line.split(" ")[0].split("/")[-1] for line in caplog.messages] == ["odd-0", "odd-1", "odd-2"]


@pytest.mark.parametrize("name", ["started fifo", "note fifo", "event file fifo", "horizon is 0", "jobs is a file"])
def test_a_damaged_part_is_logged_once_however_often_it_is_read(
    odd: RunDir, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    (FILES | VALUES)[name][0](odd)
    runs = rlnb.runs()
    for _ in range(3):
        runs.table()
    assert len(caplog.messages) == 1
    assert str(odd.path) in caplog.text


def test_an_unreadable_event_file_is_logged_once(open_odd: RunDir, caplog: pytest.LogCaptureFixture) -> None:
    next(open_odd.logs.glob("*tfevents*")).chmod(0)
    with as_ordinary_user():
        runs = rlnb.runs()
        for _ in range(3):
            runs.table()
            time.sleep(0.11)  # longer than FRESH_S
    assert len(caplog.messages) == 1


# -- unreadable records are not taken for missing ones


@pytest.mark.parametrize("folder", ["jobs", "jobs/0-train"])
def test_a_run_with_unreadable_jobs_is_not_pruned(open_odd: RunDir, folder: str) -> None:
    (open_odd.path / folder).chmod(0)
    os.utime(open_odd.manifest, (0, 0))  # an old run without a job is lost
    with as_ordinary_user():
        pruning = rlnb.runs().prune(whole=True)
    assert [id for id, _, _ in pruning.items] == GOOD
    assert pruning.unfinished == 1


def test_a_run_with_unknown_iterations_keeps_its_checkpoints(odd: RunDir) -> None:
    fields(STARTED, horizon=0)(odd)
    assert {id for id, _, _ in rlnb.runs().prune().items} == set(GOOD)


def test_an_error_of_a_predicate_propagates(odd: RunDir) -> None:
    with pytest.raises(AttributeError, match="lower"):
        rlnb.runs(where={"seed": lambda seed: seed.lower()})


def test_get_run_returns_an_unreadable_run_that_raises_the_cause(odd: RunDir) -> None:
    fields(MANIFEST, library=["echo"])(odd)
    run = rlnb.get_run(ODD)
    with pytest.raises(rlnb.RlnbError, match=r"b-odd/manifest.json: Manifest: library=\['echo'\] is not .* str"):
        _ = run.library


def test_an_unreadable_note_hides_no_other(odd: RunDir) -> None:
    endless(NOTE)(odd)
    notes.write(odd.notes, "note", "a word")
    assert [note.text for note in rlnb.get_run(ODD).notes] == ["a word"]
    assert set(rlnb.get_run(ODD).tags) == {"seen"}


def test_a_log_that_is_a_pipe_is_empty(odd: RunDir) -> None:
    os.mkfifo(odd.path / "jobs/0-train/node0.log")
    assert rlnb.get_run(ODD).logs() == ""


def test_a_field_of_a_newer_rlnb_is_ignored_only_where_a_record_is_read(odd: RunDir) -> None:
    fields(MANIFEST, cluster=1, resources={"device": "cpu", "fabric": "ib"})(odd)
    assert RunRecord(odd.path).manifest.resources.device == "cpu"
    with pytest.raises(rlnb.RlnbError, match="has no field"):
        from_json(Manifest, json.loads(odd.manifest.read_text()))
