"""The selection of runs by arguments, library and date."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import rlnb
from rlnb.plugin import Command, Manifest, Result
from rlnb.records.layout import JobDir, RunDir
from rlnb.storage import files
from rlnb.storage.serial import to_json


def ids(runs):
    return {run.id for run in runs}


def test_runs_are_selected_by_an_argument_or_a_predicate_on_it(three):
    assert ids(rlnb.runs(where={"agent.iteration_s": 0.01})) == {three[0].id, three[2].id}
    assert ids(rlnb.runs(where={"seed": lambda seed: seed > 0, "agent.iteration_s": 0.01})) == {three[2].id}


def test_runs_are_selected_from_a_list_of_runs_or_ids(three):
    chosen = rlnb.runs([three[0], three[2].id])
    assert ids(chosen) == {three[0].id, three[2].id}
    assert ids(rlnb.runs(chosen, where={"seed": three[0].manifest.seed})) == {three[0].id}
    with pytest.raises(rlnb.NotFoundError, match="No run named 'nope'"):
        rlnb.runs([three[0], "nope"])


def test_the_error_for_an_unknown_argument_names_the_closest(three):
    with pytest.raises(rlnb.NotFoundError, match=r"Did you mean 'agent\.iteration_s'"):
        rlnb.runs(where={"agent.iteration": 0.01})


def test_the_error_for_an_unknown_library_names_the_closest(three):
    assert len(rlnb.runs(library="rsl_rl")) == 0, "installed, but used by no run"
    with pytest.raises(rlnb.NotFoundError, match=r"No RL library named 'ecco'.*Did you mean 'echo'"):
        rlnb.runs(library="ecco")


def test_runs_are_selected_by_date(three):
    assert len(rlnb.runs(since=timedelta(hours=1))) == 3
    assert len(rlnb.runs(since=three[1].created)) == 2
    assert len(rlnb.runs(since="2999-01-01")) == 0
    for text in ("7d", "2 weeks", "12 hours ago", "30 min", "1.5h"):
        assert len(rlnb.runs(since=text)) == 3
    assert len(rlnb.runs(since="0 min")) == 0
    with pytest.raises(rlnb.RlnbError, match="since='yesterday' is not a date"):
        rlnb.runs(since="yesterday")


# -- find ------------------------------------------------------------------------------------------------------------


def test_a_root_that_is_not_a_folder_is_refused(root: Path) -> None:
    root.write_text("")
    with pytest.raises(rlnb.NotFoundError, match="is not a folder"):
        rlnb.runs()


@pytest.fixture
def three_ids(root: Path) -> list[str]:
    """The ids of three_ids completed runs, oldest first."""
    ids = [f"2026010{number}-000000-echo-{number}a7c" for number in (1, 2, 3)]
    for number, id in enumerate(ids, start=1):
        run = RunDir(root / "runs" / id)
        job = JobDir(run.jobs_folder / "0-train")
        job.path.mkdir(parents=True)
        created = f"2026-01-0{number}T00:00:00+00:00"
        manifest = Manifest(run_id=id, created=created, task=rlnb.Task(id="Echo"), library="echo")
        files.write_once(run.manifest, to_json(manifest))
        files.write_once(job.command, to_json(Command(argv=("true",))))
        files.write_once(job.result, to_json(Result(outcome="completed")))
    return ids


def test_a_run_is_found_by_a_part_of_its_id_or_its_folder(root: Path, three_ids: list[str]) -> None:
    assert rlnb.get_run("2a7c").id == three_ids[1]
    assert rlnb.get_run(str(root / "runs" / three_ids[1])).task == "Echo"
    with pytest.raises(rlnb.NotFoundError, match=r"'echo' matches 3 runs: .* Use a longer part of the id\."):
        rlnb.get_run("echo")


def test_matching_runs_are_listed_newest_first(three_ids: list[str]) -> None:
    assert [run.id for run in rlnb.runs()] == three_ids[::-1]
    assert len(rlnb.runs(task="Echo", state="completed")) == 3
    assert len(rlnb.runs(state="failed")) == 0
    with pytest.raises(rlnb.NotFoundError, match=r"No state named 'complete'.* Did you mean 'completed'\?"):
        rlnb.runs(state="complete")


def test_a_single_run_is_a_list_of_one(root: Path, three_ids: list[str], tmp_path: Path) -> None:
    assert [run.id for run in rlnb.runs(root / "runs" / three_ids[0])] == [three_ids[0]]
    assert len(rlnb.runs(tmp_path / "nowhere")) == 0
