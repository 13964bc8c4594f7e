"""A list of runs that is kept up to date."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

import rlnb
from rlnb.run import catalog


def echo(**arguments: object) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **{"max_iterations": 2, **arguments})  # type: ignore[arg-type]


def ids(runs: object) -> list[str]:
    return [run.id for run in runs]  # type: ignore[attr-defined]


def test_what_is_new_what_goes_on_and_what_is_gone(root: Path) -> None:
    found = rlnb.Catalog([root])
    assert found.refresh().updates == ()
    ended = echo().wait(60)
    live = echo(max_iterations=1000, agent={"iteration_s": 0.1})
    assert set(ids(found.refresh().updates)) == {ended.id, live.id}
    assert ids(found.refresh().updates) == [live.id], "what has ended is not told again"
    assert ids(found.runs) == [live.id, ended.id]
    live.cancel()
    while live.state != "cancelled":
        time.sleep(0.05)
    assert ids(found.refresh().updates) == [live.id], "its end is told"
    assert found.refresh().updates == ()
    shutil.rmtree(ended.path)
    assert ids(found.refresh().departures) == [ended.id]
    assert ids(found.runs) == [live.id]


def test_a_tag_a_resumption_and_an_evaluation_are_noticed(root: Path) -> None:
    run = echo().wait(60)
    found = rlnb.Catalog([root])
    found.refresh()
    run.tags.add("good")
    (seen,) = found.refresh().updates
    assert list(seen.tags) == ["good"]
    assert found.refresh().updates == ()
    run.resume(max_iterations=4).wait(60)
    assert ids(found.refresh().updates) == [run.id]
    run.evaluate(2)
    assert ids(found.refresh().updates) == [run.id]


def test_what_is_archived_leaves_the_list_and_comes_back(root: Path) -> None:
    run = echo().wait(60)
    found = rlnb.Catalog([root])
    found.refresh()
    rlnb.runs().archive().apply()
    assert ids(found.refresh().departures) == [run.id]
    assert list(found.runs) == []
    assert found.refresh() == catalog.Changes(updates=(), departures=())
    rlnb.runs(archived=True).restore().apply()
    assert ids(found.refresh().updates) == [run.id]


def test_all_that_have_ended_are_looked_at_in_turns(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "ENDED_AT_ONCE", 2)
    made = [echo().wait(60) for _ in range(5)]
    found = rlnb.Catalog([root])
    found.refresh()
    for run in made:
        run.tags.add("x")
    seen = [id for _ in range(3) for id in ids(found.refresh().updates)]
    assert sorted(seen) == sorted(run.id for run in made)


def test_a_damaged_run_hides_no_other(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    good, bad = echo().wait(60), echo().wait(60)
    (bad.path / "manifest.json").write_text("{")
    found = rlnb.Catalog([root])
    assert ids(found.refresh().updates) == [good.id]
    assert "damaged" in caplog.text
    caplog.clear()
    found.refresh()
    assert not caplog.text, "it is told once"


def test_checks_are_told_without_anything_being_written(root: Path) -> None:
    assert rlnb.check("Echo", library="echo", max_iterations=3) == []
    told = rlnb.check("Echo", library="ecko", max_iterations=-3, agent={"a": 1})
    assert len(told) >= 2
    assert any("max_iterations=-3" in problem.what for problem in told)
    assert rlnb.check()[0].what.startswith("rlnb.train() needs a task")
    with pytest.raises(TypeError):
        rlnb.check("Echo", iterations=3)
    assert not (root / "runs").exists()


def test_of_very_many_the_newest_come_first(root: Path) -> None:
    made = [echo().wait(60) for _ in range(3)]
    found = rlnb.Catalog([root])
    assert (found.refresh(0.0).updates, found.behind) == ((), 3)
    assert ids(found.refresh().updates) == sorted((run.id for run in made), reverse=True)
    assert found.behind == 0
