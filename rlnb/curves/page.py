"""The widget of live curves, in pages that a busy kernel cannot answer.

JupyterLab sends a page's messages to a thread of the kernel (a subshell) only some time after the page was opened, and
never if the page was opened while the kernel was busy. Before that, they wait until the running cell ends. Therefore a
page gets plotly.js unasked, and while the kernel is busy, the widget is opened again from time to time: a page that was
reloaded, or a second browser, knows it from then on.
"""

from __future__ import annotations

import functools
import gzip
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.curves.messages import Ended, PlotlyJs
from rlnb.display import front_end
from rlnb.display.front_end import MainThread
from rlnb.storage.serial import to_json

if TYPE_CHECKING:
    from rlnb.spec import Json

AGAIN_S, LONGEST_S = 30.0, 300.0
"""Seconds to the first opening, and most seconds between two. Each one sends plotly.js, 1.6 MB."""
SOON_S, EXPECTED_S = 4.0, 20.0
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
        wait_s = SOON_S if now_s < self._left_s + EXPECTED_S else self._wait_s
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
