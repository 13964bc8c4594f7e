"""Everything that can be read from the folder of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import rlnb
from rlnb.curves import progress
from rlnb.spec import Job
from rlnb.storage import files
from rlnb.storage.serial import to_json

WAIT_S = 60.0


SLOW = {"iteration_s": 0.1}


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition was never met"
        time.sleep(0.05)


def echo(**arguments: object) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **arguments)  # type: ignore[arg-type]


def warm_job(run: rlnb.Run) -> Path:
    """Create an evaluation in the living simulator whose kernel died, so that it has no command and no result."""
    folder = run.record.folder.next_job("evaluate")
    files.write_once(folder.job, to_json(Job(kind="evaluate", options={})))
    return folder.path


def test_cancel_reaches_the_training_past_an_abandoned_evaluation(root: Path) -> None:
    run = echo(max_iterations=1000, agent=SLOW)
    until(lambda: run.state == "running")
    left = warm_job(run)
    run.cancel()
    until(lambda: run.state == "cancelled")
    assert not (left / "cancel.json").exists()


def test_logs_are_those_of_the_newest_job_with_a_log(root: Path) -> None:
    run = echo(max_iterations=5).wait(WAIT_S)
    before = run.logs()
    warm_job(run)
    assert before
    assert run.logs() == before


def test_a_queued_run_names_the_runs_it_waits_for(root: Path) -> None:
    slowly = {"max_iterations": 100, "agent": {"iteration_s": 0.1}}
    first = rlnb.train("Echo", library="echo", **slowly)
    while first.state not in ("starting", "running"):
        time.sleep(0.05)
    second = rlnb.train("Echo", library="echo", **slowly)
    until(lambda: second.waits_for)
    assert (second.state, second.waits_for, first.waits_for) == ("queued", [first.id], [])
    assert (second.reason, first.reason) == (f"waits for {first.id}", "")
    assert progress.standing(second) == f"queued: waits for {first.id}"
    assert f", queued: waits for {first.id})" in repr(second)
    assert f"<td style='text-align:left'>waits for {first.id}</td>" in second._repr_html_()
    assert f">waits for {first.id}<" in rlnb.runs()._repr_html_()
    assert [row.reason for row in rlnb.runs()._rows(2)] == [f"waits for {first.id}", ""]
    first.cancel()
    until(lambda: second.state in ("starting", "running"))
    assert not second.jobs[0].folder.waits.exists()
    second.cancel()
    until(lambda: first.result and second.result)
