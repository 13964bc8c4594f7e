"""The comparison of the clocks of nodes with this machine's."""

from __future__ import annotations

import logging
import socket

import pytest
from rlnb_dask import clocks
from rlnb_dask.node import NodeFacts

HERE = socket.gethostname()


def lines(caplog: pytest.LogCaptureFixture, *ahead: float) -> tuple[list[str], list[str]]:
    """Return the problems of nodes named a, b, ..., and the warnings, for the seconds by which they are ahead."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="rlnb_dask"):
        problems = clocks.problems([NodeFacts(host="abcdef"[number]) for number in range(len(ahead))], ahead)
    return problems, [record.getMessage() for record in caplog.records]


def test_a_clock_is_not_blamed_for_the_time_that_its_answer_took() -> None:
    assert clocks.ahead_s(1004.0, begin_s=1000.0, end_s=1090.0) == 0.0
    assert clocks.ahead_s(580.0, begin_s=1000.0, end_s=1090.0) == -420.0
    assert clocks.ahead_s(1510.0, begin_s=1000.0, end_s=1090.0) == 420.0


def test_small_differences_are_nobodys_business(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(caplog, 0.0, 299.0, -299.0) == ([], [])
    assert lines(caplog) == ([], [])


def test_a_clock_that_is_minutes_away_is_a_warning_with_node_and_offset(caplog: pytest.LogCaptureFixture) -> None:
    problems, (warning,) = lines(caplog, 0.0, -420.0)
    assert problems == []
    assert warning.startswith(f"Warning: node 1 (b): its clock is 7 min behind that of {HERE}. Synchronise it")
    assert "ahead of" in lines(caplog, 7200.0)[1][0]


def test_a_clock_that_is_days_away_is_a_refusal(caplog: pytest.LogCaptureFixture) -> None:
    (problem,), (warning,) = lines(caplog, -3 * 86400.0, 0.0, 400.0)
    assert problem.startswith(f"node 0 (a): its clock is 3 days behind that of {HERE}. Synchronise it (chrony, NTP)")
    assert "--exclude=NODE" in problem
    assert "node 2 (c): its clock is 7 min ahead of" in warning


def test_if_all_nodes_agree_the_clock_of_this_machine_is_wrong(caplog: pytest.LogCaptureFixture) -> None:
    problems, (warning,) = lines(caplog, 600.0, 601.0, 599.0)
    assert problems == []
    assert warning.startswith(f"Warning: the clock of this machine ({HERE}) is 10 min behind those of all nodes")
    (problem,), _ = lines(caplog, -90000.0, -90001.0)
    assert problem.startswith(f"the clock of this machine ({HERE}) is 25 h ahead of those of all nodes")
