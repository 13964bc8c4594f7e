"""A run that its cluster interrupted is queued until its host continues it as a second job."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.launchers import DetachedJob, DetachedLauncher
from rlnb.plugin import Manifest, Problem, Result
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.record import RunRecord
from rlnb.reports.sections import _summary
from rlnb.spec import Job, Json
from rlnb.storage import files
from rlnb.storage.serial import to_json


@pytest.fixture(scope="module")
def trained(echo_root: Path) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", max_iterations=4).wait(60)


@pytest.fixture
def interrupted(copied: Callable[[list[rlnb.Run]], list[rlnb.Run]], trained: rlnb.Run) -> rlnb.Run:
    """A training that its cluster ended. This process is its living host."""
    (run,) = copied([trained])
    job = run.jobs[0].folder
    job.result.unlink()
    job.handle.unlink()
    files.write_once(job.result, to_json(Result(outcome="timeout", values={"interrupted": True})))
    created_s = psutil.Process().create_time()
    files.write_once(job.handle, {"host": socket.gethostname(), "pid": os.getpid(), "created_s": created_s})
    return rlnb.Run(run.path)


def test_an_interrupted_run_is_queued_while_its_host_lives(interrupted: rlnb.Run) -> None:
    assert interrupted.state == "queued"
    with pytest.raises(rlnb.RunError, match="still queued"):
        interrupted.resume()
    handle = interrupted.jobs[0].folder.handle
    handle.write_text(json.dumps({**json.loads(handle.read_text()), "created_s": 1.0}))
    assert rlnb.Run(interrupted.path).state == "timeout", "no process can continue it"


def test_the_time_to_save_is_that_of_the_cancellation(tmp_path: Path) -> None:
    job = DetachedJob(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    assert job.save_s == 0.0
    record = job.path / "cancel.json"
    record.write_text(json.dumps({"save_s": 120}))
    assert job.save_s == 120.0
    for damaged in ("{", json.dumps({"save_s": "long"}), json.dumps({"save_s": None})):
        record.write_text(damaged)
        assert job.save_s == 0.0, "a damaged record must not keep the host from ending the job"


def test_a_run_that_is_about_to_go_on_says_after_what(interrupted: rlnb.Run) -> None:
    result = interrupted.jobs[0].folder.result
    files.replace_json(result, Result(outcome="failed", error="node 1 is lost", values={"interrupted": True}))
    run = rlnb.Run(interrupted.path)
    assert (run.state, run.reason) == ("queued", "the training goes on after: node 1 is lost")
    handle = run.jobs[0].folder.handle
    handle.write_text(json.dumps({**json.loads(handle.read_text()), "created_s": 1.0}))
    assert (run.state, run.reason) == ("failed", "node 1 is lost")


def test_the_reason_that_a_host_records_is_shown_while_the_host_lives(interrupted: rlnb.Run) -> None:
    job = begun_and_taken_away(interrupted, TrainOptions())
    folder = interrupted.record.folder.jobs()[-1]
    folder.result.unlink()
    folder.handle.write_text(interrupted.jobs[0].folder.handle.read_text())
    run = rlnb.Run(interrupted.path)
    assert (run.state, run.reason, run.waits) == ("queued", "", None)
    job.beat()
    job.waits("PENDING (JobHeldAdmin)")
    assert (run.reason, run.waits_for) == ("PENDING (JobHeldAdmin)", [])
    assert repr(run).endswith(", queued: PENDING (JobHeldAdmin))")
    folder.handle.write_text(json.dumps({**json.loads(folder.handle.read_text()), "created_s": 1.0}))
    for path in (folder.command, *folder.beats()):
        os.utime(path, (1.0, 1.0))
    assert (run.state, run.waits) == ("lost", None)
    assert run.reason == "its process ended without a result"


def test_the_silence_of_an_agent_is_measured_by_the_clock_of_the_file_system(interrupted: rlnb.Run) -> None:
    job = begun_and_taken_away(interrupted, TrainOptions())
    job.beat()
    assert job.silence_s == 0.0, "no agent has started"
    beat = interrupted.record.folder.jobs()[-1].alive()
    beat.touch()
    silent_s = beat.stat().st_mtime - 30.0
    os.utime(beat, (silent_s, silent_s))
    assert 29.0 < job.silence_s < 31.0


def test_an_interrupted_run_that_its_host_does_not_continue_has_ended(interrupted: rlnb.Run) -> None:
    DetachedJob(interrupted.jobs[0].folder.path).close()
    assert rlnb.Run(interrupted.path).state == "timeout", "the host lives on for the jobs of other runs"


class Waiting(DetachedLauncher):
    """Keeps jobs for later."""

    name, nodes, nproc_per_node, max_running, walltime_s = "local", 1, None, None, None
    settings: Mapping[str, Json] = {}

    def __init__(self) -> None:
        self.job_dirs: list[Path] = []

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        return ()

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Json]:
        self.job_dirs.append(job_dir)
        return self.own_handle()


def test_a_host_can_continue_a_run_itself(interrupted: rlnb.Run) -> None:
    interrupted.checkpoints[-1].unlink()
    lost = Result(outcome="failed", error="node 1 is lost", values={"interrupted": True})
    files.replace_json(interrupted.jobs[0].folder.result, lost)
    launcher = Waiting()
    assert DetachedJob(interrupted.jobs[0].folder.path).go_on(3, launcher)
    run = rlnb.Run(interrupted.path)
    assert [job.folder.path for job in run.jobs[1:]] == launcher.job_dirs
    assert run.state == "queued"


@pytest.mark.parametrize(("lifeline", "option"), [(True, "--lifeline"), (False, "--revocable")])
def test_an_agent_ends_with_its_host_or_by_a_signal_of_the_queue(tmp_path: Path, lifeline: bool, option: str) -> None:
    argv = DetachedJob(tmp_path / "runs" / "first" / "jobs" / "0-train").agent_argv(lifeline=lifeline)
    assert {"--lifeline", "--revocable"} & {*argv} == {option}


def test_an_interrupted_run_can_be_cancelled(interrupted: rlnb.Run) -> None:
    interrupted.cancel()
    assert rlnb.Run(interrupted.path).state == "timeout"
    assert not DetachedJob(interrupted.jobs[0].folder.path).go_on(3)


def test_the_time_that_a_cancellation_gives_for_saving_is_known(interrupted: rlnb.Run) -> None:
    job = DetachedJob(interrupted.jobs[0].folder.path)
    assert job.save_s == 0.0
    interrupted.cancel(save_s=120)
    assert job.save_s == 120.0


def test_a_training_without_iterations_left_is_not_continued(interrupted: rlnb.Run) -> None:
    last = interrupted.checkpoints[-1]
    last.rename(last.with_name("model_4.json"))  # the name in a library that counts from 1
    assert not DetachedJob(interrupted.jobs[0].folder.path).go_on(3)
    assert len(rlnb.Run(interrupted.path).jobs) == 1


def chosen(run: rlnb.Run) -> str:
    """Return a checkpoint that is not the newest."""
    return str(run.checkpoints[0].relative_to(run.path))


def begun_and_taken_away(run: rlnb.Run, options: TrainOptions, reason: str = "interrupted") -> DetachedJob:
    """Add a training that its cluster ended before it started. This process is its host."""
    folder = run.record.folder.next_job("train")
    files.write_once(folder.job, to_json(Job(kind="train", options=to_json(options))))
    files.write_once(folder.command, files.read_json(run.jobs[0].folder.command))
    values = {"interrupted": True, reason: True}
    files.write_once(folder.result, to_json(Result(outcome="failed", error="the queue ended it", values=values)))
    return DetachedJob(folder.path)


def test_a_training_interrupted_before_its_start_is_continued(interrupted: rlnb.Run) -> None:
    options = TrainOptions(checkpoint=chosen(interrupted), max_iterations=6)
    assert begun_and_taken_away(interrupted, options).go_on(3)
    run = rlnb.Run(interrupted.path).wait(60)
    assert (len(run.jobs), run.progress) == (3, (6, 6))
    (restart,) = run.restarts
    assert str(restart) == "restart 2 of 3 after: the queue ended it", "the second interruption of the run"
    assert "<td style='text-align:left'>restart 2 of 3</td>" in run._repr_html_()
    assert ("restart 2 of 3", "the queue ended it") in [*_summary(run)]
    assert options_of(TrainOptions, run.jobs[-1].folder) == options, "from the chosen checkpoint, not from the newest"


def test_nodes_given_back_are_no_interruption(interrupted: rlnb.Run) -> None:
    options = TrainOptions(checkpoint=chosen(interrupted), max_iterations=6)
    assert begun_and_taken_away(interrupted, options, reason="given_back").go_on(1), (
        "the other job was interrupted once"
    )
    run = rlnb.Run(interrupted.path).wait(60)
    assert run.progress == (6, 6)
    assert not run.restarts, "no interruption has led to the last job"


def test_a_launch_that_failed_is_tried_once_more_and_is_no_interruption(interrupted: rlnb.Run) -> None:
    options = TrainOptions(checkpoint=chosen(interrupted), max_iterations=6)
    failed = begun_and_taken_away(interrupted, options, reason="launch_failed")
    assert failed.go_on(0), "a run that is never restarted has not begun"
    run = rlnb.Run(interrupted.path).wait(60)
    assert run.progress == (6, 6)
    (restart,) = run.restarts
    assert str(restart) == "restart 1 of 1 after: the queue ended it"


def test_two_launches_that_failed_in_a_row_end_the_run(interrupted: rlnb.Run) -> None:
    options = TrainOptions(checkpoint=chosen(interrupted), max_iterations=6)
    begun_and_taken_away(interrupted, options, reason="launch_failed")
    assert not begun_and_taken_away(interrupted, options, reason="launch_failed").go_on(3)
    error = "the queue ended it. Not continued: no training of it could start, 2 times in a row"
    assert rlnb.Run(interrupted.path).reason == error
    begun_and_taken_away(interrupted, options, reason="interrupted")  # a training that began
    assert begun_and_taken_away(interrupted, options, reason="launch_failed").go_on(3), "the count starts anew"
    rlnb.Run(interrupted.path).wait(60)


def test_a_training_interrupted_before_its_start_can_be_resumed(interrupted: rlnb.Run) -> None:
    begun_and_taken_away(interrupted, TrainOptions(checkpoint=chosen(interrupted), max_iterations=6))
    run = rlnb.Run(interrupted.path).resume().wait(60)
    assert run.progress == (6, 6), "the max_iterations of the interrupted job"


def test_without_a_checkpoint_the_next_job_has_the_same_options(interrupted: rlnb.Run) -> None:
    origin = str(interrupted.checkpoints[-1])
    run = rlnb.train("Echo", library="echo", max_iterations=4, init_from=origin).wait(60)
    for checkpoint in run.checkpoints:
        checkpoint.unlink()
    options = TrainOptions(init_from=origin, trust=True)
    assert begun_and_taken_away(run, options).go_on(3)
    further = rlnb.Run(run.path).wait(60).jobs[-1]
    assert options_of(TrainOptions, further.folder) == options


def test_the_next_job_starts_at_the_newest_checkpoint_and_keeps_trust(interrupted: rlnb.Run) -> None:
    options = TrainOptions(checkpoint=chosen(interrupted), max_iterations=6, trust=True)
    job = begun_and_taken_away(interrupted, options)
    newest = interrupted.checkpoints[-1]
    later_s = time.time() + 1.0
    os.utime(newest, (later_s, later_s))
    assert job.go_on(3)
    further = rlnb.Run(interrupted.path).wait(60).jobs[-1]
    expected = dataclasses.replace(options, checkpoint=f"logs/{newest.name}")
    assert options_of(TrainOptions, further.folder) == expected


def test_an_interrupted_script_is_not_continued(root: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("open('model_1.pt', 'w').close()")
    job = begun_and_taken_away(rlnb.train(script=script).wait(60), TrainOptions())
    with pytest.raises(rlnb.RlnbError, match="the run of a script"):
        job.go_on(3)


def test_a_job_is_started_once(interrupted: rlnb.Run) -> None:
    before = [path.read_bytes() for path in interrupted.checkpoints], interrupted.metrics["reward"].values
    again = subprocess.run(
        [sys.executable, "-m", "rlnb.node", str(interrupted.jobs[0].folder.path)],
        capture_output=True,
        text=True,
    )
    assert again.returncode == 1
    assert "cannot be started twice" in again.stderr
    run = rlnb.Run(interrupted.path)
    assert ([path.read_bytes() for path in run.checkpoints], run.metrics["reward"].values) == before


def test_an_error_while_writing_the_heartbeat_is_ignored(
    interrupted: rlnb.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(*_: object, **__: object) -> NoReturn:
        raise OSError("Stale file handle")

    monkeypatch.setattr(os, "utime", stumble)
    DetachedJob(interrupted.jobs[0].folder.path).beat()


def test_the_error_of_a_lost_job_has_the_last_line_of_its_log(interrupted: rlnb.Run) -> None:
    job = interrupted.jobs[0].folder
    job.result.unlink()
    job.handle.write_text(json.dumps({**json.loads(job.handle.read_text()), "created_s": 1.0}))
    job.log().write_text("Traceback (most recent call last):\nImportError: random.py of yours\n")
    for beat in job.beats():
        os.utime(beat, (1.0, 1.0))
    with pytest.raises(rlnb.RunError, match=r"Last line of its log: ImportError: random.py of yours\n  log:  .*node0"):
        rlnb.Run(interrupted.path).wait(10)


def error_of(run: rlnb.Run) -> str:
    result = rlnb.Run(run.path).jobs[-1].result
    assert result is not None
    return result.error


def test_the_cause_that_the_queue_knows_replaces_the_agents_guess(interrupted: rlnb.Run) -> None:
    job = DetachedJob(interrupted.jobs[0].folder.path)
    job.explain("")
    assert error_of(interrupted) == ""
    job.explain("Slurm's job 7 was preempted")
    assert error_of(interrupted) == "Slurm's job 7 was preempted"


def test_the_cause_of_a_failure_of_the_training_itself_stays(root: Path) -> None:
    with pytest.raises(rlnb.RunError):
        rlnb.train("Echo", library="echo", max_iterations=4, agent={"crash_at": 2}).wait(60)
    run = rlnb.runs()[0]
    before = error_of(run)
    DetachedJob(run.jobs[0].folder.path).explain("Slurm's job 7 was preempted")
    assert before
    assert error_of(run) == before


def test_a_training_that_was_restarted_often_enough_says_so(interrupted: rlnb.Run) -> None:
    job = begun_and_taken_away(interrupted, TrainOptions(checkpoint=chosen(interrupted), max_iterations=6))
    job.explain("Slurm's job 7 was preempted")
    assert not job.go_on(1)
    assert error_of(interrupted) == (
        "Slurm's job 7 was preempted. Not continued: it was restarted 1 of 1 times (max_restarts)"
    )


def test_a_walltime_without_a_checkpoint_ends_the_training(interrupted: rlnb.Run) -> None:
    command = interrupted.jobs[0].folder.command
    later_s = time.time() + 60.0
    os.utime(command, (later_s, later_s))
    assert not DetachedJob(interrupted.jobs[0].folder.path).go_on(3)
    assert "No checkpoint was written before the end of the walltime" in error_of(interrupted)
    assert len(rlnb.Run(interrupted.path).jobs) == 1
    assert DetachedJob(interrupted.jobs[0].folder.path).go_on(3, Waiting(), needs_progress=False)


def test_a_library_that_cannot_resume_is_not_restarted_and_says_so(
    interrupted: rlnb.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunRecord, "library_spec", dataclasses.replace(plugins.library("echo"), resumes=False))
    assert not DetachedJob(interrupted.jobs[0].folder.path).go_on(3)
    assert "Not continued: The library 'echo' cannot resume a training" in error_of(interrupted)
    assert len(rlnb.Run(interrupted.path).jobs) == 1


def test_a_training_without_a_sound_checkpoint_says_why_it_is_not_continued(interrupted: rlnb.Run) -> None:
    for path in interrupted.checkpoints:
        path.write_bytes(b"")
    assert not DetachedJob(interrupted.jobs[0].folder.path).go_on(3)
    assert "Not continued: " in error_of(interrupted)
    assert "has no checkpoint that can be used" in error_of(interrupted)
