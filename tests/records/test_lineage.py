"""The runs that a run comes from, and those that come from it."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.plugin import Manifest, Result
from rlnb.records import lineage as lineages
from rlnb.records.layout import RunDir
from rlnb.records.repetition import copy_records
from rlnb.results import Lineage
from rlnb.spec import Job, Started
from rlnb.storage import files
from rlnb.storage.serial import to_json

HOSTILE = "<script>alert(1)</script>\x1b[31m"
STARTED: dict[str, Any] = {"hosts": ("a",), "devices": ("cpu",), "world_size": 1, "num_envs": 4, "horizon": 16}


def made(root: Path, id: str, **values: Any) -> rlnb.Run:
    """Return a run that consists of records only."""
    folder, number = RunDir(root / "runs" / id), values.pop("number", 0)
    (folder.jobs_folder / "0-train").mkdir(parents=True)
    folder.logs.mkdir()
    created = f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}+00:00"
    manifest = Manifest(run_id=id, created=created, **{"task": rlnb.Task(id="Echo"), "library": "echo", **values})
    folder.manifest.write_text(json.dumps(to_json(manifest)))
    (folder.jobs_folder / "0-train" / "result.json").write_text(json.dumps(to_json(Result(outcome="completed"))))
    return rlnb.Run(folder.path)


def tree(lineage: Lineage) -> list[tuple[int, str]]:
    return [(run.depth, run.id) for run in lineage.runs]


def test_a_run_that_comes_from_none_has_no_lineage(root: Path) -> None:
    made(root, "other")
    lineage = made(root, "alone").lineage()
    assert not lineage
    assert tree(lineage) == [(0, "alone")]
    assert repr(lineage) == "alone: completed  ← this run"


def test_a_resumed_initialised_and_repeated_training_is_a_tree(root: Path) -> None:
    first = rlnb.train("Echo", library="echo", max_iterations=5, name="walk").wait(60)
    first.resume(max_iterations=10).wait(60)
    second = rlnb.train("Echo", library="echo", max_iterations=5, init_from=first).wait(60)
    third = rlnb.train(like=second, seed=7).wait(60)
    assert first.lineage().resumed
    lineage = second.lineage()
    assert (lineage.parents, lineage.children) == ((first.id,), (third.id,))
    assert tree(lineage) == [(0, first.id), (1, second.id), (2, third.id)]
    walk, middle, last = lineage.runs
    assert (walk.title, walk.origin) == ("walk", "resumed from iteration 5")
    assert middle.origin == "initialised with model_9.json"
    assert last.origin == "repeat, initialised with model_9.json of walk"
    assert dict(last.changes) == {"seed": 7}
    assert (last.state, last.reward) == ("completed", third.metrics.last("reward"))
    lines = repr(lineage).splitlines()
    assert lines[1].startswith(f"└─ {second.id}: initialised with model_9.json, completed, reward ")
    assert lines[1].endswith("  ← this run")
    assert lines[2].startswith(f"   └─ {third.id}: repeat, initialised with model_9.json of walk, seed 7, completed")
    shutil.rmtree(second.path)
    (walk, middle, last) = third.lineage().runs
    assert (middle.id, middle.path, middle.status) == (second.id, None, "deleted or moved")
    assert walk.id == first.id, "the copy of the deleted run's manifest names the run before"


def test_a_chain_of_resumptions_and_restarts_is_one_line(root: Path) -> None:
    run = made(root, "one")
    for number, restart in enumerate((0, 1, 0), 1):
        folder = run.record.folder.next_job("train", lambda _, n=restart: {"job.json": Job(kind="train", restart=n)})
        started = Started(**STARTED, frames_per_step=64.0, first_iteration=100 * number, max_iterations=400)
        files.write_once(folder.started, started)
        files.write_once(folder.result, Result(outcome="completed"))
    lineage = rlnb.Run(run.path).lineage()
    assert lineage.resumed
    assert [one.origin for one in lineage.runs] == [
        "restarted from iteration 200, resumed 2 times, last from iteration 300"
    ]


def test_the_branches_of_a_tree_are_drawn_and_siblings_are_not(root: Path) -> None:
    for number, (id, parent) in enumerate({"a": None, "b": "a", "c": "b", "d": "b", "e": "a", "f": "c"}.items()):
        made(root, id, parent=parent, number=number)
    assert [line.split(":")[0] for line in repr(rlnb.get_run(f"{root}/runs/a").lineage()).splitlines()] == [
        *("a", "├─ b", "│  ├─ c", "│  │  └─ f", "│  └─ d", "└─ e")
    ]
    assert tree(rlnb.get_run(f"{root}/runs/d").lineage()) == [(0, "a"), (1, "b"), (2, "d")]


def test_a_student_shows_its_teacher_and_the_run_that_it_repeats(root: Path) -> None:
    made(root, "teacher", number=1)
    first = made(root, "first", number=2, inputs={"teacher": "teacher/logs/model_9.pt"})
    files.make_folder(root / "runs" / "again" / "like")
    again = made(root, "again", number=3, like="first", inputs={"teacher": "teacher/logs/model_9.pt"}, tags=("x",))
    copy_records(first.record, again.record.folder)
    lineage = again.lineage()
    assert tree(lineage) == [(0, "teacher"), (1, "first"), (2, "again")]
    assert lineage.parents == ("first", "teacher")
    assert lineage.runs[-1].origin == "repeat, model_9.pt of teacher as teacher"
    assert lineage.runs[-1].changes == {}
    other = made(root, "other", number=4, like="e", inputs={"teacher": "teacher/logs/model_9.pt"}).lineage()
    assert tree(other) == [(0, "teacher"), (0, "e"), (1, "other")], "an origin that is in no chain comes first"
    assert rlnb.get_run(f"{root}/runs/teacher").lineage().children == ("first", "again", "other")


def test_an_origin_may_be_a_path_of_a_run_or_any_file(root: Path) -> None:
    made(root, "20260101-000000-echo-echo-00aa")
    run = made(root, "moved", parent="/elsewhere/runs/20260101-000000-echo-echo-00aa/logs/model_4.pt")
    assert run.lineage().parents == ("20260101-000000-echo-echo-00aa",)
    assert run.lineage().runs[-1].origin == "initialised with model_4.pt"
    gone = made(root, "gone", parent="/elsewhere/runs/20260101-000000-echo-echo-00bb/logs/model_4.pt")
    assert [one.status for one in gone.lineage().runs] == ["deleted or moved", "completed"]
    foreign = made(root, "foreign", parent="/data/model.pt").lineage()
    assert not foreign.parents
    assert foreign.runs[-1].origin == "initialised with /data/model.pt"


def test_a_run_of_stock_isaac_lab_is_named_by_its_folder(root: Path) -> None:
    """Two that were started in the same second, of different tasks, have the same id."""
    second = made(root, "2026-01-01_12-00-00")
    of_other = made(root, "a", parent="/logs/rsl_rl/ant/2026-01-01_12-00-00/model_5.pt").lineage()
    assert not of_other.parents
    assert of_other.runs[-1].origin == "initialised with /logs/rsl_rl/ant/2026-01-01_12-00-00/model_5.pt"
    assert made(root, "b", parent=str(second.path / "model_5.pt")).lineage().parents == (second.id,)


def test_a_trial_of_a_sweep_says_so(root: Path) -> None:
    run = made(root, "one", tags=("sweep:rates", "trial:3"))
    assert run.lineage().runs[0].origin == "trial 3 of the sweep rates"


def test_an_archived_run_is_found(root: Path) -> None:
    old = made(root, "old")
    new = made(root, "new", like="old")
    rlnb.Runs([old]).archive().apply()
    assert "deleted" not in repr(new.lineage())
    assert "deleted" not in repr(new.lineage(among=rlnb.runs())), "also if the list lacks it"
    assert old.lineage().children == ("new",)


@pytest.mark.parametrize("like", ["one", "..", "../outside", "", "x/../one", "x\0y", HOSTILE, "x" * 5000])
def test_a_forged_origin_leads_nowhere(root: Path, like: str) -> None:
    made(root / "runs", "outside")
    lineage = made(root, "one", like=like, parent=like, inputs={like: like, "..": "/"}).lineage()
    for shown in (repr(lineage), lineage._repr_html_()):
        assert "<script" not in shown or shown == repr(lineage)
        assert "\x1b" not in shown
        assert len(shown) < 5000
    assert {one.path for one in lineage.runs} <= {None, root / "runs" / "one"}


def test_forged_cycles_end(root: Path) -> None:
    for id, like in {"a": "c", "b": "a", "c": "b", "d": "c"}.items():
        made(root, id, like=like)
    for run in rlnb.runs():
        lineage = run.lineage()
        ids = [one.id for one in lineage.runs]
        assert {"a", "b", "c"} <= {*ids}
        assert len({*ids}) == len(ids)
        assert repr(lineage).count("this run") == 1


def test_very_long_chains_and_very_many_children_are_cut(root: Path) -> None:
    for number in range(60):
        made(root, f"chain-{number}", parent=f"chain-{number - 1}" if number else None, number=number)
    for number in range(60):
        made(root, f"child-{number}", parent="chain-59", number=60 + number)
    lineage = rlnb.get_run("chain-59").lineage()
    assert [one.id for one in lineage.runs[:11]] == [f"chain-{number}" for number in range(49, 60)]
    assert lineage.has_older
    assert len(lineage.runs) == 11 + lineages.MOST_DESCENDANTS
    assert len(lineage.children) == 60
    assert repr(lineage).splitlines()[0] == "... older runs"
    assert repr(lineage).splitlines()[-1] == "... and 20 more later runs"
    first = rlnb.get_run("chain-0").lineage()
    assert first.hidden == 59 + 60 - lineages.MOST_DESCENDANTS
    assert max(one.depth for one in first.runs) == lineages.MOST_DESCENDANTS


def test_a_damaged_run_hides_no_other(root: Path) -> None:
    made(root, "a")
    made(root, "b", like="a")
    run = made(root, "c", like="b", number=1)
    made(root, "d", like="c", number=2)
    (root / "runs" / "b" / "manifest.json").write_text("{")
    assert [(one.id, one.status) for one in run.lineage().runs] == [
        *(("b", "cannot be read"), ("c", "completed"), ("d", "completed"))
    ]


def test_the_lineage_among_a_thousand_runs_takes_less_than_a_second(root: Path) -> None:
    for number in range(1000):
        made(root, f"run-{number:04}", parent=f"run-{number // 3:04}" if number else None, number=number)
    run = rlnb.get_run(f"{root}/runs/run-0100")
    run.lineage()  # libraries are imported once
    begin_s = time.process_time()
    lineage = run.lineage()
    assert time.process_time() - begin_s < 1.0
    assert lineage.children == ("run-0300", "run-0301", "run-0302")
    listed = rlnb.runs()
    begin_s = time.process_time()
    assert run.lineage(among=listed) == lineage
    assert time.process_time() - begin_s < 1.0
