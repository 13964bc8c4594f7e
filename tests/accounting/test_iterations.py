"""The iterations of the jobs of a run, also those that a later job trained again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rlnb
from rlnb.accounting.account import Iterations, account_of


def test_each_job_has_its_own_iterations(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=8, agent={"iteration_s": 0.01}).wait(60)
    run.resume(max_iterations=12, checkpoint="model_4.json").wait(60)
    first, second = (job.span(run.record.library_spec) for job in run.jobs)
    assert first is not None
    assert second is not None
    logged = Iterations(run.record)
    assert (logged.finished(first), logged.finished(second)) == (8, 12)
    times = [logged.time_s(first, iteration) for iteration in range(8)]
    assert times == sorted(times)  # type: ignore[type-var]
    assert logged.time_s(first, 8) is None
    assert logged.time_s(second, 5) > logged.time_s(first, 7)  # type: ignore[operator]
    assert logged.last_s(second) == logged.time_s(second, 11)
    assert logged.first_s(second.start_time) == logged.time_s(second, 5)


def test_a_third_job_replaces_the_work_of_both_before_it(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=8, agent={"iteration_s": 0.01}).wait(60)
    run.resume(max_iterations=12).wait(60)
    run.resume(max_iterations=14, checkpoint="model_4.json").wait(60)
    account = account_of(run.record)
    assert account is not None
    assert account.frames == 14 * 64, "it began at iteration 5, the second job at 8"


def test_a_run_without_scalars_has_no_iterations(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait(60)
    for path in run.record.folder.event_files():
        os.unlink(path)
    (span,) = (job.span(run.record.library_spec) for job in run.jobs)
    assert span is not None
    logged = Iterations(run.record)
    assert (logged.finished(span), logged.time_s(span, 0), logged.first_s(0.0)) == (0, None, None)
    assert logged.last_s(span) == pytest.approx(span.start_time)
