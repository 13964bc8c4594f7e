"""A run in one line, its bar, and the reasons for failures."""

import datetime
import re
import time

import pytest

import rlnb
from rlnb.curves import progress, stream
from rlnb.spec import Command, Job, Result
from rlnb.storage import files


@pytest.fixture(scope="module")
def run(echo_root):
    return rlnb.train("Echo", library="echo", max_iterations=4).wait()


def test_the_length_of_a_bar_is_the_progress_and_its_name_is_escaped(run):
    page = progress.bar(run, name="<b>mine", colour="#0072B2")
    assert "<b>&lt;b&gt;mine</b> completed" in page
    assert "width:100%;background:#0072B2" in page
    assert f"<b>{run.id}</b>" in progress.bar(run)


def test_the_facts_are_the_progress_and_the_newest_values(run):
    facts = progress.facts(run)
    assert facts.startswith("iteration 4 of 4, reward ")
    assert "fps " in facts
    assert "cores" not in facts, "an ended run uses no resources"


def test_failures_have_the_error_and_the_end_of_the_log_of_failed_runs_only(run, echo_root):
    failed = rlnb.train("Echo", library="echo", agent={"crash_at": 2})
    with pytest.raises(rlnb.RunError):
        failed.wait()
    assert progress.failures([run]) == ""
    page = progress.failures([run, failed])
    assert page.count("<h2>") == 1
    assert "failed: " in page
    assert "echo crashes at iteration 2" in page.partition("<pre>")[2]


def test_progress_is_printed_in_lines_if_no_bar_can_be_drawn(root, monkeypatch, capsys):
    monkeypatch.setattr(progress, "SAY_S", 0.2)
    run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.1}, max_iterations=30)
    rlnb.watch(run)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1
    assert all(line.startswith(f"{run.id} ") for line in lines)
    assert "iteration" in lines[-1]


@pytest.fixture
def waiting(root):
    """A run whose job waits in a queue, and a function that records why, for some minutes already."""
    run = rlnb.train("Echo", library="echo", max_iterations=4).wait()
    last = run.record.folder.next_job(
        "train", lambda _: {"job.json": Job(kind="train"), "command.json": Command(argv=("x",))}
    )
    last.host_alive.touch()

    def record(what, minutes=0.0):
        since = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=minutes, seconds=5)
        files.replace_json(last.waits, {"what": what, "since": since.isoformat()})

    return rlnb.Run(run.path), record, last


def test_a_run_that_waits_says_why_and_since_when(waiting):
    run, record, job = waiting
    assert run.summary().status == "queued"
    record("PENDING (<Priority>)")
    assert run.summary().status == "queued: PENDING (<Priority>)"
    record("PENDING (<Priority>)", minutes=12)
    assert run.summary().status == "queued 12 min: PENDING (<Priority>)"
    assert "queued 12 min: PENDING (&lt;Priority&gt;) <span" in progress.bar(run)
    assert stream.row_of(run, "", 0).state == "queued 12 min: PENDING (<Priority>)"
    assert re.fullmatch(r"iteration 4 of 4, reward [\d.]+, success_rate [\d.]+", progress.facts(run)), "no speed"
    files.write_once(job.result, Result(outcome="failed", error="no such partition"))
    assert run.summary().status == "failed: no such partition"


def test_a_training_that_stands_still_says_for_how_long(root):
    run = rlnb.train("Echo", library="echo", max_iterations=1000, agent={"iteration_s": 0.1})
    while run.state != "running":
        time.sleep(0.05)
    job = run.jobs[0].folder
    job.host_alive.touch()
    since = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5, seconds=5)
    files.replace_json(job.waits, {"what": "suspended", "since": since.isoformat()})
    assert run.summary().status == "running: suspended for 5 min"
    assert repr(run).endswith("running: suspended)")
    run.cancel(save_s=0)
    assert run.wait(60).reason == ""


def test_a_reason_is_printed_once_and_then_seldom(waiting, monkeypatch, capsys):
    run, record, _ = waiting
    monkeypatch.setattr(progress, "SAY_S", 0.0)
    with progress.progress(run) as show:
        for minutes in range(5):
            record("PENDING (Priority)", minutes)
            show()
        record("PENDING (Resources)", 5)
        show()
        show()
        monkeypatch.setattr(progress, "REPEAT_S", 0.0)
        show()
    lines = [line.partition(" ")[2].partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "queued: PENDING (Priority)",
        "queued 5 min: PENDING (Resources)",
        "queued 5 min: PENDING (Resources)",
    ]
