"""A job whose files the kernel gets as copies."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb
from rlnb.protocol.requests import RunJobThere
from rlnb.records.layout import JobDir
from rlnb.spec import Job, Result
from rlnb.storage import files
from rlnb.worker.requests import serve
from rlnb.worker.requests.serve import do_job

OPTIONS = {"episodes": 4, "num_envs": 4, "seed": 1, "deterministic": True, "checkpoint": "logs/model_4.json"}


def request(run: rlnb.Run, kind: str, out: Path, **changes: object) -> RunJobThere:
    out.mkdir()
    job_dir = run.path / "jobs" / f"1-{kind}"
    job = Job(kind=kind, options={**OPTIONS, **changes})  # type: ignore[arg-type, dict-item]
    return RunJobThere(kind=kind, job_dir=str(job_dir), job=job, out=str(out))  # type: ignore[arg-type]


def test_the_result_is_the_last_copy(root: Path, tmp_path: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5).wait(60)
    answer = do_job(request(run, "evaluate", tmp_path / "out"))
    assert [*answer.files] == ["jobs/1-evaluate/evaluation.json", "jobs/1-evaluate/result.json"]
    for name, copy in answer.files.items():
        assert Path(copy).parent == tmp_path / "out"
        assert Path(copy).read_bytes() == (run.path / name).read_bytes()


def test_a_job_that_fails_leaves_no_folder(root: Path, tmp_path: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5).wait(60)
    with pytest.raises(FileNotFoundError):
        do_job(request(run, "evaluate", tmp_path / "out", checkpoint="logs/gone.json"))
    assert not (run.path / "jobs" / "1-evaluate").exists()


def test_films_and_exports_are_copied(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5).wait(60)

    def export(kind: str, folder: Path) -> None:
        for name in ("exports/policy.onnx", f"media/{folder.name}.mp4", "media/0-train.mp4"):
            (run.path / name).parent.mkdir(exist_ok=True)
            (run.path / name).write_text(name)
        result = Result(outcome="completed", values={"onnx": "exports/policy.onnx"})
        files.write_once(JobDir(folder).result, result)

    monkeypatch.setattr(serve, "do", export)
    answer = do_job(request(run, "export", tmp_path / "out"))
    assert [*answer.files] == ["media/1-export.mp4", "exports/policy.onnx", "jobs/1-export/result.json"]
