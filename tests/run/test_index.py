"""The index of runs, which is kept up to date."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.launchers import LocalLauncher, RunIndex
from rlnb.run.index import Changes


def echo(**arguments: object) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **{"max_iterations": 2, **arguments})  # type: ignore[arg-type]


def ids(runs: object) -> list[str]:
    return [run.id for run in runs]  # type: ignore[attr-defined]


def test_new_live_ended_and_deleted_runs_are_reported(root: Path) -> None:
    index = RunIndex([root])
    assert index.refresh().updates == ()
    ended = echo().wait(60)
    live = echo(max_iterations=1000, agent={"iteration_s": 0.1})
    assert set(ids(index.refresh().updates)) == {ended.id, live.id}
    assert ids(index.refresh().updates) == [live.id], "an ended run is not reported again"
    assert ids(index.runs) == [live.id, ended.id]
    live.cancel()
    while live.state != "cancelled":
        time.sleep(0.05)
    assert ids(index.refresh().updates) == [live.id], "its end is reported"
    assert index.refresh().updates == ()
    ended.path.rename(root.parent / "gone")  # its agent may still tidy up
    assert ids(index.refresh().departures) == [ended.id]
    assert ids(index.runs) == [live.id]


def test_a_tag_a_resumption_and_an_evaluation_are_noticed(root: Path) -> None:
    run = echo().wait(60)
    index = RunIndex([root])
    index.refresh()
    run.tags.add("good")
    (seen,) = index.refresh().updates
    assert list(seen.tags) == ["good"]
    assert index.refresh().updates == ()
    run.resume(max_iterations=4).wait(60)
    assert ids(index.refresh().updates) == [run.id]
    run.evaluate(2)
    assert ids(index.refresh().updates) == [run.id]


def test_an_archived_run_leaves_the_list_and_a_restored_one_returns(root: Path) -> None:
    run = echo().wait(60)
    index = RunIndex([root])
    index.refresh()
    rlnb.runs().archive().apply()
    assert ids(index.refresh().departures) == [run.id]
    assert list(index.runs) == []
    assert index.refresh() == Changes(updates=(), departures=())
    rlnb.runs(archived=True).restore().apply()
    assert ids(index.refresh().updates) == [run.id]


def test_all_ended_runs_are_checked_in_turns(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlnb.run.index.ENDED_AT_ONCE", 2)
    made = [echo().wait(60) for _ in range(5)]
    index = RunIndex([root])
    index.refresh()
    for run in made:
        run.tags.add("x")
    seen = [id for _ in range(3) for id in ids(index.refresh().updates)]
    assert sorted(seen) == sorted(run.id for run in made)


def test_a_damaged_run_hides_no_other(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    good, bad = echo().wait(60), echo().wait(60)
    (bad.path / "manifest.json").write_text("{")
    index = RunIndex([root])
    assert ids(index.refresh().updates) == [good.id]
    assert "damaged" in caplog.text
    caplog.clear()
    index.refresh()
    assert not caplog.text, "it is logged once"


def test_a_run_that_could_not_be_read_for_a_moment_comes_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlnb.run.index.WALK_EVERY", 2)
    run = echo().wait(60)
    manifest = (run.path / "manifest.json").read_text()
    (run.path / "manifest.json").write_text("{")
    index = RunIndex([root])
    assert index.refresh().updates == ()
    (run.path / "manifest.json").write_text(manifest)
    assert [ids(index.refresh().updates) for _ in range(2)].count([run.id]) == 1


def states(runs: Sequence[rlnb.Run]) -> list[str]:
    return [run.state for run in runs]


def test_a_run_that_was_lost_for_a_moment_goes_on(root: Path) -> None:
    """Its heartbeat is all that another machine sees of it, and the file system that shows it was away."""
    run, index = echo(max_iterations=1000, agent={"iteration_s": 0.1}), RunIndex([root])
    while run.state != "running":
        time.sleep(0.05)
    job, agent = run.jobs[0].folder, psutil.Process((run.jobs[0].handle or {})["pid"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalLauncher, "alive", lambda self, handle, job_dir: None)
        agent.suspend()
        for path in (*job.beats(), job.command):
            os.utime(path, (1.0, 1.0))
        found = [states(index.refresh().updates) for _ in range(2)]
        agent.resume()
        assert found == [["lost"], []]
        deadline = time.monotonic() + 20.0
        while not (updates := index.refresh().updates):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert states(updates) == states(index.refresh().updates) == ["running"], "it is followed again"
    run.cancel()
    while run.state != "cancelled":
        time.sleep(0.05)


def test_check_returns_problems_and_writes_no_file(root: Path) -> None:
    assert rlnb.check("Echo", library="echo", max_iterations=3) == []
    problems = rlnb.check("Echo", library="ecko", max_iterations=-3, agent={"a": 1})
    assert len(problems) >= 2
    assert any("max_iterations=-3" in problem.what for problem in problems)
    assert rlnb.check()[0].what.startswith("rlnb.train() needs a task")
    assert "Did you mean 'max_iterations'?" in rlnb.check("Echo", iterations=3)[0].what
    assert not (root / "runs").exists()


def test_the_newest_of_many_runs_come_first(root: Path) -> None:
    made = [echo().wait(60) for _ in range(3)]
    index = RunIndex([root])
    assert (index.refresh(0.0).updates, index.behind) == ((), 3)
    assert ids(index.refresh().updates) == sorted((run.id for run in made), reverse=True)
    assert index.behind == 0
