"""Where the files of a run lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb import options
from rlnb.records.layout import JobDir, RunDir, run_dir_of
from rlnb.settings import Root, default_root


def test_the_root_is_the_variable_or_a_default_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLNB_ROOT", "elsewhere")
    assert default_root() == tmp_path / "elsewhere"
    monkeypatch.delenv("RLNB_ROOT")
    assert default_root() == tmp_path / "rlnb-runs"


def test_the_setting_overrides_the_variable(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "root", str(tmp_path / "mine"))
    assert options.folders == Root(tmp_path / "mine")
    assert options.folders.runs == tmp_path / "mine" / "runs"


def test_jobs_are_numbered_in_order_beyond_ten(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    made = [run.next_job("train" if number % 2 else "evaluate") for number in range(12)]
    assert [job.number for job in made] == list(range(12))
    assert run.jobs() == made
    assert (made[11].path.name, made[11].kind) == ("11-train", "train")


def test_foreign_files_among_the_jobs_are_skipped(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert run.jobs() == []
    run.next_job("train")
    (tmp_path / "jobs" / ".DS_Store").touch()
    (tmp_path / "jobs" / "notes").mkdir()
    assert [job.path.name for job in run.jobs()] == ["0-train"]


def test_a_job_knows_its_run_and_its_logs(tmp_path: Path) -> None:
    job = RunDir(tmp_path).next_job("train")
    assert run_dir_of(job.path) == RunDir(tmp_path)
    job.log(1).touch()
    job.log(0).touch()
    job.alive().touch()
    assert job.logs() == [job.log(0), job.log(1)]
    assert JobDir(tmp_path / "none").logs() == []
