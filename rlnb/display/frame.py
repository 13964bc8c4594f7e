"""The frame around a server on the loopback interface (a 3D view, TensorBoard). The page finds the server's URL,
because only the page knows the base URL of the Jupyter server."""

from __future__ import annotations

import functools
import html
from pathlib import Path
from typing import Any

from rlnb.display import front_end


def frame(description: str, port: int, title: str, *, alive: bool, height_px: int) -> Any:
    """Return the mime bundle of a server: a widget in a notebook; a line of text in a report or after its end.

    Args:
        description: Description of the server in one line.
        port: Port of the server on the loopback interface of the kernel's machine.
        title: Text of the link.
        alive: Whether the server still runs.
        height_px: Height of the frame, in pixels.
    """
    text = html.escape(description)
    if not (alive and front_end.is_live()):
        return {"text/plain": description, "text/html": text}
    bundle = _widget()(port=port, title=title, height=height_px)._repr_mimebundle_()
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    return {**data, "text/plain": description, "text/html": f"{text}: ended with its kernel."}, metadata


@functools.cache
def _widget() -> type:
    import anywidget
    import traitlets

    class Frame(anywidget.AnyWidget):
        """A frame that shows a port of the kernel's machine."""

        _esm = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
        port = traitlets.Int().tag(sync=True)
        title = traitlets.Unicode().tag(sync=True)
        height = traitlets.Int().tag(sync=True)

    return Frame
