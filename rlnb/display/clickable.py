"""A picture that tells where it is clicked."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ipywidgets


def clickable(click: Callable[[float, float], None]) -> ipywidgets.DOMWidget:
    """Return a widget that shows the PNG in its ``value``.

    Args:
        click: Called with the place of a click: the distances from the left and from the upper edge, as shares of the
            width and of the height.
    """
    widget = _widget()()
    widget.on_msg(lambda _widget, message, _buffers: click(float(message["x"]), float(message["y"])))
    return widget


@functools.cache
def _widget() -> Any:
    """Return the widget class. It is made on first use, because importing anywidget is slow."""
    import anywidget
    import traitlets

    class Clickable(anywidget.AnyWidget):
        """A picture."""

        _esm = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
        value = traitlets.Bytes().tag(sync=True)

    return Clickable
