"""Which runs are listed: by task, library, state, tag, date and what was asked; notes, tags and the archive."""

from datetime import timedelta

import pytest

import rlnb


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
    with pytest.raises(rlnb.RlnbError, match="since='yesterday' is not a date"):
        rlnb.runs(since="yesterday")
