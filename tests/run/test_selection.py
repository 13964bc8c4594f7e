"""The selection of runs by arguments, library and date."""

from datetime import timedelta

import pytest

import rlnb


def ids(runs):
    return {run.id for run in runs}


def test_runs_are_selected_by_an_argument_or_a_predicate_on_it(three):
    assert ids(rlnb.runs(where={"agent.iteration_s": 0.01})) == {three[0].id, three[2].id}
    assert ids(rlnb.runs(where={"seed": lambda seed: seed > 0, "agent.iteration_s": 0.01})) == {three[2].id}


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
    with pytest.raises(rlnb.RlnbError, match="since='yesterday' is not a date"):
        rlnb.runs(since="yesterday")
