"""Which runs are listed: by task, library, state, tag, date and what was asked; notes, tags and the archive."""

from datetime import timedelta

import pytest

import rlnb
from rlnb.records import notes

FAST = {"library": "echo", "max_iterations": 3}


@pytest.fixture
def three(root):
    rates = (0.01, 0.02, 0.01)
    return [rlnb.train("Echo", **FAST, seed=n, agent={"iteration_s": r}).wait() for n, r in enumerate(rates)]


def ids(runs):
    return {run.id for run in runs}


def test_by_what_was_asked_or_a_test_of_it(three):
    assert ids(rlnb.runs(where={"agent.iteration_s": 0.01})) == {three[0].id, three[2].id}
    assert ids(rlnb.runs(where={"seed": lambda seed: seed > 0, "agent.iteration_s": 0.01})) == {three[2].id}


def test_a_name_that_was_never_asked_is_told_with_those_that_were(three):
    with pytest.raises(rlnb.NotFoundError, match=r"Did you mean 'agent\.iteration_s'"):
        rlnb.runs(where={"agent.iteration": 0.01})


def test_a_library_that_is_none_is_told_the_closest(three):
    assert len(rlnb.runs(library="rsl_rl")) == 0, "installed, and no run has it"
    with pytest.raises(rlnb.NotFoundError, match=r"No RL library named 'ecco'.*Did you mean 'echo'"):
        rlnb.runs(library="ecco")


def test_by_date(three):
    assert len(rlnb.runs(since=timedelta(hours=1))) == 3
    assert len(rlnb.runs(since=three[1].created)) == 2
    assert len(rlnb.runs(since="2999-01-01")) == 0
    with pytest.raises(rlnb.RlnbError, match="since='yesterday' is no date"):
        rlnb.runs(since="yesterday")


def test_tags_come_and_go_and_every_kernel_sees_them(three):
    three[0].tags.add("baseline")
    assert ids(rlnb.runs(tag="baseline")) == {three[0].id}
    other = rlnb.get_run(three[0].id)
    other.tags.remove("baseline")
    assert not rlnb.runs(tag="baseline")
    assert "baseline" not in three[0].tags
    with pytest.raises(KeyError):
        other.tags.remove("baseline")
    with pytest.raises(rlnb.RlnbError, match="needs some letters"):
        other.tags.add(" ")


def test_a_tag_it_was_started_with_can_go(root):
    run = rlnb.train("Echo", **FAST, tags=["first"]).wait()
    run.tags.discard("first")
    assert not rlnb.runs(tag="first")
    assert run.manifest.tags == ("first",), "what was asked stays what was asked"


def test_notes_are_added_and_shown_escaped(three):
    three[0].notes.add("<b>fell</b> over")
    shown = rlnb.get_run(three[0].id).notes
    assert [note.text for note in shown] == ["<b>fell</b> over"]
    assert "&lt;b&gt;fell" in shown._repr_html_()
    with pytest.raises(rlnb.RlnbError, match="needs some words"):
        shown.add("")


def test_files_that_are_none_of_ours_are_passed_over(three):
    folder = three[0].record.folder.notes
    folder.mkdir()
    (folder / "x.json").write_text('{"kind": "joke"}')
    assert len(three[0].notes) == 0


def test_archived_runs_leave_the_lists_and_come_back(three):
    some = rlnb.runs(where={"seed": 1})
    plan = some.archive()
    assert len(rlnb.runs()) == 3, "nothing has happened yet"
    assert three[1].id in repr(plan)
    plan.apply()
    assert ids(rlnb.runs()) == {three[0].id, three[2].id}
    assert ids(rlnb.runs(archived=True)) == {three[1].id}
    assert rlnb.get_run(three[1].id).metrics["reward"].last, "it is still there"
    plan.apply()
    assert len(notes.read(three[1].record.folder.notes)) == 1, "once is enough"
    rlnb.runs(archived=True).restore().apply()
    assert len(rlnb.runs()) == 3


def test_sorted_by_a_metric_or_by_what_was_asked(three):
    assert [run.manifest.seed for run in rlnb.runs().sorted("seed", descending=False)] == [0, 1, 2]
    rewards = [run.metrics["reward"].last for run in rlnb.runs().sorted("reward")]
    assert rewards == sorted(rewards, reverse=True)
    with pytest.raises(rlnb.NotFoundError, match="Did you mean 'reward'"):
        rlnb.runs().sorted("rewrd")


def test_runs_without_the_value_come_last(three):
    plain = rlnb.train("Echo", **FAST).wait()
    assert rlnb.runs().sorted("agent.iteration_s")[-1].id == plain.id


def test_table_takes_further_columns(three):
    table = rlnb.runs().table("seed", "agent.iteration_s", "fps")
    assert list(table["seed"]) == [2, 1, 0]
    assert list(table["agent.iteration_s"]) == [0.01, 0.02, 0.01]
    assert (table["fps"] > 0).all()


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
