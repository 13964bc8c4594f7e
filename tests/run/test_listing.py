"""A list of runs: its order, its table, and archived runs."""

from __future__ import annotations

import pytest

import rlnb
from rlnb.launchers import LocalLauncher
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


def test_the_best_run_is_that_with_the_largest_or_smallest_last_value(three):
    by_reward = rlnb.runs().sorted("reward")
    assert rlnb.runs().best().id == by_reward[0].id
    assert rlnb.runs().best(descending=False).id == by_reward[-1].id
    assert rlnb.runs().best("seed").manifest.seed == max(run.manifest.seed for run in three)
    with pytest.raises(rlnb.NotFoundError, match="Did you mean 'reward'"):
        rlnb.runs().best("rewrd")


def test_a_run_is_compared_with_others(three):
    first, second, _ = three
    frame = first.diff(second)
    assert frame.equals(rlnb.Runs([first, second]).diff())
    assert list(frame.columns) == [first.id, second.id]


# -- several runs at once --------------------------------------------------------------------------------------------


def test_a_list_of_seeds_starts_a_run_for_each(root, capsys):
    runs = rlnb.train("Echo", library="echo", max_iterations=3, seed=[1, 2])
    assert isinstance(runs, rlnb.Runs)
    assert [run.manifest.seed for run in runs.wait(60)] == [1, 2]
    assert {run.state for run in runs} == {"completed"}
    assert len(rlnb.compare(runs)) == 1, "their only difference is the seed"
    runs.watch(["reward"])


@pytest.mark.parametrize(
    ("seeds", "words"), [([], "no seed"), ([1, 2, 1], "a seed twice"), ([1, -1], "seed=-1 is not")]
)
def test_seeds_that_cannot_be_used_start_no_run(root, seeds, words):
    assert words in rlnb.check("Echo", library="echo", seed=seeds)[0].what
    with pytest.raises(rlnb.RlnbError, match=words):
        rlnb.train("Echo", library="echo", max_iterations=3, seed=seeds)
    assert not rlnb.runs()


def test_a_rerun_is_one_run(three):
    with pytest.raises(rlnb.RlnbError, match=r"rlnb.train\(like=run, seed=\[1, 2\]\)"):
        three[0].rerun(seed=[1, 2])


def test_a_start_that_fails_names_the_runs_that_have_started(root, monkeypatch):
    started = LocalLauncher.submit

    def submit(self, command, job_dir):
        if len(rlnb.runs()) == 2:
            raise rlnb.RlnbError("the queue is full")
        return started(self, command, job_dir)

    monkeypatch.setattr(LocalLauncher, "submit", submit)
    with pytest.raises(rlnb.RlnbError, match="the queue is full") as error:
        rlnb.train("Echo", library="echo", max_iterations=3, seed=[1, 2])
    (run,) = rlnb.runs()
    assert error.value.__notes__ == [f"Already started: {run.id}. To end them: run.cancel()"]
    run.wait(60)


def test_all_runs_have_ended_before_the_error_of_one_is_raised(root):
    good = rlnb.train("Echo", library="echo", max_iterations=3)
    bad = [rlnb.train("Echo", library="echo", max_iterations=3, agent={"crash_at": 1}, name=name) for name in "ab"]
    with pytest.raises(rlnb.RunError, match=bad[0].id) as error:
        rlnb.Runs([bad[0], good, bad[1]]).wait(60)
    assert good.state == "completed"
    assert len(error.value.__notes__) == 1
    assert bad[1].id in error.value.__notes__[0]
