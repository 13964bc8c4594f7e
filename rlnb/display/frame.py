"""The frame around what a process serves on loopback (a 3D view, TensorBoard): the page finds the way to it, since only
the page knows the Jupyter server's base URL."""

from __future__ import annotations

import functools
import html
from typing import Any

from rlnb.display import front_end

_ESM = """
export default {
  async render({model, el}) {
    const port = model.get("port");
    const config = document.getElementById("jupyter-config-data");
    const base = config ? JSON.parse(config.textContent).baseUrl : null;
    // Without a Jupyter page around it (VS Code, say) the kernel's machine is taken to be this one.
    const url = base ? new URL(`${base}proxy/${port}/`, location.origin).href : `http://127.0.0.1:${port}/`;
    const link = Object.assign(document.createElement("a"), {href: url, target: "_blank", rel: "noopener"});
    link.textContent = `${model.get("title")}, in a tab of its own`;
    const place = document.createElement("div");
    el.append(place, link);
    if (base) {
      const answer = await fetch(url).catch(() => null);
      if (!answer || !answer.ok) {
        place.textContent = answer && answer.status === 404
          ? "The Jupyter server does not hand this through: install jupyter-server-proxy beside it."
          : "This has ended. Run the cell again.";
        link.remove();
        return;
      }
    }
    const frame = Object.assign(document.createElement("iframe"), {src: url});
    frame.style.cssText = `width:100%;height:${model.get("height")}px;border:0`;
    place.append(frame);
  },
};
"""


def frame(words: str, port: int, title: str, *, alive: bool, height_px: int) -> Any:
    """Return what a cell shows of it: a widget for a person; a line of text in a report, and once it has ended.

    Args:
        words: What it is, in one line.
        port: On the loopback of the kernel's machine.
        title: What the link says.
        alive: Whether it still answers.
        height_px: Height of the frame.
    """
    text = html.escape(words)
    if not (alive and front_end.is_live()):
        return {"text/plain": words, "text/html": text}
    bundle = _widget()(port=port, title=title, height=height_px)._repr_mimebundle_()
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    return {**data, "text/plain": words, "text/html": f"{text}: closed with its kernel."}, metadata


@functools.cache
def _widget() -> type:
    import anywidget
    import traitlets

    class Frame(anywidget.AnyWidget):
        """Shows a port of the kernel's machine in the page."""

        _esm = _ESM
        port = traitlets.Int().tag(sync=True)
        title = traitlets.Unicode().tag(sync=True)
        height = traitlets.Int().tag(sync=True)

    return Frame
