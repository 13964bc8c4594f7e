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

SAY_S = 10.0
"""Between two lines on progress where no bar can be drawn: a log, a job."""
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

    JupyterLab, Notebook and VS Code say with every request which cell it comes from, and only a front end
    sends messages of widgets. papermill, nbconvert and other programs run code without a cell to show it
    in, also where they were themselves started from a notebook and inherited its environment.
    """
    if options.display != "auto":
        return options.display == "live"
    if not in_notebook():
        return False
    request = _request()
    return request["header"].get("msg_type", "").startswith("comm_") or bool(request["metadata"].get("cellId"))


def cell() -> tuple[str, str]:
    """Return the cell that is running and this very execution of it; empty where a front end names none."""
    request = _request() if in_notebook() else {"header": {}, "metadata": {}}
    return request["metadata"].get("cellId", ""), request["header"].get("msg_id", "")


def _request() -> dict[str, Any]:
    """Return the Jupyter message that is being answered; see "execute_request" in the messaging protocol."""
    try:
        parent = sys.modules["IPython"].get_ipython().kernel.get_parent("shell")
    except (AttributeError, LookupError):
        parent = {}
    return {"header": parent.get("header") or {}, "metadata": parent.get("metadata") or {}}


@contextlib.contextmanager
def status(text: str) -> Iterator[Callable[[Any], None]]:
    """Say what is being waited for, and in the end how long it took.

    Yields:
        ``function(value)`` that shows something in the meantime, in a notebook.
    """
    begun = time.monotonic()
    if in_notebook():
        from IPython.display import HTML, display

        shown = display(HTML(f"<i>{html.escape(text)} ...</i>"), display_id=True)
        try:
            yield shown.update
        finally:
            seconds = time.monotonic() - begun
            done = f"<i>{html.escape(text)}: {seconds:.1f} s</i>" if seconds > _QUIET_S else ""
            shown.update(HTML(done))
    else:
        from rich.console import Console

        console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
        if not console.is_terminal:  # a log: of a spinner nothing would be left
            console.print(f"{text} ...")
        with console.status(text):
            yield lambda value: None


@contextlib.contextmanager
def progress(run: Run) -> Iterator[Callable[[], None]]:
    """Show the progress of a run; the value is called to bring it up to date."""
    if in_notebook():
        from IPython.display import HTML, display

        shown = display(HTML(""), display_id=True)
        yield lambda: shown.update(HTML(bar(run)))
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
                sys.stderr.write(": ".join(filter(None, [f"{run.id} {run.state}", facts(run)])) + "\n")
                sys.stderr.flush()

        yield say


def bar(run: Run, *, name: str = "", colour: str = "#3b7dd8") -> str:
    """Return one line of HTML: a run's state, progress, time left and newest values; all of it escaped.

    Args:
        run: The run.
        name: What to call it; its id when empty.
        colour: Of the bar, so that it can be found among the curves.
    """
    done, total = run.progress
    filled = f"height:.6em;width:{100 * done / total if total else 0:.0f}%;background:{html.escape(colour)}"
    return (
        f"<div><b>{html.escape(name or run.id)}</b> {html.escape(run.state)} "
        "<span style='display:inline-block;width:10em;height:.6em;background:#8884'>"
        f"<span style='display:block;{filled}'></span></span> "
        f"<small>{html.escape(facts(run))}</small></div>"
    )


def facts(run: Run) -> str:
    """Return a run's progress, time left and newest values, in one line."""
    done, total = run.progress
    metrics = run.metrics
    logged = [name for name in ("reward", "success_rate", "fps") if name in metrics.names]
    latest = [f"{name} {short(metrics.last(name))}" for name in logged]
    used = [f"{_used(run, name):.1f} {unit}" for name, unit in (("cpu_cores", "cores"), ("memory_gib", "GiB"))]
    ahead = ", ".join(run.waits_for)
    waits = f"waits for {ahead}" if ahead else ""
    silent = "".join(f"no output for minutes, see {log}" for log in run.silent_logs[:1])
    left = f"{duration(eta_s)} left" if (eta_s := run.eta_s) else ""
    found = [silent, waits, f"iteration {done} of {total}" if total else "", left, *latest]
    return ", ".join(fact for fact in (*found, *(used if run.system.tags and not run.result else ())) if fact)


def _used(run: Run, name: str) -> float:
    """Return what the run takes now over all its nodes."""
    return sum(run.system.last(tag) for tag in run.system.tags if tag.endswith(f"/{name}"))


def duration(seconds: float) -> str:
    """Return a time span for people: ``"42 s"``, ``"7 min"``, ``"1 h 05 min"``."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def show(value: Any) -> None:
    """Display a value in the notebook; on a terminal nothing is shown."""
    if in_notebook():
        from IPython.display import display

        display(value)


def show_bundle(bundle: dict[str, Any]) -> None:
    """Display a Jupyter mime bundle in the notebook; on a terminal nothing is shown."""
    if in_notebook():
        from IPython.display import display

        display(bundle, raw=True)


def short(value: float) -> str:
    """Return three digits of a number, more where it has more before its point: ``0.0597``, ``12.3``, ``18,204``."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
