"""The record of the checkpoints that a training wrote."""

from __future__ import annotations

from pathlib import Path

import rlnb
from rlnb.records.checkpoints import Save, append_save, saves_of
from rlnb.records.layout import JobDir


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
