"""States derived from files that the tests lay out."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

import rlnb
from rlnb.launch.detached import handle_of
from rlnb.launchers import DetachedJob
from rlnb.plugin import Command, Manifest, Result
from rlnb.pods.pod import newest_training
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.record import LOST_AFTER_S, JobRecord, QueueEntry, RunRecord
from rlnb.spec import Job, Started, State
from rlnb.storage import clock, files
from rlnb.storage.clock import SILENT_AFTER_S
from rlnb.storage.serial import to_json

HORIZON, NUM_ENVS = 16, 4
LONG_AGO_S = 3600.0


def run_folder(root: Path, name: str = "20260101-000000-echo", created: str = "2026-01-01T00:00:00+00:00") -> RunDir:
    run = RunDir(root / "runs" / name)
    run.path.mkdir(parents=True)
    manifest = Manifest(run_id=name, created=created, task=rlnb.Task(id="Echo"), library="echo")
    files.write_once(run.manifest, to_json(manifest))
    return run


def commanded(run: RunDir, kind: str = "train") -> JobDir:
    job = run.next_job(kind)
    files.write_once(job.command, to_json(Command(argv=("true",))))
    return job


def has_started(job: JobDir) -> None:
    started = Started(
        hosts=("here",),
        devices=("cpu",),
        world_size=1,
        num_envs=NUM_ENVS,
        horizon=HORIZON,
        frames_per_step=HORIZON * NUM_ENVS,
        time_s=time.time(),
    )
    files.write_once(job.started, to_json(started))


def log(folder: Path, steps: int = 3) -> None:
    writer = EventFileWriter(str(folder))
    for step in range(steps):
        tags = ["Train/mean_reward", *(f"Loss/term_{number}" for number in range(10))]
        values = [Summary.Value(tag=tag, simple_value=1.0) for tag in tags]
        writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
    writer.close()


def silent_for(job: JobDir, seconds: float) -> None:
    """Set the time of the last sign of life to ``seconds`` ago."""
    for path in (job.command, job.alive()):
        if path.exists():
            os.utime(path, (time.time() - seconds,) * 2)


@pytest.fixture
def alive() -> Iterator[dict[str, object]]:
    """The handle of a process that lives as long as the test."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield handle_of(process.pid)
    process.kill()
    process.wait()


@pytest.fixture
def gone() -> dict[str, object]:
    """The handle of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    handle = handle_of(process.pid)
    process.communicate()
    return handle


def test_a_run_without_a_job_is_created(root: Path) -> None:
    assert RunRecord(run_folder(root).path).state == "created"


def test_a_job_without_a_command_is_created(root: Path) -> None:
    run = run_folder(root)
    run.next_job("train")
    assert RunRecord(run.path).state == "created"


def test_a_job_whose_agent_waits_for_a_slot_is_queued(root: Path, alive: dict[str, object]) -> None:
    job = commanded(run := run_folder(root))
    assert RunRecord(run.path).state == "queued", "the handle is written shortly after the command"
    files.write_once(job.handle, alive)
    assert RunRecord(run.path).state == "queued"


def test_a_job_that_left_the_queue_is_starting(root: Path, alive: dict[str, object]) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, alive)
    files.write_once(job.running(), {})
    assert RunRecord(run.path).state == "starting"
    has_started(job)
    assert RunRecord(run.path).state == "starting", "nothing was logged yet"


def test_an_event_file_without_a_scalar_does_not_mean_running(root: Path, alive: dict[str, object]) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, alive)
    has_started(job)
    log(run.logs, steps=0)
    assert RunRecord(run.path).state == "starting"


def test_a_job_that_logs_is_running(root: Path, alive: dict[str, object]) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, alive)
    has_started(job)
    log(run.logs)
    assert RunRecord(run.path).state == "running"


def test_a_resumed_job_is_not_running_because_the_first_one_logged(root: Path, alive: dict[str, object]) -> None:
    run = run_folder(root)
    first = commanded(run)
    has_started(first)
    log(run.logs)
    for path in run.logs.iterdir():
        os.utime(path, (time.time() - LONG_AGO_S,) * 2)
    files.write_once(first.result, to_json(Result(outcome="cancelled")))
    assert RunRecord(run.path).state == "cancelled"
    second = commanded(run)
    files.write_once(second.handle, alive)
    assert RunRecord(run.path).state == "queued"
    has_started(second)
    assert RunRecord(run.path).state == "starting"


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled", "timeout"])
def test_a_result_decides_whatever_other_files_exist(root: Path, gone: dict[str, object], outcome: State) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, gone)
    has_started(job)
    log(run.logs)
    silent_for(job, LONG_AGO_S)
    files.write_once(job.result, to_json(Result(outcome=outcome)))
    assert RunRecord(run.path).state == outcome


def test_a_process_that_ended_without_a_result_is_lost_after_a_delay(root: Path, gone: dict[str, object]) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, gone)
    job.alive().touch()
    assert RunRecord(run.path).state == "queued", "its result may appear late"
    silent_for(job, LOST_AFTER_S + 1)
    assert RunRecord(run.path).state == "lost"


def test_a_living_process_is_never_lost_even_if_silent(root: Path, alive: dict[str, object]) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, alive)
    silent_for(job, LONG_AGO_S)
    assert RunRecord(run.path).state == "queued"


def test_another_process_with_the_same_pid_does_not_count(root: Path, alive: dict[str, object]) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, {**alive, "created_s": float(alive["created_s"]) - LONG_AGO_S})  # type: ignore[arg-type]
    silent_for(job, LOST_AFTER_S + 1)
    assert RunRecord(run.path).state == "lost"


def test_a_job_of_another_host_is_lost_only_after_a_long_silence(root: Path, gone: dict[str, object]) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, {**gone, "host": f"not-{socket.gethostname()}"})
    job.alive().touch()
    silent_for(job, SILENT_AFTER_S / 2)
    assert RunRecord(run.path).state == "queued"
    silent_for(job, SILENT_AFTER_S + 1)
    assert RunRecord(run.path).state == "lost"


def test_a_job_of_another_host_lives_whatever_this_machines_clock_says(
    root: Path, gone: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, {**gone, "host": f"not-{socket.gethostname()}"})
    job.alive().touch()
    real = time.time
    monkeypatch.setattr(clock, "_offsets", {})
    monkeypatch.setattr(time, "time", lambda: real() + 2 * SILENT_AFTER_S)
    assert RunRecord(run.path).state == "queued"


def test_a_heartbeat_in_the_future_does_not_keep_an_ended_process_alive(root: Path, gone: dict[str, object]) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, gone)
    job.alive().touch()
    silent_for(job, -LONG_AGO_S)
    assert RunRecord(run.path).state == "lost", "the clock was set back"


def test_a_job_that_lost_against_another_one_is_not_a_job_of_the_run(root: Path, gone: dict[str, object]) -> None:
    first = commanded(run := run_folder(root))
    files.write_once(first.result, to_json(Result(outcome="completed")))
    later = [run.next_job("train", lambda _: {"job.json": Job(kind="train", after="0-train")}) for _ in range(2)]
    assert [job.folder.path.name for job in RunRecord(run.path).jobs] == ["0-train"], "neither has begun"
    files.write_once(first.successor, {"job": "1-train"})
    assert [job.folder.path.name for job in RunRecord(run.path).jobs] == ["0-train", "1-train"]
    assert newest_training(run.path) == later[0]
    later[1].running().touch()
    assert len(RunRecord(run.path).jobs) == 3, "a job that was started cannot be ignored"
    first.successor.write_text("{")
    later[1].running().unlink()
    assert len(RunRecord(run.path).jobs) == 3, "a damaged record hides no job"


@pytest.mark.parametrize("after", ["../../other/jobs/0-train", "9-train", 7])
def test_an_odd_name_of_an_earlier_job_hides_nothing(root: Path, after: object) -> None:
    run = run_folder(root)
    run.next_job("train", lambda _: {"job.json": {"kind": "train", "after": after}})
    assert len(RunRecord(run.path).jobs) == 1


def test_a_job_whose_kernel_died_before_writing_the_handle_is_lost(root: Path) -> None:
    job = commanded(run := run_folder(root))
    silent_for(job, SILENT_AFTER_S + 1)
    assert RunRecord(run.path).state == "lost"


def test_a_lost_job_with_a_cancel_file_is_cancelled(root: Path, gone: dict[str, object]) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, gone)
    files.write_once(job.cancel, {})
    silent_for(job, LOST_AFTER_S + 1)
    assert RunRecord(run.path).state == "cancelled"


def test_a_result_that_cannot_be_read_is_lost(root: Path) -> None:
    job = commanded(run := run_folder(root))
    job.result.write_text('{"outcome": "comp')
    assert RunRecord(run.path).state == "lost"


def test_the_state_is_that_of_the_training_not_of_the_evaluation(root: Path) -> None:
    run = run_folder(root)
    files.write_once(commanded(run).result, to_json(Result(outcome="completed")))
    files.write_once(commanded(run, "evaluate").result, to_json(Result(outcome="failed")))
    record = RunRecord(run.path)
    assert record.state == "completed"
    assert [job.kind for job in record.jobs] == ["train", "evaluate"]
    assert record.jobs[1].state() == "failed"


def test_a_folder_without_a_manifest_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match="is not a run"):
        _ = RunRecord(tmp_path).manifest


def test_checkpoints_are_sorted_by_iteration_not_by_name(root: Path) -> None:
    run = run_folder(root)
    run.logs.mkdir()
    for number in (100, 9, 50):
        (run.logs / f"model_{number}.json").touch()
    (run.logs / "notes.json").touch()
    names = [path.name for path in RunRecord(run.path).checkpoints]
    assert names == ["model_9.json", "model_50.json", "model_100.json"]


def test_a_run_of_a_launcher_that_is_not_installed_is_listed(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1000, agent={"iteration_s": 0.1})
    manifest = run.path / "manifest.json"
    elsewhere = dataclasses.replace(run.manifest, launcher="elsewhere")
    manifest.write_text(json.dumps(to_json(elsewhere)))
    (listed,) = rlnb.runs()
    assert listed.state in ("queued", "starting", "running"), "its heartbeat shows that it lives"
    (run.jobs[0].folder.path / "cancel.json").write_text("{}")


def test_the_cause_of_an_interruption_replaces_the_error_of_its_result(root: Path) -> None:
    job = commanded(run := run_folder(root))
    result = Result(outcome="failed", error="revoked", values={"interrupted": True})
    files.write_once(job.result, to_json(result))
    record = RunRecord(run.path)
    assert record.jobs[0].result == result
    files.replace_json(job.cause, {"error": "Slurm's job 7 was preempted"})
    assert record.jobs[0].result == dataclasses.replace(result, error="Slurm's job 7 was preempted")


def test_the_entry_of_a_lost_job_may_still_be_in_the_queue(root: Path, gone: dict[str, object]) -> None:
    job = commanded(run := run_folder(root))
    files.write_once(job.handle, gone)
    silent_for(job, LOST_AFTER_S + 1)
    assert not RunRecord(run.path).jobs[0].may_wait(), "it was never submitted"
    files.write_once(job.submitted, {"queue": "slurm", "jobs": ["54"]})
    assert RunRecord(run.path).jobs[0].may_wait()
    files.write_once(job.cancel, {})
    assert not RunRecord(run.path).jobs[0].may_wait()


# -- submission ------------------------------------------------------------------------------------------------------


def test_the_last_entry_that_a_host_records_is_kept(tmp_path: Path) -> None:
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    assert JobRecord(job, "slurm").submission == QueueEntry(), "before the job is in the queue"
    DetachedJob(job.path).note(queue="slurm", jobs=["17"])
    DetachedJob(job.path).note(queue="slurm", jobs=["17", "18"], dashboard=8787)
    assert JobRecord(job, "slurm").submission == QueueEntry(queue="slurm", jobs=("17", "18"), dashboard=8787)


def test_an_entry_of_version_0_1_0_without_dashboard_and_with_other_fields_is_read(tmp_path: Path) -> None:
    job = JobDir(tmp_path / "0-train")
    job.path.mkdir()
    job.submitted.write_text('{"queue": "pbs", "jobs": [3], "host": "login1"}')
    assert JobRecord(job, "pbs").submission == QueueEntry(queue="pbs", jobs=("3",))
