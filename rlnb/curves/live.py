"""Live curves: a dashboard for a person, one static figure for papermill and nbconvert.

While runs go on, the curves are an anywidget around the plotly.js that the plotly package ships: nothing
comes from the network. (Plotly's own JupyterLab renderer draws an output once and ignores its updates.)
When all runs have ended the widget makes room for plotly JSON with a PNG, so a saved notebook keeps both.
"""

from __future__ import annotations

import functools
import gzip
import html
import importlib.util
import json
import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlnb.curves import figure, panels, progress
from rlnb.curves.memory import give_back
from rlnb.curves.stream import Stream, packed
from rlnb.display import front_end
from rlnb.errors import RlnbError
from rlnb.records.facts import RunFacts
from rlnb.records.find import find
from rlnb.spec import State

logger = logging.getLogger(__name__)

GOING: tuple[State, ...] = ("created", "queued", "starting", "running")
POLL_S = 1.0
SOON_S = 0.05
"""Until the next message where more is to be told than one may hold."""
LOG_LINES = 20
_LARGEST_SHARE = 0.1
"""Share of one core that the curves may take; those of many runs are looked at less often."""
_LONGEST_WAIT_S = 3.0
ALIKE = ("seed", "tags")
"""What may differ between runs of which a mean is taken."""
READ_S = 0.1
"""Time for reading the event files of one run at a time."""
IN_FLIGHT = 2
"""Messages that a page may have before it has painted the first of them."""
_FORGIVEN_S = 5.0

_dashboards: list[Dashboard] = []
"""Those that still update."""


def watch(
    runs: RunFacts | Sequence[RunFacts],
    metrics: Sequence[str] | None = None,
    *,
    x: str = "frames",
    interval_s: float = 0.5,
) -> None:
    """Show the curves of runs until they end.

    For a person it returns at once, and the curves go on while the kernel is free or busy. Under papermill,
    nbconvert and plain Python it waits for the runs and then shows the curves once. An interrupt ends the
    watching, never a run.

    Args:
        runs: A run, or several; one colour each.
        metrics: Metric names or raw tags; None is the usual ones that were logged.
        x: ``"frames"``, ``"iterations"`` or ``"wall_time"``.
        interval_s: Seconds between two updates, at least.

    Raises:
        NotFoundError: No such metric or axis.
        RlnbError: There is no run to watch, or anywidget is missing.
    """
    chosen = list(runs) if isinstance(runs, Sequence) else [runs]
    if not chosen:
        raise RlnbError("There is no run to watch. Start one with rlnb.train(...), or look with rlnb.runs().")
    figure.check_axis(x)
    if front_end.is_live():
        if importlib.util.find_spec("anywidget") is None:
            raise RlnbError("Live curves need anywidget: pip install 'rlnb[lab]'")
        _stop_replaced()
        dashboard = Dashboard(chosen, metrics, x=x, interval_s=interval_s)
        dashboard.start()
        _dashboards.append(dashboard)
    else:
        figure.chosen(chosen, metrics)  # names are checked before the waiting
        _wait(chosen)
        front_end.show_bundle(figure.mimebundle(figure.figure(chosen, metrics, x), picture=True))
        panels.show(chosen)
        if words := progress.failures(chosen):
            front_end.show_bundle({"text/html": words, "text/plain": "a run did not complete"})


def _wait(runs: Sequence[RunFacts]) -> None:
    """Wait for each run to end; an interrupt ends the waiting only."""
    try:
        for run in runs:
            with progress.progress(run) as show:
                while run.state in GOING:
                    show()
                    time.sleep(POLL_S)
                show()
    except KeyboardInterrupt:
        logger.warning("No longer watching %s; what runs goes on.", ", ".join(run.id for run in runs))


def _stop_replaced() -> None:
    """End the dashboards of an earlier execution of this cell: nobody sees them any more."""
    cell, execution = front_end.cell()
    for dashboard in list(_dashboards):
        if cell and dashboard.cell == cell and dashboard.execution != execution:
            dashboard.stop()
        if not dashboard.is_alive():
            _dashboards.remove(dashboard)


class Dashboard:
    """States, Cancel buttons and curves in a cell's output, told by a thread what is new until all runs end.

    What a page asks for (another axis, other metrics, a mean over seeds) is noted as it comes and answered by that
    thread, which is the only one that reads the runs.
    """

    def __init__(self, runs: Sequence[RunFacts], metrics: Sequence[str] | None, *, x: str, interval_s: float) -> None:
        # Own readers: those of the caller's runs are not made for two threads.
        self._runs = read_anew(runs)
        self._stream: Stream | None = None
        self._metrics, self._x, self._interval_s = metrics, x, interval_s
        self._names = figure.labels(self._runs)
        self._band, self._stale = False, True
        self._views: dict[str, bool] = {}
        self._asked = threading.Event()
        self._ended = threading.Event()
        self._shown: list[str] = []
        self._rows: list[dict[str, Any]] = []
        self._sent, self._painted, self._sent_s = 0, 0, 0.0
        self._thread = threading.Thread(target=self._follow, name="rlnb-watch", daemon=True)
        self.cell, self.execution = front_end.cell()

    def start(self) -> None:
        """Show everything and begin to follow.

        Raises:
            NotFoundError: There is no such metric; nothing is shown.
        """
        from IPython.display import HTML, display

        self._hurry()
        figure.chosen(self._runs, self._metrics)
        self._lines = display(HTML(""), display_id=True)
        self._widget = _widget()()
        self._widget.on_msg(lambda _widget, message, _buffers: self._hear(message))
        self._place = display(self._widget, display_id=True)
        self._below = display(HTML(""), display_id=True)
        self._thread.start()

    def stop(self) -> None:
        """End the updates; the runs go on."""
        self._ended.set()
        self._asked.set()

    def is_alive(self) -> bool:
        """Return whether it still updates."""
        return self._thread.is_alive()

    def _hear(self, message: dict[str, Any]) -> None:
        """Note what a page says."""
        view, ask = message.get("view"), message.get("ask")
        if "painted" in message:
            self._painted = max(self._painted, int(message["painted"]))
        elif ask == "plotly.js":
            self._widget.send({"kind": "plotly.js"}, buffers=[_plotly_js()])
        elif ask == "all":
            self._views[str(view)] = True
            self._stale = True
            self._asked.set()
        elif ask == "cancel":
            self._cancel(str(message.get("run")))
        elif ask == "axis" and message.get("axis") in figure.X_AXES:
            self._x, self._stale = message["axis"], True
            self._asked.set()
        elif ask == "metrics":
            self._metrics, self._stale = [str(name) for name in message.get("metrics", [])], True
            self._asked.set()
        elif ask == "band":
            self._band, self._stale = bool(message.get("band")), True
            self._asked.set()
        elif message.get("gone"):
            self._views.pop(str(view), None)
            self._asked.set()
        elif "visible" in message:
            self._views[str(view)] = bool(message["visible"])
            self._asked.set()

    def _cancel(self, run_id: str) -> None:
        for run in self._runs:
            if run.id == run_id:
                with suppress(RlnbError):  # it has ended meanwhile
                    RunFacts(run.path).cancel()

    def _follow(self) -> None:
        try:
            figure.panels(["reward"], "")  # a process's first figure takes a second, which the curves are not to pay
            while not self._ended.is_set():
                begun_s = time.thread_time()
                self._asked.clear()
                # Asked first, so that the last drawing has what a run logged before its end.
                going = any(run.state in GOING for run in self._runs)
                if not going:
                    self._end()
                    return
                if not self._views:
                    self._let_go()
                self._hurry()
                # What a person asked for is told to a page that is paused, too.
                wanted = (any(self._views.values()) and not self._waits()) or (self._views and self._stale)
                behind = self._tell() if wanted else False
                spent_s = time.thread_time() - begun_s
                wait_s = SOON_S if behind else min(max(self._interval_s, spent_s / _LARGEST_SHARE), _LONGEST_WAIT_S)
                self._asked.wait(wait_s)
        except Exception as exc:  # the one place that can tell the person
            logger.exception("watching stopped")
            text = f"<i>The curves stopped: {html.escape(str(exc))}. The runs go on; run the cell again.</i>"
            self._lines.update({"text/html": text}, raw=True)

    def _let_go(self) -> None:
        """Drop the curves that no page shows any more; the next page has them read anew."""
        if self._stream is not None:
            self._stream, self._stale = None, True
            self._runs = read_anew(self._runs)
            give_back()

    def _hurry(self) -> None:
        """Have the newest of long histories read first, and the rest of them bit by bit."""
        for run in self._runs:
            run.metrics.limit_s = run.system.limit_s = READ_S

    def _waits(self) -> bool:
        """Return whether the page has enough to paint; a word from it can get lost, so this ends by itself."""
        return self._sent - self._painted >= IN_FLIGHT and time.monotonic() - self._sent_s < _FORGIVEN_S

    def _tell(self) -> bool:
        """Send what is new; return whether there is more."""
        if not self._stale and self._metrics is None and figure.chosen(self._runs, None) != self._shown:
            self._stale = True  # a metric was logged for the first time
        if self._stale or self._stream is None:
            self._stale = False
            self._shown = figure.chosen(self._runs, self._metrics)
            groups = _groups(self._runs) if self._band else None
            self._stream = Stream(self._runs, self._shown, self._x, groups)
            self._widget.send(self._layout(groups))
            self._rows = []
        changes = self._stream.changes()
        heads, buffer = packed(changes)
        rows = [self._row(number) for number in range(len(self._runs))]
        if changes or rows != self._rows:
            self._sent, self._sent_s = self._sent + 1, time.monotonic()
            message = {"kind": "curves", "number": self._sent, "changes": heads}
            self._widget.send({**message, "runs": rows if rows != self._rows else None}, buffers=[buffer])
            self._rows = rows
        return self._stream.behind

    def _layout(self, groups: Sequence[Sequence[int]] | None) -> dict[str, Any]:
        title = {"frames": "frames", "iterations": "iteration", "wall_time": "wall time (s)"}[self._x]
        layout = json.loads(figure.panels(self._shown, title).to_json())["layout"]
        traces = []
        for panel in range(len(self._shown)):
            if groups is None:
                several = len(self._runs) > 1
                for number, name in enumerate(self._names):
                    traces.append(figure.line(name, number, panel, legend=several and panel == 0))
                continue
            firsts = [self._runs[group[0]] for group in groups]
            names = figure.labels(firsts, without=ALIKE) if len(groups) > 1 else [firsts[0].task]
            for number, (group, name) in enumerate(zip(groups, names, strict=True)):
                mean = figure.line(f"{name} ({len(group)} seeds)", number, panel, legend=panel == 0)
                edge = {**mean, "line": {"width": 0, "color": mean["line"]["color"]}, "showlegend": False}
                edge |= {"hoverinfo": "skip", "hovertemplate": None}
                traces += [{**edge, "fill": "none"}, {**edge, "fill": "tonexty"}, mean]
        of_runs = ((*run.metrics.names, *run.metrics.tags, *run.system.tags) for run in self._runs)
        logged = sorted({name for names in of_runs for name in names})
        metrics = [*[name for name in figure.DEFAULT_METRICS if name in logged], *logged]
        return {
            "kind": "layout",
            "layout": layout,
            "traces": traces,
            "axis": self._x,
            "metrics": list(dict.fromkeys(metrics)),
            "chosen": self._shown,
        }

    def _row(self, number: int) -> dict[str, Any]:
        run = self._runs[number]
        done, total = run.progress
        return {
            "id": run.id,
            "name": self._names[number] or run.id,
            "state": run.state,
            "share": round(done / total, 3) if total else 0.0,
            "facts": progress.facts(run),
            "colour": figure.colour(number),
            "going": run.state in GOING,
            "log": run.logs(LOG_LINES) if run.state in ("failed", "lost", "timeout") else "",
        }

    def _end(self) -> None:
        """Replace the widget by output that needs no kernel."""
        lines = "".join(
            progress.bar(run, name=name, colour=figure.colour(number))
            for number, (run, name) in enumerate(zip(self._runs, self._names, strict=True))
        )
        shown = figure.figure(self._runs, self._metrics, self._x)
        self._lines.update({"text/html": lines}, raw=True)
        self._place.update(figure.mimebundle(shown, picture=True), raw=True)
        self._below.update({"text/html": panels.pictures(self._runs)}, raw=True)
        self._widget.close()
        self._let_go()


def read_anew(runs: Sequence[RunFacts]) -> list[RunFacts]:
    """Return the same runs, of which nothing is read yet."""
    return [type(run).of(next(find(run.path))) for run in runs]


def _groups(runs: Sequence[RunFacts]) -> list[list[int]]:
    """Return which runs differ in their seed only, by their places."""
    groups: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        facts = {key: value for key, value in figure.facts(run).items() if key not in ALIKE}
        groups.setdefault(json.dumps(facts, sort_keys=True), []).append(number)
    return list(groups.values())


@functools.cache
def _widget() -> Any:
    """Return the widget class; made on first use, since anywidget takes a while to import."""
    import anywidget

    class Curves(anywidget.AnyWidget):
        """Curves that a page holds; all widgets on it share one plotly.js."""

        _esm = Path(__file__).with_name("dashboard.js").read_text(encoding="utf-8")

    return Curves


@functools.cache
def _plotly_js() -> bytes:
    """Return the plotly.js of the plotly package, compressed: 1.5 instead of 4.8 MB."""
    import plotly

    return gzip.compress(Path(plotly.__file__).with_name("package_data").joinpath("plotly.min.js").read_bytes(), 6)
