"""Tables, progress and status, in a notebook or on a terminal; every outside string is escaped."""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rlnb.settings import options

if TYPE_CHECKING:
    from rlnb.run import Run

_QUIET_S = 0.5
"""What takes less than this is not worth a word."""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "") -> str:
    """Return an HTML table of text; everything in it is escaped."""
    head = "".join(f"<th style='text-align:left'>{html.escape(str(cell))}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    title = f"<caption style='text-align:left'><b>{html.escape(caption)}</b></caption>" if caption else ""
    head = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    return f"<table>{title}{head}<tbody>{body}</tbody></table>"


def in_notebook() -> bool:
    """Return whether this process is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


def is_live() -> bool:
    """Return whether a person is looking: widgets then, pictures otherwise.

    papermill and nbconvert start their kernels with ``store_history`` on and no front end; both, and
    the batch jobs that call them, can be told by their own variables or by rlnb's own setting.
    """
    import os

    if options.display != "auto":
        return options.display == "live"
    return in_notebook() and "RLNB_STATIC" not in os.environ and "PAPERMILL_INPUT_PATH" not in os.environ


@contextlib.contextmanager
def status(text: str) -> Iterator[None]:
    """Say what is being waited for, and in the end how long it took."""
    begun = time.monotonic()
    if in_notebook():
        from IPython.display import HTML, display

        shown = display(HTML(f"<i>{html.escape(text)} ...</i>"), display_id=True)
        try:
            yield
        finally:
            seconds = time.monotonic() - begun
            done = f"<i>{html.escape(text)}: {seconds:.1f} s</i>" if seconds > _QUIET_S else ""
            shown.update(HTML(done))
    else:
        from rich.console import Console

        with Console(stderr=True).status(text):
            yield


@contextlib.contextmanager
def progress(run: Run) -> Iterator[Callable[[], None]]:
    """Show the progress of a run; the value is called to bring it up to date."""
    if in_notebook():
        from IPython.display import HTML, display

        shown = display(HTML(""), display_id=True)
        yield lambda: shown.update(HTML(_bar(run)))
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bars:
            bar = bars.add_task(run.id, total=None)

            def update() -> None:
                done, total = run.progress
                bars.update(bar, completed=done, total=total or None, description=f"{run.id} {run.state}")

            yield update
    else:
        yield lambda: None


def _bar(run: Run) -> str:
    done, total = run.progress
    share = done / total if total else 0.0
    latest = ", ".join(
        f"{name} {run.metrics[name].last:.3g}" for name in ("reward", "success_rate", "fps") if name in run.metrics.names
    )
    left = eta_s(run)
    remaining = f", {left:.0f} s left" if left else ""
    return (
        f"<div><b>{html.escape(run.id)}</b> {html.escape(run.state)}: iteration {done} of {total or '?'}{remaining}"
        f"<div style='background:#ddd;width:24em;height:.6em'><div style='background:#3b7dd8;height:.6em;"
        f"width:{100 * share:.0f}%'></div></div><small>{html.escape(latest)}</small></div>"
    )


def eta_s(run: Run) -> float | None:
    """Return the seconds that a running training still takes at its pace so far; None when that is unknown."""
    started, (done, total) = run.started, run.progress
    if started is None or run.state != "running" or done <= started.first_iteration:
        return None
    pace = (time.time() - started.time_s) / (done - started.first_iteration)
    return pace * (total - done)


def show(value: Any) -> None:
    """Display a value in the notebook; on a terminal nothing is shown."""
    if in_notebook():
        from IPython.display import display

        display(value)
