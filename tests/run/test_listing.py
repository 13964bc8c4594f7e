"""A list of runs: its order, its table, and archived runs."""

from __future__ import annotations

import pytest

import rlnb
from rlnb.records import notes


def ids(runs):
    return {run.id for run in runs}


def test_archived_runs_leave_the_lists_and_restored_ones_return(three):
    some = rlnb.runs(where={"seed": 1})
    plan = some.archive()
    assert len(rlnb.runs()) == 3, "apply() was not called yet"
    assert three[1].id in repr(plan)
    plan.apply()
    assert ids(rlnb.runs()) == {three[0].id, three[2].id}
    assert ids(rlnb.runs(archived=True)) == {three[1].id}
    assert rlnb.get_run(three[1].id).metrics["reward"].last, "the run is kept on disk"
    plan.apply()
    assert len(notes.read(three[1].record.folder.notes)) == 1, "a second apply() writes no file"
    rlnb.runs(archived=True).restore().apply()
    assert len(rlnb.runs()) == 3


def test_runs_are_sorted_by_a_metric_or_an_argument(three):
    assert [run.manifest.seed for run in rlnb.runs().sorted("seed", descending=False)] == [0, 1, 2]
    rewards = [run.metrics["reward"].last for run in rlnb.runs().sorted("reward")]
    assert rewards == sorted(rewards, reverse=True)
    with pytest.raises(rlnb.NotFoundError, match="Did you mean 'reward'"):
        rlnb.runs().sorted("rewrd")


def test_runs_without_the_value_come_last(three):
    plain = rlnb.train("Echo", library="echo", max_iterations=3).wait()
    assert rlnb.runs().sorted("agent.iteration_s")[-1].id == plain.id


def test_table_takes_further_columns(three):
    table = rlnb.runs().table("seed", "agent.iteration_s", "fps")
    assert list(table["seed"]) == [2, 1, 0]
    assert list(table["agent.iteration_s"]) == [0.01, 0.02, 0.01]
    assert (table["fps"] > 0).all()


def test_table_and_selection_know_the_origin_of_the_weights(three):
    later = rlnb.train("Echo", library="echo", max_iterations=3, init_from=three[0]).wait()
    table = rlnb.runs().table("init_from", "parent")
    for name in ("init_from", "parent"):
        assert list(table[name].dropna()) == [three[0].id]
    assert table["init_from"].isna().tolist() == [False, True, True, True]
    assert ids(rlnb.runs(where={"parent": three[0].id})) == {later.id}
    assert ids(rlnb.runs().sorted("init_from")[:1]) == {later.id}
    assert rlnb.runs().diff().loc["init_from"][later.id] == three[0].id


def test_an_argument_that_no_run_was_given_is_an_empty_column(three):
    assert list(rlnb.runs().table("init_from")["init_from"]) == [None] * 3
    assert len(rlnb.runs(where={"init_from": "x"})) == 0


def test_diff_shows_only_what_differs(three):
    shown = rlnb.runs().diff()
    assert list(shown.columns) == [run.id for run in rlnb.runs()]
    assert list(shown.loc["agent.iteration_s"]) == [0.01, 0.02, 0.01]
    assert list(shown.loc["seed"]) == [2, 1, 0]
    assert "library" not in shown.index


def test_a_long_list_shows_its_newest(three, monkeypatch):
    monkeypatch.setattr("rlnb.run.listing.SHOWN", 2)
    shown = rlnb.runs()._repr_html_()
    assert "3 runs, the newest 2 shown" in shown
    assert three[0].id not in shown


def test_one_run_is_counted_in_the_singular(three):
    one = rlnb.runs()[:1]
    assert "<b>1 run</b>" in one._repr_html_()
    assert f"archive 1 run: {one[0].id}" in repr(one.archive())
