"""Live curves: a dashboard in a notebook, one static figure under papermill and nbconvert.

While runs are active, the curves are an anywidget of ``chart.js``, ``feed.js`` and ``dashboard.js`` around the
plotly.js of the plotly package, so nothing comes from the network. (Plotly's own JupyterLab renderer draws an output
once and ignores its updates.) When all runs have ended, plotly JSON with a PNG replaces the widget, so a saved notebook
keeps both.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import gzip
import html
import importlib.util
import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from rlnb.curves import figure, panels, progress, stream
from rlnb.curves.stream import GOING, Ended, FromPage, PlotlyJs, Sign, Stream, Whole, packed
from rlnb.display import front_end
from rlnb.display.figures import mimebundle
from rlnb.display.front_end import MainThread
from rlnb.display.live_objects import live_objects
from rlnb.errors import RlnbError
from rlnb.machine.packages import install_line
from rlnb.records.facts import RunFacts
from rlnb.storage.serial import from_json, to_json

if TYPE_CHECKING:
    from rlnb.spec import Json

logger = logging.getLogger(__name__)

POLL_S = 1.0
SOON_S = 0.05
"""Seconds until the next message if the last one could not contain all new points."""
_LARGEST_SHARE = 0.1
"""Fraction of one core that the curves may use. The curves of many runs are updated less often to stay below it."""
_LONGEST_WAIT_S = 3.0
_ALIVE_S = 5.0
"""Most seconds between two messages to a visible page. After 15 seconds of silence, the page says that the kernel does
not answer."""
READ_S = 0.1
"""Most seconds per update for reading the event files of a run."""
IN_FLIGHT = 2
"""Most messages sent to a page that it has not painted yet."""
_LOST_S = 5.0
"""Seconds after which a page's receipt counts as lost."""
_UNKNOWN = ""
"""Stands for the page that executes the cell, until it has sent a message: a busy kernel may not hear it."""
_UNHEARD_S = 0.5
"""Seconds between two messages to a page that has not sent any yet."""
_EMPTY: Mapping[str, Json] = {"text/html": "", "text/plain": ""}
"""A place in the output that has nothing to show yet."""


def watch(
    runs: RunFacts | Sequence[RunFacts],
    metrics: Sequence[str] | None = None,
    *,
    x: str = "frames",
    interval_s: float = 0.5,
) -> None:
    """Show the curves of runs until they end.

    In a notebook this function returns at once, and the curves are updated whether the kernel is idle or busy. Under
    papermill, nbconvert and plain Python it waits for the runs and then shows the curves once. An interrupt stops
    watching, never a run.

    Args:
        runs: A run, or several. Each has its own colour.
        metrics: Metric names, raw tags, or groups of tags such as ``"Episode_Reward"``; None is the usual metrics that
            were logged. The page offers all others.
        x: ``"frames"``, ``"iterations"`` or ``"wall_time"``.
        interval_s: Minimum number of seconds between two updates.

    Raises:
        NotFoundError: A metric or the axis does not exist.
        RlnbError: There is no run to watch, or anywidget is not installed.
    """
    several = list(runs) if isinstance(runs, Sequence) else [runs]
    if not several:
        raise RlnbError("There is no run to watch. Start one with rlnb.train(...), or list all with rlnb.runs().")
    figure.check_axis(x)
    if front_end.is_live():
        if importlib.util.find_spec("anywidget") is None:
            raise RlnbError(f"Live curves need anywidget. Use {install_line('rlnb[lab]')}")
        dashboard = Dashboard(several, metrics, x=x, interval_s=interval_s)
        live_objects.add(dashboard, close=dashboard.stop, alive=dashboard.is_alive)
        dashboard.start()
    else:
        figure.select(several, metrics)  # check the names before waiting
        _wait(several)
        front_end.show_bundle(mimebundle(figure.figure(several, metrics, x), picture=True))
        if page := newest_films(several):
            front_end.show_bundle({"text/html": page, "text/plain": "the newest film of each run"})
        panels.show(several)
        if page := progress.failures(several):
            front_end.show_bundle({"text/html": page, "text/plain": "a run did not complete"})


def _wait(runs: Sequence[RunFacts]) -> None:
    """Wait for each run to end. An interrupt stops waiting, not the runs."""
    try:
        with progress.progress(*runs) as show:
            while any(run.state in GOING for run in runs):
                show()
                time.sleep(POLL_S)
            show()
    except KeyboardInterrupt:
        logger.warning("No longer watching %s. Active runs continue.", ", ".join(run.id for run in runs))


def further(runs: Sequence[RunFacts]) -> str:
    """Return HTML that says how to draw the groups of metrics that a chart leaves out; empty if there are none."""
    groups = figure.metric_groups(runs).items()
    calls = (f"<code>watch({html.escape(repr(name))})</code> ({len(tags)})" for name, tags in groups if name)
    return f"<small>Further metrics: {text}</small>" if (text := ", ".join(calls)) else ""


@runtime_checkable
class Cancels(Protocol):
    """A run with the verb, as :class:`rlnb.Run` has it."""

    def cancel(self) -> object:
        """Ask every unfinished job of the run to end."""


class Dashboard:
    """States, Cancel buttons and curves in a cell's output. A thread updates them until all runs have ended.

    A request of a page (another axis, other metrics, a mean over seeds) is only recorded on arrival. The thread answers
    it, because no other thread may read the runs.
    """

    def __init__(self, runs: Sequence[RunFacts], metrics: Sequence[str] | None, *, x: str, interval_s: float) -> None:
        # Own readers, because those of the caller's runs are not thread-safe.
        self._runs = [run.reread() for run in runs]
        self._stream: Stream | None = None
        self._metrics, self._x, self._interval_s = metrics, x, interval_s
        self._names = figure.labels(self._runs)
        self._band, self._stale = False, True
        self._views = {_UNKNOWN: True}
        self._news = threading.Event()
        self._ended = threading.Event()
        self._selection: list[str] = []
        self._rows: list[stream.DashboardRow] = []
        self._films = ""
        self._sent, self._painted, self._sent_s, self._sign_s = 0, 0, 0.0, 0.0
        self._thread = threading.Thread(target=self._follow, name="rlnb-watch", daemon=True)

    def start(self) -> None:
        """Show the dashboard and start the thread that updates it.

        Raises:
            NotFoundError: A metric does not exist; nothing is shown.
        """
        self._hurry()
        figure.select(self._runs, self._metrics)
        self._lines = front_end.show_place(_EMPTY, raw=True)
        self._page = Page(self._receive)
        self._place = front_end.show_place(self._page.widget)
        self._below = front_end.show_place(_EMPTY, raw=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the updates. The runs continue."""
        self._ended.set()
        self._news.set()

    def is_alive(self) -> bool:
        """Return whether the dashboard is still updated."""
        return self._thread.is_alive()

    def _receive(self, content: Mapping[str, Json]) -> None:
        self._hear(from_json(FromPage, content, ignore_unknown=True))

    def _hear(self, message: FromPage) -> None:
        """Record a message of a page."""
        if message.painted is not None:
            self._painted = max(self._painted, message.painted)
            if message.view and [*self._views] == [_UNKNOWN]:  # a page that was silent for long
                self._views[message.view] = True
        elif message.ask == "plotly.js":
            self._page.push()
        elif message.ask == "cancel":
            self._cancel(message.run)
        elif message.ask in ("close", "leave"):
            self._views.pop(_UNKNOWN, None)
            self._views.pop(message.view, None)
            if message.ask == "leave":
                self._page.expect()
            self._news.set()
        elif message.ask:
            self._take_up(message)
        elif message.visible is not None:
            self._views.pop(_UNKNOWN, None)
            self._views[message.view] = message.visible
            self._news.set()

    def _take_up(self, message: FromPage) -> None:
        """Record a request that redraws the figure."""
        if message.ask == "all":
            self._views.pop(_UNKNOWN, None)
            self._views[message.view] = True
        elif message.ask == "axis" and message.axis in figure.X_AXES:
            self._x = message.axis
        elif message.ask == "metrics":
            self._metrics = list(message.metrics)
        elif message.ask == "band":
            self._band = message.band
        self._stale = True
        self._news.set()

    def _cancel(self, run_id: str) -> None:
        for run in self._runs:
            if run.id == run_id:
                with suppress(RlnbError, StopIteration):  # the run has ended, or was deleted meanwhile
                    if isinstance(own := run.reread(), Cancels):
                        own.cancel()

    def _follow(self) -> None:
        try:
            self._page.begin()
            while not self._ended.is_set():
                start_s = time.thread_time()
                self._news.clear()
                # Read the states before the curves, so that the last figure has all points logged before the end.
                going = any(run.state in GOING for run in self._runs)
                if not going:
                    self._end()
                    return
                if not self._views:
                    self._let_go()
                self._notice_loss()
                if len(self._views) > 1 and not self._page.is_busy():
                    self._views.pop(_UNKNOWN, None)
                self._hurry()
                # A paused page still gets the answer to its own request.
                due = (any(self._views.values()) and not self._waits()) or (self._views and self._stale)
                again = self._page.is_due()
                behind = self._tell() if due or again else False
                if again:
                    self._tell_new_pages()
                if due and (page := newest_films(self._runs)) != self._films:
                    self._films = page
                    self._below.update({"text/html": page}, raw=True)
                spent_s = time.thread_time() - start_s
                if any(self._views.values()) and time.monotonic() - max(self._sent_s, self._sign_s) > _ALIVE_S:
                    self._sign("alive")
                wait_s = SOON_S if behind else min(max(self._interval_s, spent_s / _LARGEST_SHARE), _LONGEST_WAIT_S)
                self._news.wait(wait_s)
        except Exception as exc:  # nothing above this thread can report the error to the user
            logger.exception("watching stopped")
            text = f"<i>The curves stopped: {html.escape(str(exc))}. The runs continue. Run the cell again.</i>"
            self._lines.update({"text/html": text}, raw=True)
            self._sign("stopped")

    def _sign(self, kind: Literal["alive", "stopped"]) -> None:
        self._sign_s = time.monotonic()
        self._page.send(Sign(kind=kind))

    def _let_go(self) -> None:
        """Drop the curves when no page shows them any more. They are read again for the next page."""
        if self._stream is not None:
            self._stream, self._stale = None, True
            self._runs = [run.reread() for run in self._runs]
            give_memory_back()

    def _hurry(self) -> None:
        """Limit the time of each read, so that a long history is read in parts, the newest part first."""
        for run in self._runs:
            run.metrics.limit_s = run.system.limit_s = READ_S

    def _waits(self) -> bool:
        """Return whether the page has enough messages to paint. A lost receipt counts only for a limited time."""
        if not any(visible for view, visible in self._views.items() if view != _UNKNOWN):
            return time.monotonic() - self._sent_s < _UNHEARD_S
        return self._sent - self._painted >= IN_FLIGHT and time.monotonic() - self._sent_s < _LOST_S

    def _notice_loss(self) -> None:
        """Send on without receipts, after a page has stopped to send any: it may have been loaded again."""
        lost = self._sent - self._painted >= IN_FLIGHT and time.monotonic() - self._sent_s >= _LOST_S
        if lost and any(self._views.values()) and _UNKNOWN not in self._views:
            self._views = {_UNKNOWN: True}
            self._page.expect()

    def _tell(self) -> bool:
        """Send the new points and rows, and return whether more points remain."""
        if not self._stale and self._metrics is None and figure.select(self._runs, None) != self._selection:
            self._stale = True  # a metric was logged for the first time
        if self._stale or self._stream is None:
            self._stream = self._new_stream()
        changes = self._stream.changes()
        heads, buffer = packed(changes)
        rows = [stream.row_of(run, self._names[number], number) for number, run in enumerate(self._runs)]
        if changes or rows != self._rows:
            self._sent, self._sent_s = self._sent + 1, time.monotonic()
            message = stream.Curves(number=self._sent, changes=heads, runs=rows if rows != self._rows else None)
            self._page.send(message, buffer)
            self._rows = rows
        return self._stream.behind

    def _new_stream(self) -> Stream:
        """Send the charts without points, and return the stream of its curves."""
        self._stale = False
        self._selection = figure.select(self._runs, self._metrics)
        groups = stream.groups_of(self._runs) if self._band else None
        points = Stream(self._runs, self._selection, self._x, groups)
        self._layout = stream.layout(self._runs, self._selection, self._x, groups)
        self._page.send(self._layout)
        self._rows = []
        return points

    def _tell_new_pages(self) -> None:
        """Open the widget again and send all curves, for pages that were opened while the kernel is busy.

        From then on, curves are sent as long as the kernel is busy: it cannot hear whether there is such a page.
        """
        self._views[_UNKNOWN] = True
        assert self._stream is not None
        self._page.open_again()
        heads, buffer = packed(self._stream.whole())
        self._page.send(Whole(layout=self._layout, changes=heads, runs=self._rows), buffer)

    def _end(self) -> None:
        """Replace the widget with output that needs no kernel."""
        lines = "".join(
            progress.bar(run, name=name, colour=figure.colour(number))
            for number, (run, name) in enumerate(zip(self._runs, self._names, strict=True))
        )
        chart = figure.figure(self._runs, self._metrics, self._x)
        self._lines.update({"text/html": lines}, raw=True)
        bundle = mimebundle(chart, picture=True)
        self._place.update(bundle, raw=True)
        below = further(self._runs) + newest_films(self._runs) + panels.pictures(self._runs)
        self._below.update({"text/html": below}, raw=True)
        self._page.close(bundle)
        self._let_go()


# -- pages that a busy kernel cannot answer --------------------------------------------------------------------------
# JupyterLab sends a page's messages to a thread of the kernel (a subshell) only some time after the page was opened,
# and never if the page was opened while the kernel was busy. Before that, they wait until the running cell ends.
# Therefore a page gets plotly.js unasked, and while the kernel is busy, the widget is opened again from time to time:
# a page that was reloaded, or a second browser, knows it from then on.


AGAIN_S, LONGEST_S = 30.0, 300.0
"""Seconds to the first opening, and most seconds between two. Each one sends plotly.js, 1.6 MB."""
AGAIN_SOON_S, EXPECTED_S = 4.0, 20.0
"""Seconds between two openings after a page was closed, and how long: it may be on its way back."""
PUSHED_S = 3.0
"""Seconds after a message with plotly.js in which a page that asks for it gets no second one."""


class Page:
    """The widget in the pages that show the notebook.

    Args:
        hear: Called with each message of a page.
    """

    def __init__(self, hear: Callable[[Mapping[str, Json]], None]) -> None:
        cell = front_end.cell()[0]
        self._reader = front_end.page()
        self._main = MainThread()
        # A page of VS Code lives as long as its kernel.
        self._can_open_again = bool(self._reader) and not cell.startswith("vscode")
        self._opened_s, self._left_s, self._pushed_s = time.monotonic(), float("-inf"), float("-inf")
        self._wait_s = AGAIN_S
        self.widget = _widget()(watch=uuid.uuid4().hex, cell=cell)
        self.widget.model = self.widget.model_id
        self.widget.on_msg(lambda _widget, content, _buffers: hear(content))

    def send(self, message: object, *buffers: bytes) -> None:
        """Send a message to all pages."""
        self.widget.send(to_json(message), buffers=list(buffers))

    def begin(self) -> None:
        """Send plotly.js, unless the page that executes the cell has it."""
        if not self._reader or self._reader not in _pages_with_plotly():
            _pages_with_plotly().add(self._reader)
            self.push()

    def push(self) -> None:
        """Send plotly.js, unless it has just been sent."""
        if time.monotonic() - self._pushed_s > PUSHED_S:
            self.send(PlotlyJs(), _plotly_js())
            self._pushed_s = time.monotonic()

    def is_due(self) -> bool:
        """Return whether the widget should be opened again, for pages that cannot ask a busy kernel for it."""
        now_s = time.monotonic()
        wait_s = AGAIN_SOON_S if now_s < self._left_s + EXPECTED_S else self._wait_s
        return self._can_open_again and self.is_busy() and now_s > self._opened_s + wait_s

    def is_busy(self) -> bool:
        """Return whether the kernel is busy with a cell, so that some pages cannot reach it."""
        return self._main.is_busy()

    def expect(self) -> None:
        """Open the widget again soon, because a page was closed, and is perhaps being loaded again."""
        self._left_s, self._wait_s = time.monotonic(), AGAIN_S

    def open_again(self) -> None:
        """Open the widget in pages that do not have it yet. The others go on with the curves that they have."""
        from ipywidgets import __protocol_version__

        for widget in (self.widget.layout, self.widget):
            state = {**widget.get_state(), **({"again": True} if widget is self.widget else {})}
            metadata = {"version": __protocol_version__}
            widget.comm.open(data={"state": state, "buffer_paths": []}, metadata=metadata)
        self.push()
        self._opened_s, self._wait_s = time.monotonic(), min(2 * self._wait_s, LONGEST_S)

    def close(self, bundle: Mapping[str, Json]) -> None:
        """Close the widget. Pages that were opened later show the bundle in its place."""
        self.send(Ended(bundle=bundle))
        self.widget.close()


@functools.cache
def _pages_with_plotly() -> set[str]:
    """Return the ids of the pages that were sent plotly.js. A page that is loaded again has another id."""
    return set()


@functools.cache
def _widget() -> Any:
    """Return the widget class. It is made on first use, because importing anywidget is slow."""
    import anywidget
    import traitlets

    class Curves(anywidget.AnyWidget):
        """Curves in a page. All widgets of a page share one plotly.js."""

        # A widget is one module, so each text replaces the line that imports it.
        _esm = _script("chart.js") + _body("feed.js") + _body("dashboard.js")
        watch = traitlets.Unicode().tag(sync=True)
        model = traitlets.Unicode().tag(sync=True)
        cell = traitlets.Unicode().tag(sync=True)
        again = traitlets.Bool(False).tag(sync=True)

    return Curves


def _script(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _body(name: str) -> str:
    """Return a script without the imports at its top."""
    return "".join(line for line in _script(name).splitlines(keepends=True) if not line.startswith("import "))


@functools.cache
def _plotly_js() -> bytes:
    """Return the plotly.js of the plotly package, gzipped from 4.8 to 1.6 MB."""
    import plotly

    return gzip.compress(Path(plotly.__file__).with_name("package_data").joinpath("plotly.min.js").read_bytes(), 3)


# -- newest films ----------------------------------------------------------------------------------------------------


def newest_films(runs: Sequence[RunFacts]) -> str:
    """Return the newest film of each run as HTML; an empty text if there is none."""
    figures = []
    for run in runs:
        films = run.films if run.manifest.film_every else {}
        if films:
            iteration = max(films)
            caption = f"{run.id}, iteration {iteration}"
            style = "display:inline-block;margin:4px;max-width:330px"
            figures.append(
                f"<figure style='{style}'>{films[iteration]._repr_html_().replace('<video ', '<video width=320 ')}"
                f"<figcaption>{html.escape(caption)}</figcaption></figure>"
            )
    return "".join(figures)


# -- memory ----------------------------------------------------------------------------------------------------------


def give_memory_back() -> None:
    """Return free memory to the system with malloc_trim(3). glibc keeps free memory between allocated blocks."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # another C library, without malloc_trim
        logger.debug("free memory stays with this process")
