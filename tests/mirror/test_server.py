"""The other end of a mirror starts jobs once, and sends what has changed."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.contracts.libraries import Library
from rlnb.jobs.jobs import NewJob
from rlnb.launchers import LocalLauncher
from rlnb.mirror import run_files
from rlnb.mirror import server as module
from rlnb.mirror.frames import Channel, Closed, Frame
from rlnb.mirror.server import RunServer, send_file
from rlnb.records.layout import JobDir, RunDir
from rlnb.settings import Root
from rlnb.spec import Job, Manifest, Result, Task
from rlnb.storage import files
from rlnb.storage.serial import to_json

JOB = Job(kind="train")
MANIFEST = Manifest(
    run_id="run", created="2026-01-01T00:00:00.000+00:00", task=Task(id="Echo"), library="echo", max_iterations=1
)


class Other:
    """The other end, as a channel that keeps what is sent and gives what is wanted."""

    def __init__(self) -> None:
        self.sent: list[Frame] = []
        self.wishes: list[Frame] = []
        self.heard_s = time.monotonic()

    def send(self, frame: Frame) -> None:
        self.sent.append(frame)

    def receive(self, timeout_s: float) -> Frame | None:
        if self.wishes:
            return self.wishes.pop(0)
        if timeout_s and self.sent:
            raise Closed("enough")
        return None

    def paths(self, kind: str) -> list[str]:
        return [frame.path for frame in self.sent if frame.kind == kind]


def serve(tmp_path: Path, *wishes: Frame, have: Any = None, manifest: Manifest = MANIFEST) -> Other:
    """Return the other end after one round."""
    other = Other()
    other.wishes = [*wishes]
    with pytest.raises(Closed):
        RunServer(other, Root(tmp_path), manifest, have or {}).serve()  # type: ignore[arg-type]
    return other


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    serve(tmp_path)
    return RunDir(tmp_path / "runs" / "run")


def test_only_what_the_other_end_lacks_is_sent(tmp_path: Path, run: RunDir) -> None:
    events, config = run.logs / "events.out.tfevents.1", run.logs / "agent.yaml"
    events.write_bytes(b"0123456789")
    config.write_bytes(b"a: 1")
    assert {*serve(tmp_path).paths("grow")} == {"logs/events.out.tfevents.1"}
    status = config.stat()
    digest = hashlib.sha256(b"0123").hexdigest()
    have = {"logs/events.out.tfevents.1": [4, 0, digest], "logs/agent.yaml": [4, status.st_mtime_ns, ""]}
    other = serve(tmp_path, have=have)
    assert [(frame.path, frame.offset, frame.body) for frame in other.sent if frame.body] == [
        ("logs/events.out.tfevents.1", 4, b"456789")
    ]
    for size, other_digest in ((99, digest), (4, "f" * 64), (10, digest)):
        new = {"logs/events.out.tfevents.1": [size, 0, other_digest], "logs/agent.yaml": [4, 7, ""]}
        assert {(frame.path, frame.offset) for frame in serve(tmp_path, have=new).sent if frame.body} == {
            ("logs/events.out.tfevents.1", 0),
            ("logs/agent.yaml", 0),
        }


def test_checkpoints_are_listed_and_states_come_last(tmp_path: Path, run: RunDir) -> None:
    (run.logs / "model_4.json").write_bytes(b"{}")
    (run.jobs_folder / "0-train").mkdir()
    other = serve(tmp_path)
    assert [frame.data for frame in other.sent if frame.kind == "list"] == [{"logs/model_4.json": 2}]
    assert other.sent[-1].kind == "states"
    assert other.sent[-1].data == {"0-train": {"state": "created", "over": False, "waits": ""}}


def test_a_file_that_was_put_appears_as_a_whole(tmp_path: Path, run: RunDir) -> None:
    serve(tmp_path, Frame(kind="put", path="source/t.py", body=b"ab", total=4))
    assert not (run.source / "t.py").exists()
    serve(tmp_path, Frame(kind="put", path="source/t.py", offset=2, body=b"cd", total=4))
    assert (run.source / "t.py").read_bytes() == b"abcd"
    with pytest.raises(rlnb.RlnbError, match="not a path below"):
        serve(tmp_path, Frame(kind="put", path="../t.py", body=b"ab", total=2))


def test_a_job_is_started_once_with_the_launcher_of_this_machine(root: Path) -> None:
    start = Frame(
        kind="start",
        path="0-train",
        data=to_json(Job(kind="train", options={"init_from": "init/m.json", "title": "init/m.json"})),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalLauncher, "submit", lambda self, command, job_dir: {"pid": 7, "argv": command.argv})
        other = serve(root, start, start)
    folder = JobDir(root / "runs" / "run" / "jobs" / "0-train")
    assert other.paths("refused") == []
    assert (files.read_json(folder.handle) or {})["pid"] == 7
    argv = (files.read_json(folder.command) or {})["argv"]
    assert argv[-2:] == [str(root / "runs" / "run"), str(folder.path)]  # type: ignore[index]
    assert (files.read_json(folder.job) or {})["options"] == {
        "init_from": str(root / "runs" / "run" / "init/m.json"),
        "title": "init/m.json",
    }


def test_two_connections_start_a_job_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second connection brings the job while the end of the first one still writes the records."""
    start, started = Frame(kind="start", path="0-train", data=to_json(Job(kind="train"))), []
    monkeypatch.setattr(LocalLauncher, "submit", lambda self, command, job_dir: started.append(job_dir) or {})
    records = NewJob.records

    def slow_records(new: NewJob, name: str) -> Any:
        monkeypatch.setattr(NewJob, "records", records)
        serve(root, start)
        return new.records(name)

    monkeypatch.setattr(NewJob, "records", slow_records)
    assert serve(root, start).paths("refused") == []
    assert started == [root / "runs" / "run" / "jobs" / "0-train"]


def test_a_cancellation_is_tried_until_the_job_has_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue may be away for a moment."""
    cancelled: list[Path] = []
    monkeypatch.setattr(LocalLauncher, "submit", lambda self, command, job_dir: {"pid": 7})
    monkeypatch.setattr(LocalLauncher, "alive", lambda self, handle, job_dir: True)
    monkeypatch.setattr(LocalLauncher, "cancel", lambda self, handle, job_dir: cancelled.append(job_dir))
    serve(root, Frame(kind="start", path="0-train", data=to_json(Job(kind="train"))))
    assert not cancelled
    serve(root, Frame(kind="cancel", path="0-train"))
    assert len(cancelled) == 1, "once a minute"
    monkeypatch.setattr(module, "CANCEL_S", -1.0)
    serve(root)
    assert len(cancelled) == 2
    files.write_once(JobDir(cancelled[0]).result, Result(outcome="cancelled"))
    serve(root)
    assert len(cancelled) == 2


def test_a_queue_that_does_not_answer_a_cancellation_does_not_hold_the_mirror(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = threading.Event()
    monkeypatch.setattr(module, "WITHDRAW_S", 0.1)
    monkeypatch.setattr(module, "CANCEL_S", -1.0)
    monkeypatch.setattr(LocalLauncher, "submit", lambda self, command, job_dir: {"pid": 7})
    monkeypatch.setattr(LocalLauncher, "alive", lambda self, handle, job_dir: True)
    monkeypatch.setattr(LocalLauncher, "cancel", lambda self, handle, job_dir: ends.wait(20))
    start = Frame(kind="start", path="0-train", data=to_json(Job(kind="train")))
    begin_s = time.monotonic()
    other = serve(root, start, Frame(kind="cancel", path="0-train"))
    assert time.monotonic() - begin_s < 5.0
    assert other.sent[-1].kind == "states"
    ends.set()


def test_the_states_are_sent_also_while_frames_arrive_without_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other end gives up a connection on which it hears nothing, such as while this one writes a large file."""
    monkeypatch.setattr(module, "STATES_S", 0.05)
    monkeypatch.setattr(RunServer, "_do", lambda self, frame: time.sleep(0.02))
    other = Other()
    waiting: list[int] = []

    def send(frame: Frame) -> None:
        other.sent.append(frame)
        if frame.kind == "states":
            waiting.append(len(other.wishes))

    monkeypatch.setattr(other, "send", send)
    other.wishes = [Frame(kind="put")] * 20
    with pytest.raises(Closed):
        RunServer(other, Root(tmp_path), MANIFEST, {}).serve()  # type: ignore[arg-type]
    assert waiting[0] > 10
    assert not other.wishes, "no frame is left out"


def test_a_job_that_cannot_be_started_is_refused_with_the_reason(tmp_path: Path) -> None:
    start = Frame(kind="start", path="0-train", data=to_json(Job(kind="train")))
    other = serve(tmp_path, start, manifest=dataclasses.replace(MANIFEST, launcher="none"))
    (refused,) = [frame for frame in other.sent if frame.kind == "refused"]
    assert (refused.path, "No launcher named 'none'" in str(refused.data["error"])) == ("0-train", True)


def test_a_training_that_goes_on_already_is_not_continued_twice(tmp_path: Path, run: RunDir) -> None:
    (run.jobs_folder / "0-train").mkdir()
    files.write_once(JobDir(run.jobs_folder / "0-train").successor, {"job": "1-train"})
    start = Frame(kind="start", path="2-train", data=to_json(Job(kind="train", after="0-train")))
    (refused,) = [frame for frame in serve(tmp_path, start).sent if frame.kind == "refused"]
    assert refused.data["error"] == "The training goes on already, as job 1-train."
    assert not (run.jobs_folder / "2-train").exists()


@pytest.mark.parametrize("name", ["../../other", "..", "a/b", ""])
def test_a_job_has_the_name_of_a_folder_of_its_run(tmp_path: Path, run: RunDir, name: str) -> None:
    start = Frame(kind="start", path=name, data=to_json(Job(kind="train")))
    (refused,) = [frame for frame in serve(tmp_path, start).sent if frame.kind == "refused"]
    assert refused.data["error"] == f"{name!r} is not the name of a job."
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(rlnb.RlnbError, match="is not the name of a job"):
        serve(tmp_path, Frame(kind="cancel", path=name))
    assert sorted(tmp_path.rglob("*")) == before


def test_weights_are_those_that_were_copied_for_the_job(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalLauncher, "submit", lambda self, command, job_dir: {"pid": 7})
    job = Job(kind="train", options={"init_from": "init/../../other.pt", "checkpoint": "logs/model_4.json"})
    serve(root, Frame(kind="start", path="0-train", data=to_json(job)))
    folder = JobDir(root / "runs" / "run" / "jobs" / "0-train")
    assert (files.read_json(folder.job) or {})["options"] == dict(job.options)


def test_a_training_has_one_successor_there_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalLauncher, "submit", lambda self, command, job_dir: {"pid": 7})
    following = Job(kind="train", after="0-train")
    serve(root, *(Frame(kind="start", path=f"{n}-train", data=to_json(job)) for n, job in enumerate((JOB, following))))
    assert JobDir(root / "runs" / "run" / "jobs" / "0-train").successor_name() == "1-train"


def test_an_interrupted_training_that_goes_on_is_not_over(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalLauncher, "submit", lambda self, command, job_dir: {"pid": 7})
    serve(root, Frame(kind="start", path="0-train", data=to_json(JOB)))
    folder = JobDir(root / "runs" / "run" / "jobs" / "0-train")
    files.write_once(folder.result, Result(outcome="failed", values={"interrupted": True}))
    for lives in (True, False):
        monkeypatch.setattr(LocalLauncher, "alive", lambda self, handle, job_dir, lives=lives: lives)
        (entry,) = serve(root).sent[-1].data.values()
        assert entry["over"] is not lives  # type: ignore[index, call-overload]


def test_a_job_is_over_once_everything_of_it_was_sent(tmp_path: Path, run: RunDir, monkeypatch: Any) -> None:
    job, scan = JobDir(run.jobs_folder / "0-train"), run_files.scan
    job.path.mkdir()

    def scan_before_the_end(run: RunDir, library: Library) -> dict[str, run_files.Entry]:
        entries = scan(run, library)
        files.write_once(job.result, Result(outcome="completed"))
        return entries

    monkeypatch.setattr(run_files, "scan", scan_before_the_end)
    assert serve(tmp_path).sent[-1].data == {"0-train": {"state": "created", "over": False, "waits": ""}}
    sent = serve(tmp_path).sent
    assert [frame.path for frame in sent if frame.kind == "once"] == ["jobs/0-train/result.json"]
    assert sent[-1].data["0-train"]["over"] is True  # type: ignore[index, call-overload]


def test_a_record_that_is_written_once_is_sent_once(tmp_path: Path, run: RunDir) -> None:
    job = JobDir(run.jobs_folder / "0-train")
    job.path.mkdir()
    files.write_once(job.started, {})
    assert serve(tmp_path).paths("once") == ["jobs/0-train/started.json"]
    assert serve(tmp_path, have={"jobs/0-train/started.json": [0, 5, ""]}).paths("once") == []


def test_a_mark_that_is_gone_is_gone_here_too(tmp_path: Path, run: RunDir) -> None:
    have = {"jobs/0-train/node0.silent": [0, 5, ""], "jobs/0-train/evaluation.json": [2, 5, ""]}
    assert serve(tmp_path, have=have).paths("gone") == ["jobs/0-train/node0.silent"]


def test_the_script_of_a_run_is_its_copy(tmp_path: Path) -> None:
    serve(tmp_path, manifest=dataclasses.replace(MANIFEST, script=("/home/anna/train.py", "--fast")))
    manifest = files.read_json(tmp_path / "runs" / "run" / "manifest.json") or {}
    assert manifest["script"] == [str(tmp_path / "runs" / "run" / "source" / "train.py"), "--fast"]


def test_a_file_is_sent_from_where_the_other_end_has_it(tmp_path: Path) -> None:
    other, run = Other(), RunDir(tmp_path)
    (tmp_path / "model.pt").write_bytes(b"0123456789")
    channel: Channel = other  # type: ignore[assignment]
    mtime_ns = (tmp_path / "model.pt").stat().st_mtime_ns
    for offset, time_ns in ((7, mtime_ns), (10, mtime_ns), (7, 1), (11, mtime_ns)):
        send_file(channel, run, Frame(kind="fetch", path="model.pt", offset=offset, mtime_ns=time_ns))
    whole = (0, b"0123456789", 10)
    parts = [(frame.offset, frame.body, frame.total) for frame in other.sent]
    assert parts == [(7, b"789", 10), (10, b"", 10), whole, whole], "the last two are of another file"
    for path in ("../model.pt", "/etc/passwd"):
        with pytest.raises(rlnb.RlnbError, match="not a path below"):
            send_file(channel, run, Frame(kind="fetch", path=path))
    (tmp_path / "device.pt").symlink_to(os.devnull)
    with pytest.raises(rlnb.RlnbError, match="is not a regular file"):
        send_file(channel, run, Frame(kind="fetch", path="device.pt"))


def test_the_end_of_a_silent_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENT_S", 0.0)
    other = Other()
    RunServer(other, Root(tmp_path), MANIFEST, {}).serve()  # type: ignore[arg-type]
    (clock,) = other.sent
    assert (clock.kind, abs(clock.mtime_ns - time.time_ns()) < 60e9) == ("clock", True)
