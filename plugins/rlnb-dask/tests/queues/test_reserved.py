"""Directives that would start copies of a training, or that rlnb sets itself, are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rlnb_dask.queues import reserved
from rlnb_dask.queues.registry import QUEUES


@pytest.mark.parametrize(
    ("queue", "directive", "reason"),
    [
        ("slurm", "--array=0-3", reserved.COPIES),
        ("slurm", "-a 0-3", reserved.COPIES),
        ("slurm", "--ntasks 4", reserved.NODES),
        ("slurm", "-n4", reserved.NODES),
        ("slurm", "--requeue", reserved.AGAIN),
        ("slurm", "--time=90", reserved.TIME),
        ("sge", "-t 1-4", reserved.COPIES),
        ("sge", "-r  y", reserved.AGAIN),
        ("pbs", "-J 1-4", reserved.COPIES),
        ("lsf", "-r", reserved.AGAIN),
        ("oar", "--array 4", reserved.COPIES),
        ("htcondor", "Output = /tmp/out", reserved.OUTPUT),
    ],
)
def test_a_reserved_option_is_refused(queue: str, directive: str, reason: str) -> None:
    assert reserved.reserved_reason(queue, directive) == reason


@pytest.mark.parametrize(
    ("queue", "directive"),
    [
        ("slurm", "--nodelist=node[1-4]"),
        ("slurm", "--ntasks-per-core=1"),
        ("slurm", "--constraint=h200"),
        ("slurm", "--exclusive"),
        ("sge", "-terse"),
        ("sge", "-r n"),
        ("sge", "-l mem_free=64G"),
        ("lsf", "-rn"),
        ("htcondor", "+Project = rl"),
    ],
)
def test_other_options_are_accepted(queue: str, directive: str) -> None:
    assert reserved.reserved_reason(queue, directive) == ""


def test_every_queue_has_a_table() -> None:
    assert set(reserved.RESERVED) == {queue.name for queue in QUEUES}


def test_a_reserved_directive_is_a_problem_of_the_launcher(problems: Callable[..., str]) -> None:
    assert problems(directives=["--array=0-3"]) == "directives[0]='--array=0-3' cannot be used."


def test_a_reason_shows_the_value_of_a_setting() -> None:
    reasons = {reason for options in reserved.RESERVED.values() for reason in options.values()}
    assert not [reason for reason in reasons if "=." in reason]
