"""A run in one line, its progress bar, and the reason for its failure."""

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
from rlnb.display.table import duration, short
from rlnb.spec import ENDED

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts
    from rlnb.spec import State

LOG_LINES = 40
SAY_S = 10.0
"""Seconds between two progress lines on output that cannot show a bar, such as a log file."""
REPEAT_S = 300.0
"""The same for a run that waits. A new reason is printed at once."""
LONG_S = 60.0
"""Seconds after which the length of a wait is shown."""
WAITING: tuple[State, ...] = ("created", "queued", "starting")
"""The states of a run that has not begun to train."""


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
        output = front_end.show_place({"text/html": "", "text/plain": ""}, raw=True)
        yield lambda: output.update({"text/html": bar(run), "text/plain": _text(run)}, raw=True)
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bars:
            row = bars.add_task(run.id, total=None)

            def update() -> None:
                done, total = run.progress
                where = f" (silent, see {logs[0]})" if (logs := run.silent_logs) else ""
                text = escape(f"{run.id} {standing(run)}{where}")
                bars.update(row, completed=done, total=total or None, description=text)

            yield update
    else:
        yield _Lines(run).say


class _Lines:
    """The progress of a run in lines, for output that cannot show a bar. A run that waits is repeated seldom."""

    def __init__(self, run: RunFacts) -> None:
        self._run, self._said_s = run, time.monotonic()
        self._news: tuple[State, str] | None = None

    def say(self) -> None:
        """Print a line if it is time for one, or if a run that waits does so for another reason."""
        run, state = self._run, self._run.state
        reason = "" if state in ENDED else run.record.reason_of(state)
        silence_s = time.monotonic() - self._said_s
        if reason:
            due = (state, reason) != self._news or silence_s >= REPEAT_S
        else:
            due = silence_s >= (REPEAT_S if state == "queued" else SAY_S)
        if due:
            self._said_s, self._news = time.monotonic(), (state, reason)
            sys.stderr.write(f"{_text(run)}\n")
            sys.stderr.flush()


def standing(run: RunFacts) -> str:
    """Return a run's state and, until it has ended, why and how long it waits: ``"queued 12 min: PENDING (Priority)"``.

    The state of a training that stands still, such as ``"running"``, has not lasted as long as that:
    ``"running: suspended for 5 min"``.
    """
    state = run.state
    reason = "" if state in ENDED else run.record.reason_of(state)
    if not reason:
        return state
    job = run.record.training
    record = job.waits if job else None
    minutes_s = record.seconds // LONG_S * LONG_S if record else 0.0
    if not minutes_s:
        return f"{state}: {reason}"
    length = duration(minutes_s)
    return f"{state} {length}: {reason}" if state in WAITING else f"{state}: {reason} for {length}"


def _text(run: RunFacts) -> str:
    """Return one line of text with a run's state, progress, time left and newest values."""
    return ", ".join(filter(None, [f"{run.id} {standing(run)}", facts(run)]))


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
        f"<div><b>{html.escape(name or run.id)}</b> {html.escape(standing(run))} "
        "<span style='display:inline-block;width:10em;height:.6em;background:#8884'>"
        f"<span style='display:block;{filled}'></span></span> "
        f"<small>{html.escape(facts(run))}</small></div>"
    )


def facts(run: RunFacts) -> str:
    """Return a run's progress, time left and newest values as one line of text."""
    done, total = run.progress
    metrics = run.metrics
    logged = [name for name in ("reward", "success_rate", "fps") if name in metrics.names]
    # A training that is to go on repeats no values of the time before.
    latest = [] if run.state in WAITING else [f"{name} {short(metrics.last(name))}" for name in logged]
    used = [f"{_used(run, name):.1f} {unit}" for name, unit in (("cpu_cores", "cores"), ("memory_gib", "GiB"))]
    silent = "".join(f"no output for minutes, see {log}" for log in run.silent_logs[:1])
    rest = f"{duration(eta_s)} left" if (eta_s := run.eta_s) else ""
    symptoms = f"diagnosis: {line}" if (line := line_of(run)) else ""
    alerts = f"alerts: {', '.join(alert.rule for alert in run.alerts)}" if run.manifest.alerts and run.alerts else ""
    news = [silent, f"iteration {done} of {total}" if total else "", rest, *latest, metrics.unread, symptoms, alerts]
    return ", ".join(fact for fact in (*news, *(used if run.system.tags and not run.result else ())) if fact)


def _used(run: RunFacts, name: str) -> float:
    """Return the newest value of a resource's use, summed over the run's nodes."""
    return sum(run.system.last(tag) for tag in run.system.tags if tag.endswith(f"/{name}"))
