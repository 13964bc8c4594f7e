"""Jobs of a run: how they start, also in a warm simulator, and what a person is told."""

from __future__ import annotations

import dataclasses
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

import rlnb
from rlnb.cli.training import show_run
from rlnb.errors import RlnbError
from rlnb.jobs import jobs
from rlnb.jobs.jobs import in_simulator, say_losses, say_where, what_is_left
from rlnb.launchers import LocalLauncher, Resources
from rlnb.plugin import Manifest, Result
from rlnb.records.flight import Flight, write
from rlnb.records.layout import RunDir
from rlnb.records.options import CheckpointOptions, TrainOptions
from rlnb.records.record import JobRecord, RunRecord
from rlnb.reports.sections import _summary
from rlnb.simulation.pool import SimulatorPlace
from rlnb.spec import Job, JobKind
from rlnb.storage import files

WAIT_S = 60.0
LOST = {"iteration": "restored: 4", "replay buffer": "NOT restored: it is not saved"}


@pytest.fixture(scope="module")
def trained(echo_root: Path) -> rlnb.Run:
    """A run with checkpoints of the iterations 4 and 9."""
    return rlnb.train("Echo", library="echo", max_iterations=10).wait(WAIT_S)


@pytest.fixture
def resumed(trained: rlnb.Run) -> rlnb.Run:
    """The run, as if its training had continued without a part of its state."""
    path = trained.jobs[0].folder.started
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "restored": LOST}))
    return rlnb.Run(trained.path)


def test_a_lost_part_of_the_state_is_told_once_per_wait(resumed: rlnb.Run, caplog: pytest.LogCaptureFixture) -> None:
    resumed.wait(WAIT_S)
    assert caplog.messages == [
        f"{resumed.id} was resumed without a part of its state. replay buffer: NOT restored: it is not saved"
    ]


def test_a_lost_part_is_shown(resumed: rlnb.Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert "replay buffer, resumed</td>" in resumed._repr_html_()
    show_run(resumed)
    assert "replay buffer, resumed" in capsys.readouterr().out
    assert ("replay buffer, resumed", LOST["replay buffer"]) in [*_summary(resumed)]


def test_nothing_is_told_before_the_training_has_started(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(WAIT_S)
    assert say_losses(run)
    run.jobs[0].folder.started.unlink()
    assert not say_losses(rlnb.Run(run.path))
    assert not caplog.messages


def test_the_iterations_that_are_trained_again_are_told_if_they_are_many(
    trained: rlnb.Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    rest = TrainOptions(checkpoint="logs/model_4.json", max_iterations=12)
    say_where(trained, rest, done=9)
    assert caplog.messages == [f"{trained.id} continues from logs/model_4.json, at iteration 5 of 12."]
    say_where(trained, rest, done=11)
    assert caplog.messages[-1] == f"{trained.id} had finished 11 iterations. 6 of them are trained again."


# -- in simulator ----------------------------------------------------------------------------------------------------


def test_an_interrupted_evaluation_has_a_result(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5).wait(WAIT_S)

    class Interrupted:
        def request(self, *_: object, **__: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(SimulatorPlace, "running", lambda *_: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        in_simulator(run.record, "evaluate", CheckpointOptions(checkpoint="logs/model_4.json"))
    assert [job.state() for job in run.jobs] == ["completed", "cancelled"]


@pytest.mark.parametrize(
    "name",
    ["jobs/1-evaluate/order.json", "jobs/0-train/result.json", "manifest.json", "media/../manifest.json", "/media/a"],
)
def test_another_machine_writes_no_other_files_than_those_of_its_job(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5).wait(WAIT_S)
    folder = run.record.folder.next_job("evaluate", lambda _: {"job.json": Job(kind="evaluate")})
    out = folder.path / ".there"
    out.mkdir()
    (out / "0-film.mp4").write_bytes(b"film")
    (out / "1-result.json").write_text("{}")
    with pytest.raises(RlnbError, match="is no file of this job"):
        jobs._take(folder, {name: str(out / "1-result.json")})
    jobs._take(folder, {"media/1-evaluate.mp4": "/a/path/of/that/machine/0-film.mp4"})
    assert (run.path / "media" / "1-evaluate.mp4").read_bytes() == b"film"
    assert files.read_json(run.path / "manifest.json")


# -- jobs ------------------------------------------------------------------------------------------------------------


def echo(**arguments: object) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **arguments)  # type: ignore[arg-type]


def test_a_job_that_its_launcher_cannot_start_leaves_no_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait(60)

    def refuse(*_: object) -> NoReturn:
        raise rlnb.RlnbError("the queue is closed")

    monkeypatch.setattr(LocalLauncher, "submit", refuse)
    with pytest.raises(rlnb.RlnbError, match="the queue is closed"):
        run.resume(max_iterations=4)
    assert (len(run.jobs), run.state) == (1, "completed")
    assert not list(run.path.glob("jobs/0-train/successor.json")), "it can be resumed later"
    with pytest.raises(rlnb.RlnbError, match="the queue is closed"):
        rlnb.train("Echo", library="echo", max_iterations=2)
    assert [each.id for each in rlnb.runs()] == [run.id]


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_deterministic_training_gets_a_process_of_its_own(root: Path, deterministic: bool) -> None:
    manifest = Manifest(
        run_id="r",
        created="",
        task=rlnb.Task(id="Isaac-Cartpole"),
        library="rsl_rl",
        deterministic=deterministic,
        resources=Resources(device="cpu"),
    )
    new = jobs.NewJob(run_path=root / "r", manifest=manifest, job=Job(kind="train"), launcher=LocalLauncher())
    new.records("0-train")
    assert new.fits_simulator is not deterministic


def resume_twice(run: rlnb.Run) -> None:
    """Resume a run after another process has resumed it, but as if that had happened at the same moment."""
    earlier, rest = run.record.training, what_is_left(run, 20)
    run.resume(max_iterations=20)
    jobs.start_job(run.record, "train", rest, after=earlier)


def test_only_one_of_two_jobs_can_continue_a_training(root: Path) -> None:
    run = echo(max_iterations=10).wait(WAIT_S)
    with pytest.raises(jobs.ResumedError) as caught:
        resume_twice(run)
    assert str(caught.value) == (
        f"{run.id} has already been resumed, as job 1-train. Wait for it, or cancel it: "
        f"rlnb.get_run({run.id!r}).cancel()"
    )
    assert [folder.path.name for folder in run.record.folder.jobs()] == ["0-train", "1-train"]
    assert run.wait(WAIT_S).metrics["reward"].iterations == [*range(20)]


def test_the_error_names_the_record_of_a_job_whose_folder_was_deleted(root: Path) -> None:
    run = echo(max_iterations=10).wait(WAIT_S)
    run.resume(max_iterations=20).wait(WAIT_S)
    (run.path / "jobs" / "1-train").rename(run.path / "gone")  # its agent may still tidy up
    record = run.path / "jobs" / "0-train" / "successor.json"
    with pytest.raises(rlnb.RunError, match=f"The job '1-train', which has resumed .* Delete {record}"):
        run.resume(max_iterations=30)
    record.unlink()
    run.resume(max_iterations=30).wait(WAIT_S)


def test_a_job_is_not_added_to_a_run_that_has_been_deleted(root: Path) -> None:
    run = echo(max_iterations=10).wait(WAIT_S)
    earlier, rest = run.record.training, what_is_left(run, 20)
    run.path.rename(root / "gone")  # its agent may still tidy up
    with pytest.raises(rlnb.RunError, match="was deleted or moved while its job was made"):
        jobs.start_job(run.record, "train", rest, after=earlier)
    assert not run.path.exists()


def test_the_error_of_a_restart_says_which_one_it_was(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "r")
    run.path.mkdir()
    manifest = Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo")
    files.write_once(run.manifest, manifest)
    job = run.next_job("train", lambda _: {"job.json": Job(kind="train", restart=1, max_restarts=1)})
    files.write_once(job.result, Result(outcome="failed", error="node 1 is lost", values={"interrupted": True}))
    record = RunRecord(run.path)
    with pytest.raises(rlnb.RunError, match=r"^r \(train, restart 1 of 1\) failed: node 1 is lost\n"):
        jobs.raise_unless_completed(record, record.training)


@pytest.mark.parametrize(("lines", "is_above"), [(3, True), (40, False)])
def test_the_lines_of_own_code_are_above_the_log_and_a_whole_traceback_is_below(
    tmp_path: Path, lines: int, is_above: bool
) -> None:
    run = RunDir(tmp_path / "r")
    run.path.mkdir()
    files.write_once(run.manifest, Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo"))
    job = run.next_job("train", lambda _: {"job.json": Job(kind="train")})
    files.write_once(job.result, Result(outcome="failed", error="TypeError: no", detail="    a line\n" * lines))
    record = RunRecord(run.path)
    with pytest.raises(rlnb.RunError) as raised:
        jobs.raise_unless_completed(record, record.training)
    shown = str(raised.value).splitlines()
    assert shown.count("    a line") == lines
    assert (shown.index("    a line") == 1) == is_above
    assert shown[-1].startswith("  next: ") == is_above


@pytest.mark.parametrize("kind", ["evaluate", "export"])
def test_the_next_call_after_a_failed_evaluation_or_export_is_its_log(root: Path, kind: JobKind) -> None:
    run = echo(max_iterations=5).wait(WAIT_S)
    job = run.record.folder.next_job(kind, lambda _: {"job.json": Job(kind=kind)})
    files.write_once(job.result, Result(outcome="failed", error="no room"))
    with pytest.raises(rlnb.RunError, match=rf"\({kind}\) failed: no room\n.*\n  next: .*\.logs\(200\)$"):
        jobs.raise_unless_completed(run.record, JobRecord(job, "local"))


def test_a_long_job_is_looked_at_less_often() -> None:
    assert [jobs.pause_s(waited_s) for waited_s in (0.0, 10.0, 50.0, 100.0, 1e6)] == [0.1, 0.1, 0.5, 1.0, 1.0]


def test_a_launcher_for_a_run_without_a_simulator_is_refused(root: Path) -> None:
    run = echo(max_iterations=5).wait(WAIT_S)
    for verb in (run.evaluate, run.play):
        with pytest.raises(rlnb.RlnbError, match=r"echo has no simulator"):
            verb(launcher=rlnb.local())  # type: ignore[operator]
    with pytest.raises(rlnb.RunError, match=r"launcher= is not possible for .*, since echo has no simulator"):
        run.evaluate(launcher=rlnb.local())
    assert len(run.jobs) == 1


def test_the_advice_after_a_failure_is_a_call_that_can_help(root: Path) -> None:
    run = echo(max_iterations=20, agent={"crash_at": 12})

    def advice() -> str:
        with pytest.raises(rlnb.RunError) as raised:
            rlnb.get_run(run.id).wait(WAIT_S)
        return next(line for line in str(raised.value).splitlines() if "next:" in line)

    assert advice().endswith(".resume()")
    result, job = run.jobs[0].folder.result, run.jobs[0].folder
    result.write_text(json.dumps({**json.loads(result.read_text()), "error": "NotFiniteError: The reward is nan"}))
    assert advice().endswith(".resume()"), "a checkpoint from before, and no record of the steps"
    flight = Flight(
        what="The reward is nan", kind="reward", name="", label="", index=0, env=0, step=3, iteration=0, first_step=0
    )
    write(job.flight(0), dataclasses.replace(flight, replay_from=0), {}, {})
    assert advice().endswith(f"rlnb.get_run({run.id!r}).replay()"), (
        "a training that goes on would meet the same value again"
    )
    write(job.flight(0), flight, {}, {})
    assert advice().endswith(".flight"), "it cannot be replayed"
    shutil.rmtree(job.flight(0))
    job.started.rename(job.path / "hidden.json")
    assert advice().endswith(".logs(200)"), "it was refused at its start, as it would be again"
    (job.path / "hidden.json").rename(job.started)
    for path in run.checkpoints:
        path.write_text('{"iteration": 4, "level": NaN}')
    assert advice().endswith(".logs(200)")


@pytest.mark.parametrize(("gpus", "max_running", "slot"), [("0a,0b", 2, True), ("0a,0b", 3, False), ("0a", 1, False)])
def test_with_a_gpu_for_each_training_each_has_a_slot_with_its_own(
    root: Path, machine: Callable[..., None], gpus: str, max_running: int, slot: bool
) -> None:
    machine(gpus)
    run = echo(max_iterations=2, launcher=rlnb.local(max_running=max_running)).wait(WAIT_S)
    command = files.read_json(run.jobs[0].folder.command)
    assert isinstance(command, dict)
    assert (command["slots"], command["gpu_per_slot"]) == (1, slot)
