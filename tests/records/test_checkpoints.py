"""Checkpoints of runs: the best, the last, keeping only some, and starting from the weights of another run."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
import shutil
import time
import zipfile
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

import rlnb
from rlnb.errors import NotFiniteError
from rlnb.hooks import plugins
from rlnb.jobs.jobs import what_is_left
from rlnb.plugin import Command, Library, Result
from rlnb.records import checkpoints, remote
from rlnb.records.checkpoints import Checkpoints, Save, append_save, saves_of
from rlnb.records.checkpoints import is_whole_file as is_whole
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.record import RunRecord
from rlnb.records.remote import Remote
from rlnb.spec import Job
from rlnb.storage import files
from rlnb.worker.flight.guard import refuse_not_finite

ITERATIONS = 30
WRITTEN = [4, 9, 14, 19, 24, 29]
"""The echo library writes a checkpoint after every fifth iteration."""
WAIT_S = 60.0


def echo(**arguments: object) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", max_iterations=ITERATIONS, **arguments).wait(WAIT_S)  # type: ignore[arg-type]


def numbers(run: rlnb.Run) -> list[int]:
    return [int(path.stem.removeprefix("model_")) for path in run.checkpoints]


def test_the_last_and_the_best_by_any_metric(root: Path) -> None:
    run = echo(seed=1)
    assert numbers(run) == WRITTEN
    assert run.checkpoints.last == run.checkpoints[-1]
    rewards = run.metrics["reward"].values
    highest = max(WRITTEN, key=lambda iteration: rewards[iteration])
    assert run.checkpoints.best() == run.checkpoints[WRITTEN.index(highest)]
    assert run.checkpoints.best("success_rate", lowest=True) == run.checkpoints[0]
    assert run.checkpoints.best("fps") == run.checkpoints[-1], "the newest of equals"
    with pytest.raises(rlnb.NotFoundError, match=r"No metric.*'rewardx'.*reward"):
        run.checkpoints.best("rewardx")


def test_thousands_of_checkpoints_are_rated_in_a_moment(root: Path) -> None:
    run = echo()
    logs, count = run.path / "logs", 6_000
    writer = EventFileWriter(str(logs))
    for step in range(ITERATIONS, count):
        value = Summary.Value(tag="Train/mean_reward", simple_value=1.0 + step)
        writer.add_event(Event(wall_time=2e9 + step, step=step, summary=Summary(value=[value])))
    writer.close()
    newest = Path(shutil.copy(run.checkpoints[-1], logs / f"model_{count - 1}.json"))
    record = RunRecord(run.path)
    assert len(record.metrics["reward"]) == count
    checkpoints = Checkpoints([logs / f"model_{number}.json" for number in range(count)], record)
    begun = time.process_time()
    assert checkpoints.best() == newest
    assert time.process_time() - begun < 1.0


def test_a_run_without_checkpoints_has_neither(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=3, agent={"crash_at": 2})
    with pytest.raises(rlnb.RunError):
        run.wait(WAIT_S)
    assert run.checkpoints.last is None
    assert run.checkpoints.best() is None


def test_timesteps_in_names_are_counted_as_iterations(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = echo()
    started = run.started
    assert started is not None
    echo_of_timesteps = dataclasses.replace(
        plugins.library("echo"), checkpoint_iteration=lambda number, horizon: number / horizon - 1
    )
    monkeypatch.setattr(RunRecord, "library_spec", echo_of_timesteps)
    timesteps = (0, started.horizon // 2, started.horizon * 3)
    named = Checkpoints([run.path / f"model_{number}.json" for number in timesteps], RunRecord(run.path))
    assert named.iterations == [-1.0, -0.5, 2.0], "with three finished iterations, the last one is number 2"
    run.record.folder.next_job("train")
    assert named.iterations == [-1.0, -0.5, 2.0], "a later job without started.json changes nothing"


def test_keep_keeps_the_newest_and_the_best(root: Path) -> None:
    run = echo(keep=2, agent={"peak": 9})
    assert run.metrics["reward"].values.index(max(run.metrics["reward"].values)) == 9
    assert numbers(run) == [9, 24, 29]
    assert run.state == "completed"
    assert run.result is not None
    assert run.result.checkpoint == "logs/model_29.json"


@pytest.mark.parametrize("keep", [0, -1, 2.5, True, "2"])
def test_keep_must_be_a_positive_whole_number(root: Path, keep: object) -> None:
    with pytest.raises(rlnb.CheckError, match="keep="):
        echo(keep=keep)
    assert len(rlnb.runs()) == 0


def test_a_run_from_the_weights_of_another_has_it_as_its_parent(root: Path) -> None:
    parent = echo()
    run = echo(init_from=parent)
    assert run.manifest.parent == parent.id
    assert echo(init_from=parent.id).manifest.parent == parent.id
    named = echo(init_from=str(parent.checkpoints[0]))
    assert named.manifest.parent == str(parent.checkpoints[0])


def test_missing_weights_are_refused_before_a_run_is_created(root: Path, tmp_path: Path) -> None:
    with pytest.raises(rlnb.CheckError, match="neither a run nor the file of a checkpoint"):
        echo(init_from=tmp_path / "none.pt")
    empty = rlnb.train("Echo", library="echo", max_iterations=1, agent={"crash_at": 0})
    with pytest.raises(rlnb.RunError):
        empty.wait(WAIT_S)
    with pytest.raises(rlnb.RlnbError, match=r"init_from: .* has no complete checkpoint yet\. Wait for one"):
        echo(init_from=empty)
    with pytest.raises(rlnb.RlnbError, match="was trained with echo"):
        rlnb.train("Echo", library="another", init_from=empty)
    theirs = echo().wait(WAIT_S)
    with pytest.raises(
        rlnb.CheckError, match=f"belongs to {theirs.id}, trained with echo: its weights do not fit another"
    ):
        rlnb.train("Echo", library="another", init_from=theirs.checkpoints.last)
    assert len(rlnb.runs()) == 2


def test_pruning_lists_the_files_first_and_apply_removes_them(root: Path) -> None:
    run, long = echo(seed=1, agent={"peak": 4}), rlnb.train("Echo", library="echo", agent={"iteration_s": 0.05})
    plan = rlnb.runs().prune(keep=2)
    assert plan.unfinished == 1
    assert [(id, path.name) for id, path, _ in plan.items] == [(run.id, f"model_{n}.json") for n in (9, 14, 19)]
    assert numbers(run) == WRITTEN, "no file is deleted before apply()"
    assert "model_14.json" in plan._repr_html_()
    plan.apply()
    assert numbers(run) == [4, 24, 29]
    assert rlnb.runs().prune(keep=2).items == ()
    long.cancel()
    assert long.wait(WAIT_S).state == "cancelled"


def test_whole_runs_are_removed_only_with_whole(root: Path) -> None:
    run, other = echo(tags=["old"]), echo()
    rlnb.runs(tag="old").prune(whole=True).apply()
    assert not run.path.exists()
    assert [left.id for left in rlnb.runs()] == [other.id]
    with pytest.raises(rlnb.RlnbError, match="keep=0"):
        rlnb.runs().prune(keep=0)


def test_the_prune_command_deletes_only_with_yes(root: Path) -> None:
    from typer.testing import CliRunner

    from rlnb.cli.app import app

    run = echo()
    shown = CliRunner().invoke(app, ["runs", "prune", "--keep", "1"])
    assert shown.exit_code == 0
    assert "model_4.json" in shown.output
    assert "With --yes, this deletes" in shown.output
    assert numbers(run) == WRITTEN
    done = CliRunner().invoke(app, ["runs", "prune", "--keep", "1", "--yes"])
    assert "Deleted" in done.output
    assert numbers(run) == [29]
    assert run.id in CliRunner().invoke(app, ["runs"]).output


def test_stock_folders_are_not_pruned(root: Path, tmp_path: Path) -> None:
    stock = tmp_path / "logs" / "rsl_rl" / "cartpole" / "2026-01-01"
    (stock / "params").mkdir(parents=True)
    for name in ("params/env.yaml", "params/agent.yaml", "model_1.pt", "model_2.pt"):
        (stock / name).write_text("")
    assert len(rlnb.runs(tmp_path / "logs")) == 1
    assert rlnb.runs(tmp_path / "logs").prune(whole=True).items == ()


def test_a_torn_checkpoint_is_passed_over_and_the_one_before_is_named(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = echo()
    os.truncate(run.checkpoints[-1], 0)
    os.truncate(run.checkpoints[-2], 10)
    assert run.evaluate(episodes=4).checkpoint == "logs/model_19.json"
    assert "model_24.json is not a complete checkpoint: it is torn. model_19.json is used instead." in caplog.text
    with pytest.raises(
        rlnb.RunError, match=r"model_24\.json is not a complete checkpoint.*Use checkpoint='model_19\.json'"
    ):
        run.evaluate(episodes=4, checkpoint="model_24.json")
    assert rlnb.train("Echo", library="echo", init_from=run).wait(WAIT_S).manifest.parent == run.id
    caplog.set_level(logging.INFO)
    run.resume(max_iterations=40).wait(WAIT_S)
    assert f"{run.id} continues from logs/model_19.json, at iteration 20 of 40." in caplog.text
    assert f"{run.id} had finished 30 iterations. 10 of them are trained again." in caplog.text
    assert run.progress == (40, 40)
    for path in run.checkpoints:
        os.truncate(path, 0)
    with pytest.raises(rlnb.RunError, match=r"no checkpoint that can be used\. The newest, .* it is torn"):
        run.evaluate(episodes=4)


def poison(path: Path) -> None:
    """Make the weight of an echo checkpoint nan."""
    path.write_text(json.dumps({**json.loads(path.read_text()), "level": float("nan")}))


def test_a_checkpoint_that_is_not_finite_is_passed_over_and_named(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = echo(agent={"peak": 29})
    assert run.checkpoints.best() == run.checkpoints[-1]
    poison(run.checkpoints[-1])
    assert run.checkpoints.best() == run.checkpoints[-2]
    assert [path.name for path in run.checkpoints.spare(1)] == [f"model_{n}.json" for n in (4, 9, 14, 19)]
    assert run.evaluate(episodes=4).checkpoint == "logs/model_24.json"
    assert "model_29.json is not finite: level is nan. model_24.json is used instead." in caplog.text
    named = r"model_29\.json is not finite: level is nan\. Use checkpoint='model_24\.json'"
    with pytest.raises(rlnb.RunError, match=named):
        run.evaluate(episodes=4, checkpoint="model_29.json")
    with pytest.raises(rlnb.CheckError, match=f"init_from: .*{named}"):
        echo(init_from=run.checkpoints[-1])
    jobs = len(run.jobs)
    for path in run.checkpoints:
        poison(path)
    for verb in (run.resume, run.evaluate, run.fetch):
        with pytest.raises(rlnb.RunError, match=r"no checkpoint that can be used\. The newest, .* level is nan"):
            verb()
    with pytest.raises(rlnb.CheckError, match=r"init_from: .* no checkpoint that can be used"):
        echo(init_from=run)
    assert len(run.jobs) == jobs
    assert len(rlnb.runs()) == 1


def test_a_checkpoint_whose_companion_is_not_finite_is_evaluated_but_not_resumed(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = echo()
    buffered = dataclasses.replace(plugins.library("echo"), checkpoint_companions=("{stem}.buffer.npz",))
    monkeypatch.setattr(RunRecord, "library_spec", buffered)
    for path in run.checkpoints:
        np.savez(path.with_name(f"{path.stem}.buffer.npz"), rewards=np.zeros(4))
    *_, before, last = run.checkpoints
    companion = last.with_name("model_29.buffer.npz")
    np.savez(companion, rewards=np.array([0.0, np.nan]))
    assert run.checkpoints.last_sound() == last, "an evaluation reads no companion"
    assert not caplog.text
    assert run.checkpoints.last_sound(to_resume=True) == before
    fault = "is not finite: rewards is not finite in 1 of 2 values, first nan at index 1 in model_29.buffer.npz."
    assert f"model_29.json {fault} model_24.json is used instead." in caplog.text
    with pytest.raises(rlnb.RunError, match=re.escape(f"{fault} Use checkpoint='model_24.json'.")):
        run.resume(max_iterations=40, checkpoint="model_29.json")
    with pytest.raises(
        NotFiniteError, match=r"model_29\.buffer\.npz is not finite: .* Use checkpoint='model_24\.json'"
    ):
        refuse_not_finite(companion)
    for path in run.checkpoints[:-1]:
        path.unlink()
    assert run.checkpoints.other_fix(companion) == "Use another file."
    assert run.checkpoints.other_fix(last) == "Use another file.", "it never names the file itself"
    with pytest.raises(NotFiniteError, match=rf"no checkpoint that can be used\. The newest, model_29\.json, {fault}"):
        run.resume(max_iterations=40)


def test_an_archive_without_its_end_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"0" * 1000)
    assert is_whole(path)
    os.truncate(path, path.stat().st_size - 30)
    assert not is_whole(path)
    os.mkfifo(tmp_path / "model_2.pt")
    assert not is_whole(tmp_path / "model_2.pt")
    assert not is_whole(tmp_path)
    (tmp_path / "legacy.pt").write_bytes(b"\x80\x02")
    assert is_whole(tmp_path / "legacy.pt"), "a pickle of torch before 1.6 does not tell its length"


def test_a_pipe_or_a_folder_is_no_checkpoint(root: Path) -> None:
    run = echo()
    os.mkfifo(run.path / "logs" / "model_99.json")
    (run.path / "logs" / "model_98.json").mkdir()
    assert numbers(run) == WRITTEN


# -- checkpoint files ------------------------------------------------------------------------------------------------


BUFFERED = Library(
    name="buffered",
    backend="a:B",
    checkpoint_glob="model_*.npz",
    checkpoint_pattern=r"model_(\d+)\.npz$",
    checkpoint_companions=("{stem}.buffer.npz", "normaliser_{stem}.safetensors"),
)
FOLDERS = Library(
    name="folders",
    backend="a:B",
    checkpoint_glob="saves/step_*",
    checkpoint_pattern=r"step_(\d+)$",
    checkpoint_is_folder=True,
    checkpoint_companions=("{stem}.buffer.npz",),
)


def safetensors(path: Path, size: int = 8) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(size))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run with the checkpoints 4 and 9 of each library; the ninth has no buffer."""
    run = RunDir(tmp_path / "r")
    saves = run.logs / "saves"
    saves.mkdir(parents=True)
    for number in (4, 9):
        np.savez(run.logs / f"model_{number}.npz", a=np.arange(4))
        folder = saves / f"step_{number}"
        (folder / "nested").mkdir(parents=True)
        (folder / ".metadata").write_text("m")
        (folder / "nested" / "weights.json").write_text("{}")
    for buffer in (run.logs / "model_4.buffer.npz", saves / "step_4.buffer.npz"):
        np.savez(buffer, b=np.arange(9))
    safetensors(run.logs / "normaliser_model_4.safetensors")
    (saves / "step_12").write_text("no folder")
    (saves / ".part-step_14").mkdir()
    (run.logs / "model_12.npz").mkdir()
    return run


def names(run: RunDir, library: Library) -> list[str]:
    return [path.name for path in checkpoints.checkpoints_of(run, library)[0]]


def test_a_companion_is_no_checkpoint_of_its_own(run: RunDir) -> None:
    assert names(run, BUFFERED) == ["model_4.npz", "model_9.npz"]


def test_a_checkpoint_may_be_a_folder(run: RunDir) -> None:
    assert names(run, FOLDERS) == ["step_4", "step_9"]


def test_the_newest_checkpoint_is_named_by_its_path_in_the_folder_of_the_run(run: RunDir, tmp_path: Path) -> None:
    assert checkpoints.newest_of(run, BUFFERED) == "logs/model_9.npz"
    assert checkpoints.newest_of(run, FOLDERS) == "logs/saves/step_9"
    assert checkpoints.newest_of(RunDir(tmp_path), BUFFERED) is None


def test_the_size_is_that_of_all_files(run: RunDir) -> None:
    def bytes_of(*paths: str) -> int:
        return sum((run.logs / path).stat().st_size for path in paths)

    sizes = (
        checkpoints.size_of(run.logs / "model_4.npz", BUFFERED),
        checkpoints.size_of(run.logs / "saves/step_4", FOLDERS),
    )
    assert sizes == (
        bytes_of("model_4.npz", "model_4.buffer.npz", "normaliser_model_4.safetensors"),
        bytes_of("saves/step_4/.metadata", "saves/step_4/nested/weights.json", "saves/step_4.buffer.npz"),
    )
    assert checkpoints.size_of(run.logs / "model_7.npz", BUFFERED) == 0, "deleted a moment ago"


def test_all_files_are_removed_together(run: RunDir) -> None:
    checkpoints.remove(run.logs / "model_4.npz", BUFFERED)
    checkpoints.remove(run.logs / "saves/step_4", FOLDERS)
    assert names(run, BUFFERED) == ["model_9.npz"]
    assert names(run, FOLDERS) == ["step_9"]
    left = {path.relative_to(run.logs).as_posix() for path in run.logs.rglob("*4*")} - {"saves/.part-step_14"}
    assert left == set()


@pytest.mark.parametrize("torn", ["model_4.npz", "model_4.buffer.npz", "normaliser_model_4.safetensors"])
def test_a_torn_file_makes_the_checkpoint_incomplete(run: RunDir, torn: str) -> None:
    checkpoint = run.logs / "model_4.npz"
    assert checkpoints.is_whole(checkpoint, BUFFERED)
    os.truncate(run.logs / torn, (run.logs / torn).stat().st_size - 3)
    assert not checkpoints.is_whole(checkpoint, BUFFERED)
    assert checkpoints.is_whole(run.logs / "model_9.npz", BUFFERED), "no companion was saved"


def test_a_folder_is_complete_if_its_files_are(run: RunDir) -> None:
    checkpoint = run.logs / "saves/step_4"
    assert checkpoints.is_whole(checkpoint, FOLDERS)
    assert not checkpoints.is_whole(run.logs / "saves/step_12", FOLDERS), "a file"
    assert not checkpoints.is_whole(run.logs / "model_12.npz", BUFFERED), "a folder"
    (checkpoint / "nested/weights.json").write_text("{")
    assert not checkpoints.is_whole(checkpoint, FOLDERS)
    empty = run.logs / "saves/step_20"
    empty.mkdir()
    assert not checkpoints.is_whole(empty, FOLDERS)


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\x02" + bytes(7) + b"[]", b"\x02" + bytes(7) + b"{}tail"])
def test_a_file_that_is_not_safetensors_is_not_whole(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    assert not checkpoints.is_whole_file(path)


@pytest.mark.parametrize(
    ("library", "path", "is_part"),
    [
        (BUFFERED, "model_4.npz", True),
        (BUFFERED, "model_4.buffer.npz", True),
        (BUFFERED, "normaliser_model_4.safetensors", True),
        (BUFFERED, "other.safetensors", False),
        (FOLDERS, "saves/step_4/nested/weights.json", True),
        (FOLDERS, "saves/step_4.buffer.npz", True),
        (FOLDERS, "saves/step_4", False),
        (FOLDERS, "saves/notes.txt", False),
        (FOLDERS, "step_4/weights.json", False),
    ],
)
def test_the_files_of_a_checkpoint_are_known_by_their_paths(library: Library, path: str, is_part: bool) -> None:
    assert checkpoints.belongs(PurePosixPath(path), library) is is_part


def test_a_checkpoint_is_far_until_all_its_files_have_arrived(run: RunDir) -> None:
    sizes = {
        "logs/model_4.npz": 1,
        "logs/model_4.buffer.npz": 1,
        "logs/model_9.buffer.npz": 1,
        "logs/model_15.npz": 1,
        "logs/model_15.buffer.npz": 1,
        "logs/saves/step_9/shard_2.npz": 1,
        "logs/saves/step_15/nested/weights.json": 1,
        "logs/saves/step_15/.metadata": 1,
        "logs/saves/step_15.buffer.npz": 1,
        "media/model_15.npz": 1,
    }
    remote.write(run, Remote(place="gpu7", files=sizes))
    paths, far, _ = checkpoints.checkpoints_of(run, BUFFERED)
    assert [path.name for path in paths] == ["model_4.npz", "model_9.npz", "model_15.npz"]
    assert {path.name for path in far} == {"model_9.npz", "model_15.npz"}
    assert [path.name for path in checkpoints.remote_files_of(run, run.logs / "model_15.npz", BUFFERED)] == [
        "model_15.buffer.npz",
        "model_15.npz",
    ], "the checkpoint's own name is the last"
    paths, far, _ = checkpoints.checkpoints_of(run, FOLDERS)
    assert [path.name for path in paths] == ["step_4", "step_9", "step_15"]
    assert {path.name for path in far} == {"step_9", "step_15"}
    assert [path.name for path in checkpoints.remote_files_of(run, run.logs / "saves/step_15", FOLDERS)] == [
        "step_15.buffer.npz",
        ".metadata",
        "weights.json",
    ]


# -- saves -----------------------------------------------------------------------------------------------------------


def test_a_training_records_each_checkpoint_with_its_time(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=12).wait(60)
    saves = saves_of(run.jobs[0].folder)
    assert saves is not None
    assert [save.file for save in saves] == ["model_4.json", "model_9.json", "model_11.json"]
    started = run.started
    assert started is not None
    assert all(save.size == (run.path / "logs" / save.file).stat().st_size for save in saves)
    assert all(0 < save.duration_s < 5 and save.end_s > started.time_s for save in saves)
    run.evaluate(2)
    assert len(saves_of(run.jobs[0].folder) or ()) == 3, "an evaluation writes no checkpoint"


def test_torn_and_foreign_lines_are_skipped(tmp_path: Path) -> None:
    job = JobDir(tmp_path)
    assert saves_of(job) is None
    save = Save(file="model_1.pt", end_s=2.0, duration_s=0.5)
    append_save(job, save)
    with open(job.saves, "a") as file:
        file.write('[1]\n{"file": 3}\n{"file": "model_2.pt", "end')
    assert saves_of(job) == [save]


def test_a_folder_that_was_removed_ends_no_training(tmp_path: Path) -> None:
    append_save(JobDir(tmp_path / "gone"), Save(file="model_1.pt", end_s=2.0, duration_s=0.5))


# -- a training that goes on from an older checkpoint ----------------------------------------------------------------


@pytest.fixture
def back(root: Path) -> rlnb.Run:
    """A run of 25 iterations, of which those after the tenth were trained again up to the 16th."""
    run = rlnb.train("Echo", library="echo", max_iterations=25).wait(WAIT_S)
    assert numbers(run) == [4, 9, 14, 19, 24]
    return run.resume(checkpoint="model_9.json", max_iterations=16).wait(WAIT_S)


def test_checkpoints_that_a_run_has_taken_back_are_not_its_newest_nor_its_best(back: rlnb.Run) -> None:
    abandoned = {back.path / "logs" / f"model_{number}.json" for number in (19, 24)}
    assert back.checkpoints.abandoned == abandoned
    assert [path.name for path in back.checkpoints[2:]] == [f"model_{number}.json" for number in (4, 9, 14, 15)]
    assert back.checkpoints.iterations == [None, None, 4, 9, 14, 15]
    assert back.result is not None
    assert back.result.checkpoint == "logs/model_15.json"
    assert back.checkpoints.best() not in abandoned
    assert back.evaluate(2).checkpoint.startswith("logs/model_15.json")


def test_a_training_that_never_began_takes_nothing_back(back: rlnb.Run) -> None:
    before = list(back.checkpoints)
    job = Job(kind="train", options={"checkpoint": "logs/model_4.json"})
    last = back.record.folder.next_job("train", lambda _: {"job.json": job, "command.json": Command(argv=("x",))})
    files.write_once(last.result, Result(outcome="cancelled"))
    run = rlnb.Run(back.path)
    assert list(run.checkpoints) == before
    assert what_is_left(run, 30).checkpoint == "logs/model_15.json"
    assert {path.name for _, path, _ in rlnb.Runs([run]).prune(keep=4).items} == {"model_19.json", "model_24.json"}


def test_a_training_leaves_what_it_has_taken_back_and_prune_lists_it(back: rlnb.Run) -> None:
    abandoned = {"model_19.json", "model_24.json"}
    assert {path.name for path in back.checkpoints.spare(1)} & abandoned == set()
    assert {path.name for path in back.checkpoints.spare(1, abandoned=True)} >= abandoned
    assert "model_15.json" not in {path.name for path in back.checkpoints.spare(1, abandoned=True)}


def test_a_checkpoint_that_was_just_replaced_is_none_that_was_taken_back(back: rlnb.Run) -> None:
    """Between its last rename and its record, a file is known by its time alone."""
    record = back.jobs[-1].folder.saves
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(line for line in lines if "model_14" not in line))
    assert "model_14.json" not in {path.name for path in back.checkpoints.abandoned}
    started = back.jobs[-1].folder.started.stat().st_mtime
    os.utime(back.path / "logs" / "model_14.json", (started - 1, started - 1))
    assert "model_14.json" in {path.name for path in back.checkpoints.abandoned}


def test_what_was_taken_back_stays_so_if_a_file_is_on_another_machine_or_gone(back: rlnb.Run) -> None:
    gone = back.path / "logs" / "model_24.json"
    gone.unlink()
    assert {path.name for path in back.checkpoints.abandoned} == {"model_19.json"}
    remote.write(back.record.folder, Remote(place="gpu7", files={"logs/model_24.json": 1}))
    run = rlnb.Run(back.path)
    assert {path.name for path in run.checkpoints.abandoned} == {"model_19.json", "model_24.json"}
    assert run.checkpoints.last is not None
    assert run.checkpoints.last.name == "model_15.json"


def test_a_run_that_has_only_given_up_checkpoints_says_so(back: rlnb.Run) -> None:
    for name in ("model_4", "model_9", "model_14", "model_15"):
        (back.path / "logs" / f"{name}.json").unlink()
    run = rlnb.Run(back.path)
    assert (run.checkpoints.last, run.checkpoints.last_whole()) == (None, None)
    with pytest.raises(
        rlnb.RunError,
        match=r"only checkpoints that it has abandoned. To return to the newest: checkpoint='model_24.json'",
    ):
        run.evaluate(2)


def test_damaged_records_of_a_resumed_training_hide_no_checkpoint(back: rlnb.Run) -> None:
    job = back.jobs[-1].folder
    with job.saves.open("a") as file:
        file.write("[" * 100_000 + "\n")
    assert back.checkpoints.last is not None
    job.started.write_text(json.dumps({**json.loads(job.started.read_text()), "horizon": 0}))
    assert len(rlnb.Run(back.path).checkpoints) == 6


def test_a_checkpoint_that_was_taken_back_counts_again_once_the_run_goes_on_from_it(back: rlnb.Run) -> None:
    again = back.resume(checkpoint="model_24.json", max_iterations=26).wait(WAIT_S)
    names = [path.name for path in again.checkpoints if path not in again.checkpoints.abandoned]
    assert names[-2:] == ["model_24.json", "model_25.json"]
