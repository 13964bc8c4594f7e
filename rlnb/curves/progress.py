"""A run in one line, as a progress bar and as a table, and the reason for its failure."""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rlnb.diagnosis.diagnosis import line_of
from rlnb.display import front_end
from rlnb.display.front_end import in_notebook
from rlnb.display.table import duration, precise, short
from rlnb.records.repetition import rows as repetition_rows
from rlnb.records.summary import WAITING
from rlnb.spec import ENDED

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts
    from rlnb.records.summary import RunSummary
    from rlnb.spec import State

LOG_LINES = 40
SAY_S = 10.0
"""Seconds between two progress lines on output that cannot show a bar, such as a log file."""
REPEAT_S = 300.0
"""The same for a run that waits. A new reason is printed at once."""


def failures(runs: Sequence[RunFacts]) -> str:
    """Return HTML with the error and the end of the log of each run that did not complete; empty if all did."""
    sections = []
    for run in runs:
        if run.state in ("failed", "lost", "timeout", "cancelled"):
            training = [job.folder.number for job in run.jobs if job.kind == "train"]
            error = run.result.error if run.result else "its process left no result"
            log = run.logs(LOG_LINES, job=training[-1]) if training else ""
            sections.append(f"<h2>{html.escape(f'{run.id} {run.state}: {error}')}</h2><pre>{html.escape(log)}</pre>")
    return "".join(sections)


@contextlib.contextmanager
def progress(*runs: RunFacts) -> Iterator[Callable[[], None]]:
    """Show the progress of runs. Call the yielded function to update it."""
    if in_notebook():
        output = front_end.show_place({"text/html": "", "text/plain": ""}, raw=True)

        def show() -> None:
            texts = {"text/html": "".join(map(bar, runs)), "text/plain": "\n".join(map(line, runs))}
            output.update(texts, raw=True)

        yield show
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bars:
            rows = [bars.add_task(run.id, total=None) for run in runs]

            def update() -> None:
                for row, run in zip(rows, runs, strict=True):
                    summary = run.summary()
                    where = f" (silent, see {logs[0]})" if (logs := run.silent_logs) else ""
                    text, (done, total) = escape(f"{run.id} {summary.status}{where}"), summary.progress
                    bars.update(row, completed=done, total=total or None, description=text)

            yield update
    else:
        lines = [_Lines(run) for run in runs]

        def say() -> None:
            for one in lines:
                one.say()

        yield say


class _Lines:
    """The progress of a run in lines, for output that cannot show a bar. A run that waits is repeated seldom."""

    def __init__(self, run: RunFacts) -> None:
        self._run, self._said_s = run, time.monotonic()
        self._news: tuple[State, str] | None = None

    def say(self) -> None:
        """Print a line if it is time for one, or if a run that waits does so for another reason."""
        run, summary = self._run, self._run.summary(metrics=False)
        state, reason = summary.state, summary.reason
        silence_s = time.monotonic() - self._said_s
        if reason:
            due = (state, reason) != self._news or silence_s >= REPEAT_S
        else:
            due = silence_s >= (REPEAT_S if state == "queued" else SAY_S)
        if due:
            self._said_s, self._news = time.monotonic(), (state, reason)
            sys.stderr.write(f"{line(run)}\n")
            sys.stderr.flush()


def line(run: RunFacts) -> str:
    """Return one line of text with a run's state, progress, time left and newest values."""
    summary = run.summary()
    return ", ".join(filter(None, [f"{run.id} {summary.status}", facts(run, summary)]))


def bar(run: RunFacts, *, name: str = "", colour: str = "#3b7dd8") -> str:
    """Return one line of HTML with a run's state, progress, time left and newest values, all escaped.

    Args:
        run: The run.
        name: Displayed name; empty for the run's own, or its id.
        colour: Colour of the bar, the same as that of the run's curves.
    """
    summary = run.summary()
    filled = f"height:.6em;width:{100 * summary.progress.share:.0f}%;background:{html.escape(colour)}"
    return (
        f"<div><b>{html.escape(name or run.title)}</b> {html.escape(summary.status)} "
        "<span style='display:inline-block;width:10em;height:.6em;background:#8884'>"
        f"<span style='display:block;{filled}'></span></span> "
        f"<small>{html.escape(facts(run, summary))}</small></div>"
    )


def facts(run: RunFacts, summary: RunSummary | None = None) -> str:
    """Return a run's progress, time left and newest values as one line of text.

    Args:
        run: The run.
        summary: Its summary, if it has just been read.
    """
    summary = summary or run.summary()
    iteration = f"iteration {text}" if (text := summary.progress.text) else ""
    rest = f"{duration(summary.eta_s)} left" if summary.eta_s else ""
    latest = [("reward", summary.reward), ("success_rate", summary.success_rate)]
    if summary.state not in WAITING and "fps" in run.metrics.names:  # a training that waits has no speed
        latest.append(("fps", run.metrics.last("fps")))
    values = [f"{name} {short(value)}" for name, value in latest if value is not None]
    used = [f"{_used(run, name):.1f} {unit}" for name, unit in (("cpu_cores", "cores"), ("memory_gib", "GiB"))]
    silent = "".join(f"no output for minutes, see {log}" for log in run.silent_logs[:1])
    symptoms = f"diagnosis: {names}" if (names := line_of(run)) else ""
    alerts = f"alerts: {', '.join(alert.rule for alert in run.alerts)}" if run.manifest.alerts and run.alerts else ""
    uses = run.system.tags and summary.state not in ENDED
    news = [silent, iteration, rest, *values, run.metrics.unread, symptoms, alerts, *(used if uses else ())]
    return ", ".join(filter(None, news))


def rows(run: RunFacts) -> list[tuple[str, str]]:
    """Return a run's state, progress and newest values as the rows of a table: a name and a text each."""
    metrics, started = run.metrics, run.started  # whose curves the summary then need not look for
    summary = run.summary()
    return [
        ("task", summary.task),
        ("library", summary.library),
        *([("agent config", run.manifest.agent_source)] if run.manifest.agent_source else []),
        ("state", summary.state),
        *([("reason", summary.reason)] if summary.reason else []),
        *[(restart.count, restart.cause or "-") for restart in run.restarts],
        ("iteration", summary.progress.text or "-"),
        *([("time left", duration(summary.eta_s))] if summary.eta_s else []),
        *[(name, precise(metrics.last(name))) for name in metrics.names],
        *([("diagnosis", text)] if (text := line_of(run)) else []),
        *[("alert", f"{alert.what}{_at(alert.iteration)}") for alert in run.alerts],
        *[(f"{part}, resumed", report) for part, report in (started.restored if started else {}).items()],
        *repetition_rows(run.record),
    ]


def _at(iteration: int | None) -> str:
    return "" if iteration is None else f" (iteration {iteration})"


def _used(run: RunFacts, name: str) -> float:
    """Return the newest value of a resource's use, summed over the run's nodes."""
    return sum(run.system.last(tag) for tag in run.system.tags if tag.endswith(f"/{name}"))
