"""A run in one line, its progress bar, and the reason for its failure."""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rlnb.diagnosis.diagnosis import line_of
from rlnb.display import place
from rlnb.display.front_end import in_notebook
from rlnb.display.table import duration, short

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts

LOG_LINES = 40
SAY_S = 10.0
"""Seconds between two progress lines on output that cannot show a bar, such as a log file."""


def failures(runs: Sequence[RunFacts]) -> str:
    """Return HTML with the error and the end of the log of each run that did not complete; empty if all did."""
    sections = []
    for run in runs:
        if run.state in ("failed", "lost", "timeout", "cancelled"):
            training = [job.folder.number for job in run.jobs if job.kind == "train"]
            error = run.result.error if run.state != "lost" and run.result else "its process left no result"
            log = run.logs(LOG_LINES, job=training[-1]) if training else ""
            sections.append(f"<h2>{html.escape(f'{run.id} {run.state}: {error}')}</h2><pre>{html.escape(log)}</pre>")
    return "".join(sections)


@contextlib.contextmanager
def progress(run: RunFacts) -> Iterator[Callable[[], None]]:
    """Show the progress of a run. Call the yielded function to update it."""
    if in_notebook():
        output = place.show({"text/html": "", "text/plain": ""}, raw=True)
        yield lambda: output.update({"text/html": bar(run), "text/plain": _text(run)}, raw=True)
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bars:
            row = bars.add_task(run.id, total=None)

            def update() -> None:
                done, total = run.progress
                where = f" (silent, see {logs[0]})" if (logs := run.silent_logs) else ""
                bars.update(row, completed=done, total=total or None, description=f"{run.id} {run.state}{where}")

            yield update
    else:
        last = [time.monotonic()]

        def say() -> None:
            if time.monotonic() - last[0] >= SAY_S:
                last[0] = time.monotonic()
                sys.stderr.write(f"{_text(run)}\n")
                sys.stderr.flush()

        yield say


def _text(run: RunFacts) -> str:
    """Return one line of text with a run's state, progress, time left and newest values."""
    return ": ".join(filter(None, [f"{run.id} {run.state}", facts(run)]))


def bar(run: RunFacts, *, name: str = "", colour: str = "#3b7dd8") -> str:
    """Return one line of HTML with a run's state, progress, time left and newest values, all escaped.

    Args:
        run: The run.
        name: Displayed name; empty for the run's id.
        colour: Colour of the bar, the same as that of the run's curves.
    """
    done, total = run.progress
    filled = f"height:.6em;width:{100 * done / total if total else 0:.0f}%;background:{html.escape(colour)}"
    return (
        f"<div><b>{html.escape(name or run.id)}</b> {html.escape(run.state)} "
        "<span style='display:inline-block;width:10em;height:.6em;background:#8884'>"
        f"<span style='display:block;{filled}'></span></span> "
        f"<small>{html.escape(facts(run))}</small></div>"
    )


def facts(run: RunFacts) -> str:
    """Return a run's progress, time left and newest values as one line of text."""
    done, total = run.progress
    metrics = run.metrics
    logged = [name for name in ("reward", "success_rate", "fps") if name in metrics.names]
    latest = [f"{name} {short(metrics.last(name))}" for name in logged]
    used = [f"{_used(run, name):.1f} {unit}" for name, unit in (("cpu_cores", "cores"), ("memory_gib", "GiB"))]
    ahead = ", ".join(run.waits_for)
    waits = f"waits for {ahead}" if ahead else ""
    silent = "".join(f"no output for minutes, see {log}" for log in run.silent_logs[:1])
    rest = f"{duration(eta_s)} left" if (eta_s := run.eta_s) else ""
    symptoms = f"diagnosis: {line}" if (line := line_of(run)) else ""
    alerts = f"alerts: {', '.join(alert.rule for alert in run.alerts)}" if run.manifest.alerts and run.alerts else ""
    news = [silent, waits, f"iteration {done} of {total}" if total else "", rest, *latest, symptoms, alerts]
    return ", ".join(fact for fact in (*news, *(used if run.system.tags and not run.result else ())) if fact)


def _used(run: RunFacts, name: str) -> float:
    """Return the newest value of a resource's use, summed over the run's nodes."""
    return sum(run.system.last(tag) for tag in run.system.tags if tag.endswith(f"/{name}"))
