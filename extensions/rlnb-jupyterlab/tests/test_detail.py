"""A run as its tab shows it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from asking import asked, echo, refused
from rlnb_jupyterlab import detail
from rlnb_jupyterlab.watcher import key_of

import rlnb
from rlnb.storage import files


async def test_the_details_of_a_run_have_all_of_its_parts(jp_fetch: Any, root: Path) -> None:
    run = echo(tags=["first"]).wait(60)
    run.evaluate(4)
    (run.path / "media").mkdir(exist_ok=True)
    (run.path / "media" / "film.mp4").write_bytes(b"film")
    answer = await asked(jp_fetch, "runs", key_of(run))
    assert (answer["row"]["id"], answer["row"]["state"], answer["row"]["tags"]) == (run.id, "completed", ["first"])
    assert answer["row"]["iteration"] == answer["row"]["total"] == 3
    assert len(answer["row"]["spark"]) == 3
    assert dict(answer["overview"])["task"] == "Echo"
    assert [job["kind"] for job in answer["jobs"]] == ["train", "evaluate"]
    assert {"path": "media/film.mp4", "bytes": 4} in answer["files"]
    assert not any(file["path"].startswith(("jobs/", "notes/")) for file in answer["files"])
    assert answer["config"]["max_iterations"] == "3"
    assert answer["code"].splitlines()[2:6] == [
        *("run = rlnb.train(", "    'Echo',", "    library='echo',", "    max_iterations=3,")
    ]
    film = await jp_fetch("rlnb", "runs", key_of(run), "files", "media", "film.mp4")
    assert film.body == b"film"
    part = await jp_fetch("rlnb", "runs", key_of(run), "files", "media", "film.mp4", headers={"Range": "bytes=1-2"})
    assert (part.code, part.body, part.headers["Content-Range"]) == (206, b"il", "bytes 1-2/4")
    end = await jp_fetch("rlnb", "runs", key_of(run), "files", "media", "film.mp4", headers={"Range": "bytes=-1"})
    assert end.body == b"m"
    code, _ = await refused(
        jp_fetch, *f"runs/{key_of(run)}/files/media/film.mp4".split("/"), headers={"Range": "bytes=9-"}
    )
    assert code == 416
    assert "sandbox" in film.headers["Content-Security-Policy"]
    assert film.headers["X-Content-Type-Options"] == "nosniff"


def test_a_value_in_which_runs_differ_is_a_row(root: Path) -> None:
    first, second = echo(seed=1).wait(60), echo(seed=2).wait(60)
    table = detail.difference([first, second])
    assert table.columns == [first.id, second.id]
    assert ["seed", "1", "2"] in table.rows
    assert table.sources == [], "a task of a package has no copy of its source"
    with_cell(first, "SCALE = 1.0\n")
    with_cell(second, "SCALE = '<b>'\n")
    (lines,) = detail.difference([rlnb.Run(first.path), rlnb.Run(second.path)]).sources
    assert lines[-2:] == ["-SCALE = 1.0", "+SCALE = '<b>'"]


def with_cell(run: rlnb.Run, source: str) -> None:
    """Give a run the copy of a cell that a run with a simulator keeps."""
    folder = run.record.folder
    folder.source.mkdir()
    (folder.source / "puck.py").write_text(source)
    record = files.read_json(folder.manifest)
    folder.manifest.unlink()
    files.write_once(folder.manifest, {**record, "task": {**record["task"], "source": "/elsewhere/puck.py"}})


def test_records_and_hidden_files_are_not_offered(root: Path) -> None:
    run = echo().wait(60)
    (run.path / ".secret").write_text("x")
    names = {str(path.relative_to(run.path)) for path in detail.files(run)}
    assert "manifest.json" in names
    assert not any(name.startswith((".", "jobs/")) for name in names)
    for name in names:
        file = detail.open_offered(run, run.path / name)
        assert file is not None
        with file:
            assert file.read() == (run.path / name).read_bytes()
    assert detail.open_offered(run, run.path / ".secret") is None


async def test_an_invalid_evaluation_is_shown_with_what_is_wrong(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    run.evaluate(4)
    run.jobs[-1].folder.evaluation.write_text("{}")
    (evaluation,) = (await asked(jp_fetch, "runs", key_of(run)))["evaluations"]
    assert evaluation["title"] == "invalid evaluation"
    assert [name for name, _, _ in evaluation["rows"]] == ["problem"]


async def test_evaluations_that_are_too_large_are_not_read(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    run.evaluate(4)
    with open(run.jobs[-1].folder.evaluation, "r+b") as file:
        file.truncate(detail.MOST_EVALUATIONS + 1)
    (evaluation,) = (await asked(jp_fetch, "runs", key_of(run)))["evaluations"]
    assert evaluation == {"title": "8 MiB, too large for this tab", "rows": [["run.evaluations", "", ""]]}


def test_the_files_of_very_many_folders_are_not_listed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = echo().wait(60)
    for number in range(5):
        (run.path / "media" / str(number)).mkdir(parents=True)
        (run.path / "media" / str(number) / "file").touch()
    assert len([path for path in detail.files(run) if path.name == "file"]) == 5
    monkeypatch.setattr(detail, "MOST_FOLDERS", 3)
    assert len([path for path in detail.files(run) if path.name == "file"]) < 5


async def test_the_overview_has_the_diagnosis_and_the_alerts(jp_fetch: Any, root: Path) -> None:
    run = echo(max_iterations=160, agent={"goal": 0.0}, alerts="iteration >= 0").wait(60)
    deadline = time.monotonic() + 20
    while not run.alerts:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    overview = [tuple(fact) for fact in (await asked(jp_fetch, "runs", key_of(run)))["overview"]]
    assert ("diagnosis", "reward does not rise") in overview
    (fix,) = [value for name, value in overview if name == "fix"]
    assert fix.startswith("reward does not rise: The reward was ")
    (alert,) = [value for name, value in overview if name == "alert"]
    assert alert.startswith("iteration >= 0: iteration is ")


def test_a_checkpoint_of_iterations_that_were_trained_again_is_marked(root: Path) -> None:
    run = echo(max_iterations=15).wait(60)
    run.resume(checkpoint="model_4.json", max_iterations=8).wait(60)
    shown = {one.name: (one.iteration, one.abandoned) for one in detail.detail(run, "key").checkpoints}
    assert shown["model_14.json"] == (None, True)
    assert shown["model_7.json"] == (7, False)
