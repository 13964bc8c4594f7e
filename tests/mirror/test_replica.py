"""What arrives from another machine is written into the run's folder, and nowhere else."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from rlnb.contracts.libraries import Library
from rlnb.mirror import replica as module
from rlnb.mirror import run_files
from rlnb.mirror.frames import Closed, Frame
from rlnb.mirror.replica import RunReplica
from rlnb.records import remote
from rlnb.records.layout import COMMAND, JOB, JobDir, RunDir
from rlnb.spec import Command, Job, Manifest, Task
from rlnb.storage import entries, files
from rlnb.storage.clock import age_s

LIBRARY = Library(name="any", backend="")


class Sent(list[Frame]):
    """A channel that keeps what is sent."""

    def send(self, frame: Frame) -> None:
        self.append(frame)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run with one job, which has not left this machine."""
    run = RunDir(tmp_path / "run")
    run.path.mkdir()
    files.write_once(run.manifest, Manifest(run_id="run", created="", task=Task(id="T"), library="any"))
    order(run.next_job("train", lambda _: {JOB: Job(kind="train"), COMMAND: Command(argv=("x",))}))
    return run


def order(job: JobDir, **options: Any) -> None:
    """Submit a job on this machine."""
    remote.order(job).unlink(missing_ok=True)
    files.write_once(remote.order(job), Job(kind="train", options=options))


def near(run: RunDir) -> RunReplica:
    return RunReplica(run, LIBRARY, "gpu7")


def file(kind: str, path: str, body: bytes, **values: Any) -> Frame:
    return Frame(kind=kind, path=path, body=body, **{"total": len(body), "mtime_ns": 5_000_000_000, **values})


def test_files_appear_as_a_whole_with_the_time_of_their_last_change(run: RunDir) -> None:
    here = near(run)
    path = run.media / "film.mp4"
    here.receive(file("whole", "media/film.mp4", b"abc", total=6))
    assert not path.exists()
    here.receive(file("whole", "media/film.mp4", b"def", offset=3, total=6))
    assert path.read_bytes() == b"abcdef"
    assert path.stat().st_mtime == 5.0
    here.receive(file("whole", "media/film.mp4", b"new"))
    assert path.read_bytes() == b"new"


def test_what_was_added_to_a_file_is_added_here(run: RunDir) -> None:
    here, path = near(run), run.logs / "events.out.tfevents.1"
    name = "logs/events.out.tfevents.1"
    here.receive(file("grow", name, b"abc"))
    inode = path.stat().st_ino
    here.receive(file("grow", name, b"def", offset=3))
    here.receive(file("grow", name, b"DEF", offset=3))
    assert path.read_bytes() == b"abcDEF"
    assert path.stat().st_ino == inode, "readers keep the file open"
    with pytest.raises(Closed, match="has 6 bytes here, and 7 are needed"):
        here.receive(file("grow", name, b"x", offset=7))


def test_a_record_that_this_machine_has_written_first_stays(run: RunDir) -> None:
    here, job = near(run), run.jobs()[0]
    files.write_once(job.cancel, {"save_s": 1.0})
    here.receive(file("once", "jobs/0-train/cancel.json", b"{}"))
    here.receive(file("once", "jobs/0-train/closed.json", b'{"a": 1}'))
    assert files.read_json(job.cancel) == {"save_s": 1.0}
    assert files.read_json(job.closed) == {"a": 1}


@pytest.mark.parametrize(
    "path", ["../stray", "/tmp/stray", "manifest.json", "source/task.py", "jobs/0-train/handle.json", "logs/m.pt", ""]
)
def test_no_other_file_is_written(run: RunDir, path: str) -> None:
    before = {entry: entry.read_bytes() for entry in run.path.parent.rglob("*") if entry.is_file()}
    with pytest.raises(Closed):
        near(run).receive(file("whole", path, b"x"))
    assert {entry: entry.read_bytes() for entry in run.path.parent.rglob("*") if entry.is_file()} == before


@pytest.mark.parametrize("kind", ["grow", "whole"])
@pytest.mark.parametrize("name", ["job", "command", "cancel", "result"])
def test_a_record_that_is_written_once_is_not_replaced(run: RunDir, kind: str, name: str) -> None:
    record = run.jobs()[0].path / f"{name}.json"
    files.write_once(record, {"ours": 1})
    content = record.read_bytes()
    with pytest.raises(Closed):
        near(run).receive(file(kind, f"jobs/0-train/{name}.json", b"{}"))
    assert record.read_bytes() == content


def test_a_file_is_no_larger_than_what_has_arrived(run: RunDir) -> None:
    here = near(run)
    for frame in (
        file("whole", "media/film.mp4", b"x", offset=1 << 40, total=(1 << 40) + 1),
        file("whole", "media/film.mp4", b"x", offset=1 << 20, total=1 << 21),
        file("whole", "media/film.mp4", b"x", total=run_files.MOST_BYTES + 1),
        file("whole", "media/film.mp4", b"xyz", total=2),
        file("grow", "logs/events.out.tfevents.1", b"x", offset=1 << 40),
    ):
        with pytest.raises(Closed):
            here.receive(frame)
    assert sum(path.stat().st_size for path in run.path.rglob("*f*m*") if path.is_file()) == 0


def test_a_link_is_not_followed(run: RunDir, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    run.logs.mkdir()
    (run.logs / "events.out.tfevents.1").symlink_to(other)
    with pytest.raises(OSError, match="symbolic"):
        near(run).receive(file("grow", "logs/events.out.tfevents.1", b"x"))
    assert other.read_bytes() == b"precious"


@pytest.mark.parametrize("option", ["checkpoint", "init_from"])
def test_a_resumed_training_gets_the_companions_of_its_checkpoint(run: RunDir, tmp_path: Path, option: str) -> None:
    library = Library(name="any", backend="", checkpoint_companions=("{stem}.buffer.npz", "{stem}.other.npz"))
    here, channel, job = RunReplica(run, library, "gpu7"), Sent(), run.jobs()[0]
    for name in ("model_7.pt", "model_7.buffer.npz"):
        (tmp_path / name).write_bytes(b"w" * 10)
    order(job, **{option: str(tmp_path / "model_7.pt")})
    here.send(channel)  # type: ignore[arg-type]
    sent = [frame.path for frame in channel if frame.kind == "put"]
    companions = [f"init/0-train/{option}/model_7.buffer.npz"] if option == "checkpoint" else []
    assert sent == [f"init/0-train/{option}/model_7.pt", *companions]
    assert channel[-1].data["options"] == {option: f"init/0-train/{option}/model_7.pt"}


def test_a_checkpoint_that_is_a_folder_goes_with_all_its_files(run: RunDir, tmp_path: Path) -> None:
    here, channel, job = near(run), Sent(), run.jobs()[0]
    (tmp_path / "step_7" / "nested").mkdir(parents=True)
    for name in (".metadata", "nested/weights.bin"):
        (tmp_path / "step_7" / name).write_bytes(b"w")
    order(job, init_from=str(tmp_path / "step_7"))
    here.send(channel)  # type: ignore[arg-type]
    folder = "init/0-train/init_from/step_7"
    assert [frame.path for frame in channel[:-1]] == [f"{folder}/.metadata", f"{folder}/nested/weights.bin"]
    assert channel[-1].data["options"] == {"init_from": folder}


def test_inputs_go_whole_with_the_first_training_of_a_run(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MOST_FOLDERS", 3)  # each of these folders may have as many
    names = ["teacher/model_7.pt", *(f"{base}/weights/{part}/file" for base in ("one", "two") for part in "ab")]
    for path in (run.inputs / name for name in names):
        files.make_folder(path.parent)
        path.write_bytes(b"w")
    here, channel, job = near(run), Sent(), run.jobs()[0]
    order(job)
    here.send(channel)  # type: ignore[arg-type]
    assert sorted(frame.path for frame in channel[:-1]) == sorted(f"inputs/{name}" for name in names)
    assert {frame.kind for frame in channel[:-1]} == {"put"}
    assert (channel[-1].kind, channel[-1].path) == ("start", "0-train")


def test_a_job_goes_with_its_source_and_its_first_weights(run: RunDir, tmp_path: Path) -> None:
    here, channel, job = near(run), Sent(), run.jobs()[0]
    run.source.mkdir()
    (run.source / "task.py").write_text("x = 1")
    (run.source / "empty.py").touch()
    weights = tmp_path / "model_7.pt"
    weights.write_bytes(b"w" * 10)
    order(job, init_from=str(weights), trust=True)
    here.send(channel)  # type: ignore[arg-type]
    *puts, start = [(frame.kind, frame.path) for frame in channel]
    assert (sorted(puts), start) == (
        [("put", name) for name in ("init/0-train/init_from/model_7.pt", "source/empty.py", "source/task.py")],
        ("start", "0-train"),
    )
    assert channel[-1].data["options"] == {"init_from": "init/0-train/init_from/model_7.pt", "trust": True}
    assert files.there(remote.sent(job))
    channel.clear()
    here.send(channel)  # type: ignore[arg-type]
    assert not channel, "once"
    for state, kinds in {"running": [], "created": ["put", "put", "put", "start"]}.items():
        here.begin()
        here.send(channel)  # type: ignore[arg-type]
        assert not channel, "the other machine has not said which jobs it has"
        here.receive(Frame(kind="states", data={"0-train": {"state": state}}))
        here.send(channel)  # type: ignore[arg-type]
        assert [frame.kind for frame in channel] == kinds, "only if an earlier connection has ended too early"
    (job.path / "node0.log").touch()
    here.send(channel)  # type: ignore[arg-type]
    assert len(channel) == len(kinds), "a file in the folder of the job is no reason to send it again"


def test_an_evaluation_goes_without_the_source_and_the_checkpoint_that_are_there(run: RunDir) -> None:
    here, channel = near(run), Sent()
    run.source.mkdir()
    (run.source / "task.py").write_text("x = 1")
    files.write_once(remote.sent(run.jobs()[0]), {})
    job = run.next_job("evaluate", lambda name: {JOB: Job(kind="evaluate"), COMMAND: Command(argv=("x",))})
    files.write_once(remote.order(job), Job(kind="evaluate", options={"checkpoint": "logs/model_4.pt"}))
    here.send(channel)  # type: ignore[arg-type]
    assert [(frame.kind, frame.path) for frame in channel] == [("start", "1-evaluate")]
    assert channel[0].data["options"] == {"checkpoint": "logs/model_4.pt"}


def test_a_cancellation_and_a_request_for_pictures_go_once(run: RunDir) -> None:
    here, channel, job = near(run), Sent(), run.jobs()[0]
    here.send(channel)  # type: ignore[arg-type]
    files.write_once(job.cancel, {"save_s": 2.0})
    run.view.mkdir()
    run.wanted.write_text("{}")
    channel.clear()
    for _ in range(2):
        here.send(channel)  # type: ignore[arg-type]
    assert [(frame.kind, frame.path) for frame in channel] == [("cancel", "0-train"), ("put", "view/wanted.json")]
    os.utime(run.wanted, (7.0, 7.0))
    here.send(channel)  # type: ignore[arg-type]
    assert channel[-1].path == "view/wanted.json", "the viewer still looks"
    assert len(channel) == 3


def test_a_job_that_was_cancelled_before_it_arrived_does_not_start(run: RunDir) -> None:
    here, channel, job = near(run), Sent(), run.jobs()[0]
    here.send(channel)  # type: ignore[arg-type]
    files.write_once(job.cancel, {})
    channel.clear()
    here.begin()
    here.receive(Frame(kind="states", data={}))
    here.send(channel)  # type: ignore[arg-type]
    assert not channel
    result = here.detached(job).result
    assert result is not None
    assert (result.outcome, result.error) == ("cancelled", "cancelled before it reached gpu7")
    assert not here.open_jobs()


def test_a_job_that_has_begun_there_begins_no_second_time_if_its_folder_is_gone(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of runs there was emptied, or its file system is not mounted at present."""
    monkeypatch.setattr(module, "MISSING_S", 0.2)
    here, channel, job = near(run), Sent(), run.jobs()[0]
    here.send(channel)  # type: ignore[arg-type]
    here.receive(file("grow", "jobs/0-train/node0.log", b"iteration 7"))
    channel.clear()
    here.begin()
    for seconds, what in ((0.0, None), (0.3, "gpu7 does not have the folder of this job any more. If it is")):
        time.sleep(seconds)
        here.receive(Frame(kind="states", data={}))
        here.send(channel)  # type: ignore[arg-type]
        record = files.read_json(job.waits)
        assert str(record and record["what"]).startswith(str(what))
    here.receive(Frame(kind="states", data={"0-train": {"state": "running", "waits": "", "over": False}}))
    here.send(channel)  # type: ignore[arg-type]
    assert not job.waits.exists(), "it is there again"
    files.write_once(job.cancel, {})
    here.receive(Frame(kind="states", data={}))
    here.send(channel)  # type: ignore[arg-type]
    assert here.open_jobs() == [job]
    time.sleep(0.3)
    here.send(channel)  # type: ignore[arg-type]
    result = here.detached(job).result
    assert result is not None
    assert (result.outcome, result.error.partition(": ")[0]) == ("cancelled", "cancelled")
    assert not here.open_jobs()
    assert [frame.kind for frame in channel] == ["cancel"]


def test_only_a_job_that_has_not_left_is_cancelled_here(run: RunDir) -> None:
    here, channel, job = near(run), Sent(), run.jobs()[0]
    here.send(channel)  # type: ignore[arg-type]
    other = run.next_job("train", lambda name: {JOB: Job(kind="train"), COMMAND: Command(argv=("x",))})
    order(other)
    for cancelled in (job, other):
        files.write_once(cancelled.cancel, {"save_s": 2.0})
    here.end_unsent()
    assert here.open_jobs() == [job]
    channel.clear()
    here.send(channel)  # type: ignore[arg-type]
    assert [(frame.kind, frame.path, frame.data) for frame in channel] == [("cancel", "0-train", {"save_s": 2.0})]


def test_weights_that_are_gone_end_the_job(run: RunDir) -> None:
    here, channel, job = near(run), Sent(), run.jobs()[0]
    order(job, init_from="/none/model.pt")
    here.send(channel)  # type: ignore[arg-type]
    result = here.detached(job).result
    assert result is not None
    assert result.error == "/none/model.pt cannot be sent to gpu7: No such file or directory"
    assert not here.open_jobs()


def test_the_states_there_say_why_a_job_waits_and_that_it_is_over(run: RunDir) -> None:
    here, job = near(run), run.jobs()[0]
    job.waits.write_text("{}")  # of a mirror that was killed
    here.receive(Frame(kind="states", data={"0-train": {"waits": "PENDING", "over": False}, "9-train": 5}))
    assert (files.read_json(job.waits) or {})["what"] == "PENDING"
    here.beat("no connection")
    assert (files.read_json(job.waits) or {})["what"] == "no connection"
    assert here.open_jobs() == [job]
    here.receive(Frame(kind="states", data={"0-train": {"waits": "", "over": True}}))
    assert not here.open_jobs()
    assert not job.waits.exists()


def test_a_job_that_was_refused_there_has_failed(run: RunDir) -> None:
    here, job = near(run), run.jobs()[0]
    other = run.next_job("train", lambda name: {JOB: Job(kind="train"), COMMAND: Command(argv=("x",))})
    here.receive(Frame(kind="refused", path="0-train", data={"error": "No RL library named 'x'."}))
    result = here.detached(job).result
    assert result is not None
    assert (result.outcome, result.error) == ("failed", "No RL library named 'x'.")
    assert here.open_jobs() == [other]


def test_a_job_that_began_there_is_a_job_here(run: RunDir) -> None:
    here = near(run)
    here.receive(file("once", "jobs/1-train/job.json", b'{"kind": "train", "after": "0-train"}'))
    here.receive(file("once", "jobs/1-train/command.json", b'{"argv": ["x"]}'))
    job = JobDir(run.jobs_folder / "1-train")
    assert here.open_jobs()[-1] == job
    assert files.there(job.handle)
    channel = Sent()
    here.send(channel)  # type: ignore[arg-type]
    assert (files.read_json(remote.sent(job)) or {}).keys() == {"time"}


def test_the_other_machine_cannot_fetch_files_of_this_user(run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "id_ed25519").write_text("secret")
    here, channel = near(run), Sent()
    options = json.dumps({"kind": "evaluate", "options": {"checkpoint": str(tmp_path / "id_ed25519")}}).encode()
    files.write_once(remote.sent(run.jobs()[0]), {})
    for name, body in {"job": options, "command": b'{"argv": ["x"]}'}.items():
        here.receive(file("once", f"jobs/1-evaluate/{name}.json", body))
    for started in (["0-train", "1-evaluate"], ["0-train"]):
        here.begin()
        here.receive(Frame(kind="states", data={name: {"state": "running"} for name in started}))
        here.send(channel)  # type: ignore[arg-type]
    assert not channel
    with pytest.raises(Closed):
        here.receive(file("once", "jobs/1-evaluate/order.json", options))


def test_files_that_stay_there_are_listed_and_marks_pass(run: RunDir) -> None:
    here, job = near(run), run.jobs()[0]
    here.receive(Frame(kind="list", data={"logs/m.pt": 9, "../../x": 9, "logs/odd": "many"}))
    assert remote.remote_files(run) == {run.logs / "m.pt": 9}
    here.receive(file("whole", "jobs/0-train/node0.silent", b""))
    assert job.silent().exists()
    for path in ("jobs/0-train/node0.silent", "jobs/0-train/job.json"):
        here.receive(Frame(kind="gone", path=path))
    assert not job.silent().exists()
    assert job.job.exists()


def test_a_folder_that_was_removed_is_not_made_anew(run: RunDir) -> None:
    here = near(run)
    run.path.rename(run.path.with_name("removed"))
    with pytest.raises(Closed, match="was removed"):
        here.receive(file("grow", "logs/events.out.tfevents.1", b"abc"))
    assert not run.path.exists()


def test_what_is_here_is_known_by_size_and_time(run: RunDir) -> None:
    run.logs.mkdir()
    (run.logs / "events.out.tfevents.1").write_bytes(b"abc")
    (run.logs / "model.pt").write_bytes(b"abc")
    have = near(run).have()
    size, _, digest = have["logs/events.out.tfevents.1"]  # type: ignore[misc, str-unpack]
    assert (size, digest) == (3, hashlib.sha256(b"abc").hexdigest())
    assert {*have} == {"logs/events.out.tfevents.1", "jobs/0-train/job.json", "jobs/0-train/command.json"}


@pytest.mark.parametrize("ahead_s", [-3600.0, 600.0])
def test_the_times_of_files_are_those_of_this_machines_clock(run: RunDir, ahead_s: float) -> None:
    here = near(run)
    there_ns = time.time_ns() + int(ahead_s * 1e9)
    here.receive(Frame(kind="clock", mtime_ns=there_ns))
    here.receive(Frame(kind="list", data={"logs/m.pt": 9}))
    here.receive(file("once", "jobs/0-train/started.json", b"{}", mtime_ns=there_ns))
    assert age_s(run.jobs()[0].started) < 60.0
    again = near(run)
    assert again.have()["jobs/0-train/started.json"][1] == there_ns, "the file is not sent again"  # type: ignore[index]
    again.receive(Frame(kind="clock", mtime_ns=time.time_ns() + int(ahead_s * 1e9)))
    assert again.have() == here.have(), "two comparisons differ by less than a second"
