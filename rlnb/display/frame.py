"""The frame around what a process serves on loopback (a 3D view, TensorBoard): the page finds the way to it, since only
the page knows the Jupyter server's base URL."""

from __future__ import annotations

import functools
import html
from pathlib import Path
from typing import Any

from rlnb.display import front_end


def frame(description: str, port: int, title: str, *, alive: bool, height_px: int) -> Any:
    """Return what a cell shows of it: a widget for a person; a line of text in a report, and once it has ended.

    Args:
        description: The object, in one line.
        port: On the loopback of the kernel's machine.
        title: Text of the link.
        alive: Whether it still answers.
        height_px: Height of the frame.
    """
    text = html.escape(description)
    if not (alive and front_end.is_live()):
        return {"text/plain": description, "text/html": text}
    bundle = _widget()(port=port, title=title, height=height_px)._repr_mimebundle_()
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    return {**data, "text/plain": description, "text/html": f"{text}: closed with its kernel."}, metadata


@functools.cache
def _widget() -> type:
    import anywidget
    import traitlets

    class Frame(anywidget.AnyWidget):
        """Shows a port of the kernel's machine in the page."""

        _esm = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
        port = traitlets.Int().tag(sync=True)
        title = traitlets.Unicode().tag(sync=True)
        height = traitlets.Int().tag(sync=True)

    return Frame
