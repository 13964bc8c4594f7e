"""The connected pages, with the runs and logs that each of them shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rlnb_jupyterlab.messages import Message, encoded


@dataclass(eq=False)
class Page:
    """One connected page."""

    send: Callable[[str], None]
    """Sends a message to the page; called on the server's thread only."""
    has_list: bool = False
    """Whether the whole list was sent to the page."""
    watched: dict[str, dict[str, int]] = field(default_factory=dict)
    """Runs whose curves the page shows, each with the number of points of each metric that were sent."""
    metrics: tuple[str, ...] = ()
    """Metrics that the page shows besides those that rlnb names."""
    followed: dict[tuple[str, int, str], int] = field(default_factory=dict)
    """Run, job and name of the logs that the page follows, each with the byte up to which it was sent; a negative byte
    counts from the end."""


class Pages:
    """The connected pages. Only the server's thread changes them; the watcher's thread reads a copy."""

    def __init__(self) -> None:
        self._pages: tuple[Page, ...] = ()

    @property
    def connected(self) -> tuple[Page, ...]:
        """All pages that are connected now."""
        return self._pages

    def join(self, page: Page) -> None:
        """Add a page that has connected."""
        self._pages = (*self._pages, page)

    def leave(self, page: Page) -> None:
        """Remove a page that has disconnected."""
        self._pages = tuple(other for other in self._pages if other is not page)

    def tell(self, message: Message) -> None:
        """Send a message to every page; called on the server's thread only."""
        text = encoded(message)
        for page in self._pages:
            page.send(text)
