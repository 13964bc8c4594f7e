"""The notebook, the command line, the dashboard, the panel and a report show the same about a run."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import echo
from rlnb_jupyterlab.detail import detail
from rlnb_jupyterlab.rows import number, row
from typer.testing import CliRunner

import rlnb
from rlnb.cli.app import app
from rlnb.curves import progress, stream
from rlnb.display.table import duration
from rlnb.plugin import Result
from rlnb.records.incidents import WaitsWriter
from rlnb.records.layout import JobDir
from rlnb.reports import sections
from rlnb.spec import Command, Job
from rlnb.storage import files

AGO_S = 1190.0
"""Age of the start of a training that runs, by the clock of the file system: that long for half of it."""
LATER_S = 720.0
AHEAD_S = 3600.0


def edit(path: Path, **changes: Any) -> None:
    """Change a record, which keeps its time."""
    stat = path.stat()
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def waits(job: JobDir, what: str) -> None:
    """Record why a job waits, and that it has waited for twelve minutes."""
    job.host_alive.touch()
    WaitsWriter(job).write(what)
    edit(job.waits, since=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - LATER_S - 5)))


def begin(run: rlnb.Run) -> JobDir:
    """Make the training one that has begun a moment ago."""
    job = run.record.folder.jobs()[0]
    job.result.unlink()
    job.started.unlink()
    job.host_alive.touch()
    return job


def go(run: rlnb.Run) -> JobDir:
    """Make the training one that has trained half of its iterations."""
    job = run.record.folder.jobs()[0]
    job.result.unlink()
    job.host_alive.touch()
    edit(job.started, max_iterations=6)
    os.utime(job.started, (time.time() - AGO_S,) * 2)
    return job


def end(run: rlnb.Run, outcome: Any, error: str = "") -> None:
    """Let the training end in another way."""
    files.replace_json(run.record.folder.jobs()[0].result, Result(outcome=outcome, error=error))


def next_job(run: rlnb.Run, **facts: Any) -> JobDir:
    """Add a training that waits in a queue."""
    records = {"job.json": Job(kind="train", **facts), "command.json": Command(argv=("x",))}
    job = run.record.folder.next_job("train", lambda _: records)
    job.host_alive.touch()
    return job


def created(run: rlnb.Run) -> None:
    shutil.rmtree(run.path / "jobs")
    shutil.rmtree(run.path / "logs")
    run.record.folder.manifest.touch()


def queued(run: rlnb.Run) -> None:
    waits(next_job(run), "PENDING (Priority)")


def restarted(run: rlnb.Run) -> None:
    interrupted = Result(outcome="failed", error="node 1 is lost", values={"interrupted": True})
    files.replace_json(run.record.folder.jobs()[0].result, interrupted)
    next_job(run, after="0-train", restart=1, max_restarts=3)
    run.record.folder.jobs()[0].successor.write_text('{"job": "1-train"}')


def starting(run: rlnb.Run) -> None:
    begin(run).running().touch()
    shutil.rmtree(run.path / "logs")


def running(run: rlnb.Run) -> None:
    go(run)


def ahead(run: rlnb.Run) -> None:
    job = go(run)
    edit(job.started, time_s=json.loads(job.started.read_text())["time_s"] + AHEAD_S)


def suspended(run: rlnb.Run) -> None:
    waits(go(run), "suspended")


def completed(run: rlnb.Run) -> None:
    pass


def failed(run: rlnb.Run) -> None:
    end(run, "failed", "RuntimeError: no such joint")


def cancelled(run: rlnb.Run) -> None:
    end(run, "cancelled", "cancelled")


def timeout(run: rlnb.Run) -> None:
    end(run, "timeout", "the time limit of 60 s")


def lost(run: rlnb.Run) -> None:
    run.record.folder.jobs()[0].result.unlink()


def torn(run: rlnb.Run) -> None:
    run.record.folder.jobs()[0].result.write_text("{")


STATES: list[tuple[Callable[[rlnb.Run], None], str, str, str, float | None, bool]] = [
    (created, "created", "", "0/3", None, False),
    (queued, "queued", "PENDING (Priority)", "3/3", None, True),
    (restarted, "queued", "restart 1 of 3 after: node 1 is lost", "3/3", None, True),
    (starting, "starting", "", "0/3", None, False),
    (running, "running", "", "3/6", AGO_S, True),
    (ahead, "running", "", "3/6", AGO_S, True),
    (suspended, "running", "suspended", "3/6", AGO_S, True),
    (completed, "completed", "", "3/3", None, True),
    (failed, "failed", "RuntimeError: no such joint", "3/3", None, True),
    (cancelled, "cancelled", "", "3/3", None, True),
    (timeout, "timeout", "the time limit of 60 s", "3/3", None, True),
    (lost, "lost", "its process ended without a result", "3/3", None, True),
    (torn, "lost", "its process ended without a result", "3/3", None, True),
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("root")
        patch.setenv("RLNB_ROOT", str(root))
        patch.setenv("RLNB_QUEUE", str(tmp_path_factory.mktemp("queue")))
        patch.setattr(rlnb.options, "root", root)
        patch.setattr(rlnb.options, "warm", False)
        return echo(tags=["first"]).wait(60).path


def table(page: str) -> dict[str, str]:
    """Return the rows of an HTML table of two columns."""
    cells = [[html.unescape(text) for text in re.findall(r"<td[^>]*>(.*?)</td>", line)] for line in page.split("<tr>")]
    return {line[0]: line[1] for line in cells if len(line) == 2}


def printed(text: str) -> dict[str, str]:
    """Return the rows of a printed table of two columns."""
    lines = (re.split(r"\s{2,}|\s*│\s*", line.strip(" │"), maxsplit=1) for line in text.splitlines())
    return {line[0]: line[1].strip() for line in lines if len(line) == 2}


@pytest.mark.parametrize(("make", "state", "reason", "iteration", "eta_s", "rewarded"), STATES)
def test_every_view_shows_the_same_about_a_run(
    original: Path,
    root: Path,
    make: Callable[[rlnb.Run], None],
    state: str,
    reason: str,
    iteration: str,
    eta_s: float | None,
    rewarded: bool,
) -> None:
    path = Path(shutil.copytree(original, root / "runs" / original.name))
    for beat in path.glob("jobs/*/*.alive"):
        os.utime(beat, (time.time() - AHEAD_S,) * 2)
    make(rlnb.Run(path))
    run = rlnb.Run(path)
    reward = run.metrics.last("reward") if rewarded else None
    written = f"iteration {iteration.replace('/', ' of ')}"

    (listed,) = rlnb.runs().table().to_dict("records")
    assert (listed["state"], listed["reason"], listed["iteration"]) == (state, reason, iteration)
    assert (listed["reward"] if rewarded else None) == reward

    shell = CliRunner()
    (line,) = json.loads(shell.invoke(app, ["runs", "--json"]).output)
    assert (line["state"], line["reason"], line["iteration"], line["reward"]) == (state, reason, iteration, reward)

    panel = row(run, "key")
    assert (panel.state, panel.reason, f"{panel.iteration}/{panel.total}") == (state, reason, iteration)
    assert panel.reward == (number(reward) if rewarded else None)

    views = {
        "notebook": table(run._repr_html_()),
        "show": printed(shell.invoke(app, ["show", run.id], env={"COLUMNS": "400"}).output),
        "report": table(sections.summary([run])),
        "tab": dict(detail(run, "key").overview),
    }
    for name, view in views.items():
        assert (view["state"], view.get("reason", "")) == (state, reason), name
        assert f"iteration {view['iteration']}" == written, name
        assert view.get("reward") == (f"{reward:.4g}" if rewarded else None), name
        assert ("time left" in view) == (eta_s is not None), name

    dashboard = stream.row_of(run, "", 0)
    assert dashboard.state == run.summary().status
    assert dashboard.state.partition(" 12 min")[0].partition(":")[0] == state
    assert reason in dashboard.state
    assert ("12 min" in dashboard.state) == (make in (queued, suspended))
    assert written in dashboard.facts
    assert html.escape(dashboard.facts) in progress.bar(run)
    assert ("reward" in dashboard.facts) == rewarded

    for rest_s in (run.eta_s, run.summary().eta_s, panel.eta_s, line["eta_s"]):
        assert rest_s == (None if eta_s is None else pytest.approx(eta_s, rel=0.1))
    if eta_s is not None:
        assert f"{duration(eta_s)} left" in dashboard.facts
    shutil.rmtree(path)
