"""Live pictures in a cell's output: streamed while a page shows them, and replaced by a still image at the end.

At most two sent frames may be unpainted, so that a slow connection gets fewer frames but no old ones. A receipt from
the page may get lost, so a frame without a receipt stops counting after a timeout. A kernel that is busy with a cell
may hear no receipt at all (one without subshells, or of a page that was opened meanwhile), and streams slowly then.
"""

from __future__ import annotations

import functools
import html
import io
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.display import front_end
from rlnb.display.front_end import MainThread
from rlnb.display.live_objects import live_objects
from rlnb.display.pictures import flowing
from rlnb.errors import RlnbError

if TYPE_CHECKING:
    import ipywidgets
    from PIL.Image import Image

logger = logging.getLogger(__name__)

UNDER_WAY = 2
"""Most frames sent to the page that it has not painted yet."""
PATIENCE_S = 2.0
"""Seconds after which a missing receipt counts as lost."""
GONE_S = 10.0
"""Seconds without a receipt after which the view counts as not shown in any page."""
POLL_S = 0.02
AWAY_S = 0.5
"""Seconds between two checks for a page while none shows the view."""
JPEG_QUALITY = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A frame for a page."""

    pictures: Sequence[Image]
    """Pictures, shown side by side."""
    lossless: Sequence[bool]
    """Whether each picture must not be a JPEG, because its colours stand for labels."""
    caption: str
    """Line of text below the pictures."""
    place: str = ""
    """Place of the camera, to be copied; empty for a camera that cannot be turned."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gesture:
    """A movement of the mouse or of fingers on a picture, which turns the camera."""

    right: float = 0.0
    """Angle by which the scene turns to the right, radians."""
    down: float = 0.0
    """Angle by which the scene turns down, radians."""
    zoom: float = 1.0
    """Factor of the camera's distance."""
    reset: bool = False
    """Whether the camera goes back to its first place."""


Source = Callable[[], Shown | None]
"""Returns the next frame; None if there is no new one."""


class LiveView:
    """A stream of pictures in the output of the running cell, until it is stopped.

    Args:
        source: Returns the frames. A thread calls it many times a second while a page shows the view.
        looking: Called about once a second while a page shows the view.
        over: Returns whether the source has ended.
        turn: Called with each movement that turns the camera.
    """

    def __init__(
        self,
        source: Source,
        *,
        looking: Callable[[], None] = lambda: None,
        over: Callable[[], bool] = lambda: False,
        turn: Callable[[Gesture], None] = lambda gesture: None,
    ) -> None:
        self._source, self._looking, self._over, self._turn = source, looking, over, turn
        self._stopped = threading.Event()
        self._answered = threading.Condition()
        self._under_way: dict[int, float] = {}
        self._last_answer_s = time.monotonic()
        self._hears = False
        """Whether a receipt has come while the kernel was busy: then it comes from each page that shows the view."""
        self._last: Shown | None = None
        self.painted = 0
        """Number of frames that a page has painted."""
        self._thread = threading.Thread(target=self._stream, name="rlnb-live-view", daemon=True)

    def start(self) -> LiveView:
        """Show the view and start streaming."""
        live_objects.add(self, close=self.stop, alive=self.is_alive)
        self._widget = _widget()()
        self._widget.on_msg(self._heard)
        self._place = front_end.show_place(self._widget)
        self._main = MainThread()
        self._last_answer_s = time.monotonic()  # importing anywidget may have taken GONE_S
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop streaming. The last picture stays in the output."""
        self._stopped.set()

    def is_alive(self) -> bool:
        """Return whether the view is still streaming."""
        return self._thread.is_alive()

    def _heard(self, _widget: Any, message: Any, _buffers: Any) -> None:
        if "zoom" in message:
            right, down, zoom = (float(message[name]) for name in ("right", "down", "zoom"))
            self._turn(Gesture(right=right, down=down, zoom=zoom))
            return
        if "reset" in message:
            self._turn(Gesture(reset=True))
            return
        with self._answered:
            number = message.get("painted", -1)
            if self._under_way.pop(number, None) is not None:
                self.painted += 1
            self._last_answer_s = time.monotonic()
            self._hears = self._hears or self._main.is_busy()
            self._answered.notify()

    def _stream(self) -> None:
        number, check_s = 0, float("-inf")
        try:
            while not self._stopped.is_set():
                now = time.monotonic()
                is_busy = self._main.is_busy()
                has_viewer = now - self._last_answer_s < GONE_S or (is_busy and not self._hears)
                if now - check_s > 1.0:
                    check_s = now
                    if has_viewer:
                        self._looking()
                    if self._over():
                        break
                if not has_viewer:
                    self._stopped.wait(AWAY_S)
                    continue
                if not self._may_send():
                    continue
                frame = self._source()
                if frame is None:
                    self._stopped.wait(POLL_S)
                    continue
                self._last = frame
                self._send(number, frame)
                number += 1
        except Exception as exc:  # nothing above this thread can report the error to the user
            logger.exception("the live view stopped")
            self._place.update({"text/html": f"<i>The live view stopped: {html.escape(str(exc))}</i>"}, raw=True)
            return
        self._end()

    def _may_send(self) -> bool:
        """Wait briefly for room for another unpainted frame; return whether there is room."""
        with self._answered:
            if len(self._under_way) >= UNDER_WAY:
                self._answered.wait(0.1)
            now = time.monotonic()
            for number, sent_s in list(self._under_way.items()):
                if now - sent_s > PATIENCE_S:
                    del self._under_way[number]
            return len(self._under_way) < UNDER_WAY

    def _send(self, number: int, frame: Shown) -> None:
        images = [_encoded(*pair) for pair in zip(frame.pictures, frame.lossless, strict=True)]
        with self._answered:
            self._under_way[number] = time.monotonic()
        self._widget.send(
            {
                "number": number,
                "caption": frame.caption,
                "place": frame.place,
                "types": [kind for kind, _ in images],
            },
            buffers=[data for _, data in images],
        )

    def _end(self) -> None:
        """Replace the widget with the last picture, which stays in the notebook."""
        if self._last is None:
            self._place.update({"text/html": "<i>No picture arrived.</i>"}, raw=True)
        else:
            self._place.update(self._last_picture(), raw=False)
        self._widget.close()

    def _last_picture(self) -> Image:
        assert self._last is not None
        return flowing(self._last.pictures)

    def __repr__(self) -> str:
        return f"LiveView({'on' if self.is_alive() else 'ended'}, {self.painted} frames painted)"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        # A cell shows this once, below pictures that go on, so it must not be about the present moment.
        return {"text/plain": "Live pictures. The method stop() ends them."}


def still(source: Source, *, looking: Callable[[], None], over: Callable[[], bool], timeout_s: float) -> Image:
    """Return the first picture of a source, for reports, which cannot show a stream.

    Raises:
        RlnbError: No picture arrived in time, or the source ended without one.
    """
    deadline, check_s = time.monotonic() + timeout_s, float("-inf")
    while time.monotonic() < deadline:
        if time.monotonic() - check_s > 1.0:
            looking()
            check_s = time.monotonic()
        frame = source()
        if frame is not None and frame.pictures:
            return flowing(frame.pictures)
        if over():
            raise RlnbError("The run ended before it took a picture. Use rlnb.preview(run) to see its policy.")
        time.sleep(0.1)
    raise RlnbError(f"No picture arrived within {timeout_s:g} s.")


def _encoded(picture: Image, lossless: bool) -> tuple[str, bytes]:
    buffer = io.BytesIO()
    if lossless:
        picture.save(buffer, format="PNG", compress_level=1)
        return "image/png", buffer.getvalue()
    picture.save(buffer, format="JPEG", quality=JPEG_QUALITY)
    return "image/jpeg", buffer.getvalue()


@functools.cache
def _widget() -> Any:
    """Return the widget class. It is made on first use, because importing anywidget is slow."""
    import anywidget

    class Pictures(anywidget.AnyWidget):
        """Canvases that paint the pictures they receive."""

        _esm = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")

    return Pictures


# -- pictures to click -----------------------------------------------------------------------------------------------


def clickable(click: Callable[[float, float], None]) -> ipywidgets.DOMWidget:
    """Return a widget that shows the PNG in its ``value``.

    Args:
        click: Called with the place of a click: the distances from the left and from the upper edge, as shares of the
            width and of the height.
    """
    widget = _clickable_widget()()
    widget.on_msg(lambda _widget, message, _buffers: click(float(message["x"]), float(message["y"])))
    return widget


@functools.cache
def _clickable_widget() -> Any:
    """Return the widget class. It is made on first use, because importing anywidget is slow."""
    import anywidget
    import traitlets

    class Clickable(anywidget.AnyWidget):
        """A picture."""

        _esm = Path(__file__).with_name("clickable.js").read_text(encoding="utf-8")
        value = traitlets.Bytes().tag(sync=True)

    return Clickable
