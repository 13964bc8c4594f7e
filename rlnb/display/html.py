"""The HTML of an object that a notebook can show, for pages that take nothing else."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping


def html_of(value: object, *, raw: bool = False) -> str:
    """Return an object as HTML: its own HTML, or its picture, or else its text, escaped.

    Args:
        value: An object with ``_repr_html_`` or ``_repr_png_``; or a Jupyter mime bundle, whose picture is base64.
        raw: Whether the value is a mime bundle.
    """
    bundle = _bundle_of(value) if not raw or not isinstance(value, Mapping) else value
    if (page := bundle.get("text/html")) is not None:
        return str(page)
    text = html.escape(str(bundle.get("text/plain", "")))
    if picture := bundle.get("image/png"):
        return f"<img alt='{text}' src='data:image/png;base64,{picture}'>"
    return text


def _bundle_of(value: object) -> Mapping[str, str]:
    if to_html := getattr(value, "_repr_html_", None):
        return {"text/html": to_html()}
    if to_png := getattr(value, "_repr_png_", None):
        return {"image/png": base64.b64encode(to_png()).decode(), "text/plain": type(value).__name__}
    return {"text/plain": str(value)}
