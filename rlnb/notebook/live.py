"""Live curves: a dashboard for a person, one static figure for papermill and nbconvert.

The dashboard is ordinary cell output (plotly's mime type), replaced under its display id by a background
thread. JupyterLab, Notebook and VS Code draw it with renderers that they have installed, so nothing comes
from the network, no plotting library is sent through the kernel, and a saved notebook keeps the last curves.
"""

from __future__ import annotations

import html
import json
import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlnb.errors import RlnbError
from rlnb.notebook import curves, display
from rlnb.records.record import find
from rlnb.spec import State

if TYPE_CHECKING:
    from rlnb.run import Run

logger = logging.getLogger(__name__)

GOING: tuple[State, ...] = ("created", "queued", "starting", "running")
POLL_S = 0.2
SURE_S = 4.0
"""How long the Cancel button waits for its second click."""
_LARGEST_SHARE = 0.1
"""Share of one core that drawing may take; long curves of many runs are drawn less often."""

_dashboards: list[Dashboard] = []
"""Those that still update."""


def watch(
    runs: Run | Sequence[Run], metrics: Sequence[str] | None = None, *, x: str = "frames", interval_s: float = 1.0
) -> None:
    """Show the curves of runs until they end.

    For a person it returns at once, and the curves go on while the kernel is free or busy. Under papermill,
    nbconvert and plain Python it waits for the runs and then shows the curves once. An interrupt ends the
    watching, never a run. After a reload of the browser page, run the cell again.

    Args:
        runs: A run, or several; one colour each.
        metrics: Metric names or raw tags; None is the usual ones that were logged.
        x: ``"frames"``, ``"iterations"`` or ``"wall_time"``.
        interval_s: Seconds between two updates, at least.

    Raises:
        NotFoundError: No such metric or axis.
        RlnbError: There is no run to watch.
    """
    chosen = [runs] if hasattr(runs, "manifest") else list(runs)
    if not chosen:
        raise RlnbError("There is no run to watch. Start one with rlnb.train(...), or look with rlnb.runs().")
    shown = curves.figure(chosen, metrics, x)  # names are checked before anything is shown
    if display.is_live():
        _stop_replaced()
        _dashboards.append(Dashboard(chosen, metrics, x=x, interval_s=interval_s))
        _dashboards[-1].start(shown)
    else:
        _wait(chosen)
        display.show_bundle(curves.mimebundle(curves.figure(chosen, metrics, x), picture=True))


def _wait(runs: Sequence[Run]) -> None:
    """Wait for each run to end; an interrupt ends the waiting only."""
    try:
        for run in runs:
            with display.progress(run) as show:
                while run.state in GOING:
                    show()
                    time.sleep(POLL_S)
                show()
    except KeyboardInterrupt:
        logger.warning("No longer watching %s; what runs goes on.", ", ".join(run.id for run in runs))


def _stop_replaced() -> None:
    """End the dashboards of an earlier execution of this cell: nobody sees them any more."""
    cell, execution = display.cell()
    for dashboard in list(_dashboards):
        if cell and dashboard.cell == cell and dashboard.execution != execution:
            dashboard.stop()
        if not dashboard.is_alive():
            _dashboards.remove(dashboard)


class Dashboard:
    """State lines, a Cancel button and curves in a cell's output, updated by a thread until all runs end."""

    def __init__(self, runs: Sequence[Run], metrics: Sequence[str] | None, *, x: str, interval_s: float) -> None:
        # Own readers: those of the caller's runs are not made for two threads.
        self._runs = [type(run).of(next(find(run.path))) for run in runs]
        self._metrics, self._x, self._interval_s = metrics, x, interval_s
        self._names = curves.labels(self._runs)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="rlnb-watch", daemon=True)
        self._sent: dict[str, str] = {}
        self.cell, self.execution = display.cell()

    def start(self, shown: Any) -> None:
        """Show everything and begin to follow."""
        from IPython.display import HTML, display

        self._lines = display(HTML(self._state()), display_id=True)
        self._button = display(self._cancel_button(), display_id=True)
        self._figure = display(curves.mimebundle(shown, picture=False), raw=True, display_id=True)
        self._thread.start()

    def stop(self) -> None:
        """End the updates; the runs go on."""
        self._ended.set()

    def is_alive(self) -> bool:
        """Return whether it still updates."""
        return self._thread.is_alive()

    def _follow(self) -> None:
        try:
            going = True
            while going and not self._ended.is_set():
                begun = time.monotonic()
                # Asked first, so that the last drawing has what a run logged before its end.
                going = any(run.state in GOING for run in self._runs)
                self._draw(last=not going)
                spent_s = time.monotonic() - begun
                if going:
                    self._ended.wait(max(self._interval_s, spent_s * (1 / _LARGEST_SHARE - 1)))
            if not going:
                self._send("button", self._button, {"text/html": ""})
        except Exception as exc:  # the one place that can tell the person
            logger.exception("watching stopped")
            text = f"<i>The curves stopped: {html.escape(str(exc))}. The runs go on; run the cell again.</i>"
            self._lines.update({"text/html": text}, raw=True)

    def _draw(self, *, last: bool) -> None:
        shown = curves.figure(self._runs, self._metrics, self._x)
        self._send("lines", self._lines, {"text/html": self._state()})
        # A picture with the last one only, for readers of the saved notebook.
        self._send("figure", self._figure, curves.mimebundle(shown, picture=last))

    def _send(self, name: str, place: Any, bundle: dict[str, Any]) -> None:
        """Replace an output, unless it would not change."""
        text = json.dumps(bundle)
        if self._sent.get(name) != text:
            self._sent[name] = text
            place.update(bundle, raw=True)

    def _state(self) -> str:
        # A single run has no label that sets it apart, and is called by its id.
        return "".join(
            display.bar(run, name=name, colour=curves.colour(number))
            for number, (run, name) in enumerate(zip(self._runs, self._names, strict=True))
        )

    def _cancel_button(self) -> Any:
        from ipywidgets import Button, Layout

        text = "Cancel" if len(self._runs) == 1 else f"Cancel {len(self._runs)} runs"
        button = Button(description=text, tooltip="Ends the training; checkpoints stay", layout=Layout(width="auto"))
        first_click_s = -SURE_S

        def click(_: Any) -> None:
            nonlocal first_click_s
            if time.monotonic() - first_click_s > SURE_S:
                first_click_s = time.monotonic()
                button.description, button.button_style = f"{text}: click again", "danger"
                return
            button.disabled, button.description = True, "Cancelling ..."
            for run in self._runs:
                with suppress(RlnbError):  # the others are to be cancelled all the same
                    run.cancel()

        button.on_click(click)
        return button
