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
from typing import TYPE_CHECKING, Any

from rlnb.errors import RlnbError
from rlnb.notebook import curves, display
from rlnb.records.find import find
from rlnb.spec import State

if TYPE_CHECKING:
    from rlnb.run import Run

logger = logging.getLogger(__name__)

GOING: tuple[State, ...] = ("created", "queued", "starting", "running")
POLL_S = 1.0
SURE_S = 4.0
"""How long the Cancel button waits for its second click."""
_LARGEST_SHARE = 0.1
"""Share of one core that drawing may take; long curves of many runs are drawn less often."""

_BYTES_PER_S = 100_000
"""What curves may take of the connection, as many people's kernels are far away."""

_ESM = """
const load = (model) => globalThis.__rlnb_plotly ??= new Promise((resolve) => {
  model.on("msg:custom", async (message, [buffer]) => {
    if (message !== "plotly.js") return;
    const unpacked = new Blob([buffer]).stream().pipeThrough(new DecompressionStream("gzip"));
    const code = await new Response(unpacked).text();
    const module = {exports: {}};
    // Its own module, exports and define: a page's require.js must not get hold of it.
    new Function("module", "exports", "define", code)(module, module.exports, undefined);
    resolve(module.exports);
  });
  model.send("plotly.js");
});
export default {
  async render({model, el}) {
    const place = document.createElement("div");
    place.textContent = "The curves appear as soon as the kernel is free.";
    el.appendChild(place);
    const plotly = await load(model);
    place.textContent = "";
    const draw = () => {
      const {data, layout, config} = JSON.parse(model.get("figure"));
      return plotly.react(place, data, layout, config);
    };
    model.on("change:figure", draw);
    await draw();
    return () => { model.off("change:figure", draw); plotly.purge(place); };
  },
};
"""

_dashboards: list[Dashboard] = []
"""Those that still update."""


def watch(
    runs: Run | Sequence[Run], metrics: Sequence[str] | None = None, *, x: str = "frames", interval_s: float = 1.0
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
    shown = curves.figure(chosen, metrics, x)  # names are checked before anything is shown
    if display.is_live():
        if importlib.util.find_spec("anywidget") is None:
            raise RlnbError("Live curves need anywidget: pip install 'rlnb[lab]'")
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
        self.cell, self.execution = display.cell()

    def start(self, shown: Any) -> None:
        """Show everything and begin to follow."""
        from IPython.display import HTML, display

        self._lines = display(HTML(self._state()), display_id=True)
        self._button = display(self._cancel_button(), display_id=True)
        self._curves = _widget()(figure=_plotly_json(shown))
        self._place = display(self._curves, display_id=True)
        self._thread.start()

    def stop(self) -> None:
        """End the updates; the runs go on."""
        self._ended.set()

    def is_alive(self) -> bool:
        """Return whether it still updates."""
        return self._thread.is_alive()

    def _follow(self) -> None:
        try:
            while not self._ended.is_set():
                begun = time.monotonic()
                # Asked first, so that the last drawing has what a run logged before its end.
                going = any(run.state in GOING for run in self._runs)
                shown = curves.figure(self._runs, self._metrics, self._x)
                self._lines.update({"text/html": self._state()}, raw=True)
                if not going:
                    self._end(shown)
                    return
                self._curves.figure = _plotly_json(shown)  # sent if it differs
                spent_s, sent_s = time.monotonic() - begun, len(self._curves.figure) / _BYTES_PER_S
                self._ended.wait(max(self._interval_s, spent_s / _LARGEST_SHARE, sent_s))
        except Exception as exc:  # the one place that can tell the person
            logger.exception("watching stopped")
            text = f"<i>The curves stopped: {html.escape(str(exc))}. The runs go on; run the cell again.</i>"
            self._lines.update({"text/html": text}, raw=True)

    def _end(self, shown: Any) -> None:
        """Replace the widgets by output that needs no kernel."""
        self._place.update(curves.mimebundle(shown, picture=True), raw=True)
        self._button.update({"text/html": ""}, raw=True)
        self._curves.close()

    def _state(self) -> str:
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


def _plotly_json(shown: Any) -> str:
    bundle = curves.mimebundle(shown, picture=False)
    return json.dumps(bundle["application/vnd.plotly.v1+json"], separators=(",", ":"))


@functools.cache
def _widget() -> Any:
    """Return the widget class; made on first use, since anywidget takes a while to import."""
    import anywidget
    import traitlets

    class Curves(anywidget.AnyWidget):
        """A Plotly figure as JSON; a page asks once for plotly.js, and all widgets on it share that."""

        _esm = _ESM
        figure = traitlets.Unicode("{}").tag(sync=True)

        def __init__(self, **traits: Any) -> None:
            super().__init__(**traits)
            self.on_msg(lambda _widget, message, _buffers: self.send(message, buffers=[_plotly_js()]))

    return Curves


@functools.cache
def _plotly_js() -> bytes:
    """Return the plotly.js of the plotly package, compressed: 1.5 instead of 4.8 MB."""
    import plotly

    return gzip.compress(Path(plotly.__file__).with_name("package_data").joinpath("plotly.min.js").read_bytes(), 6)
