"""A place in the output of the running cell whose value is replaced later, in Jupyter's front ends and in marimo."""

from __future__ import annotations

from typing import Protocol, cast

from rlnb.display import marimo_page


class Place(Protocol):
    """A place in a cell's output."""

    def update(self, value: object, *, raw: bool = False) -> None:
        """Replace the value. Any thread may do so, also after the cell has ended.

        Args:
            value: A picture, an object with ``_repr_html_``, or a Jupyter mime bundle.
            raw: Whether the value is a mime bundle.
        """


def show(value: object, *, raw: bool = False) -> Place:
    """Show a value in the output of the running cell and return its place.

    Args:
        value: A widget, a picture, an object with ``_repr_html_``, or a Jupyter mime bundle. The bundle needs a
            ``text/plain`` that a person can read, because some consoles show nothing else of HTML.
        raw: Whether the value is a mime bundle.
    """
    if marimo_page.in_marimo():
        return marimo_page.MarimoPlace(value, raw=raw)
    from IPython.display import display

    return cast(Place, display(value, raw=raw, display_id=True))
