"""Tests of rlnb.records.incidents."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import rlnb
from rlnb.records.incidents import Alert, alerts_of, write_alert
from rlnb.records.layout import JobDir, RunDir
from rlnb.reports.sections import summary

FIRST = Alert(rule="reward < 5", what="reward < 5: reward is 3", time="2026-01-01T00:00:02+00:00", iteration=7)
SECOND = Alert(rule="ended", what="completed", time="2026-01-01T00:00:01+00:00")


def test_alerts_are_read_in_order_of_time(tmp_path: Path) -> None:
    jobs = [RunDir(tmp_path).next_job("train") for _ in range(2)]
    assert alerts_of(jobs) == []
    assert write_alert(jobs[0], FIRST)
    assert write_alert(jobs[1], SECOND)
    assert alerts_of(jobs) == [SECOND, FIRST]


def test_a_rule_alerts_once_in_a_job(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    job = run.next_job("train")
    assert write_alert(job, FIRST)
    assert not write_alert(job, FIRST)
    assert write_alert(job, SECOND)
    assert write_alert(run.next_job("train"), FIRST)
    assert len(alerts_of([job])) == 2


def test_one_of_many_writers_wins(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            job = RunDir(tmp_path).next_job("train")
            barrier = threading.Barrier(8)

            def race(job: JobDir = job, barrier: threading.Barrier = barrier) -> bool:
                barrier.wait()
                return write_alert(job, FIRST)

            assert sum(future.result() for future in [pool.submit(race) for _ in range(8)]) == 1
            assert alerts_of([job]) == [FIRST]


def test_a_list_of_runs_sees_that_an_ended_run_has_an_alert(tmp_path: Path) -> None:
    job = RunDir(tmp_path).next_job("train")
    write_alert(job, SECOND)
    os.utime(jobs := job.path.parent, (0, 0))
    assert write_alert(job, FIRST)
    assert jobs.stat().st_mtime > 0


def test_a_damaged_alert_is_skipped(tmp_path: Path) -> None:
    job = RunDir(tmp_path).next_job("train")
    write_alert(job, FIRST)
    (job.alerts / "7.json").write_text('{"rule": 3}')
    assert alerts_of([job]) == [FIRST]


def test_alerts_are_shown_where_the_run_is(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait(60)
    assert "alert" not in summary([run])
    write_alert(run.jobs[0].folder, FIRST)
    assert run.alerts == [FIRST]
    assert "reward &lt; 5: reward is 3 (iteration 7)" in summary([run])
    assert "reward &lt; 5: reward is 3" in run._repr_html_()
