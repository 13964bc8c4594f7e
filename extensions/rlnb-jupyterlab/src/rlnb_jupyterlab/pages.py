"""The connected pages, with the runs and logs that each of them shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rlnb_jupyterlab.messages import Message, encoded


@dataclass(eq=False)
class Page:
    """One connected page."""

    send: Callable[[str], None]
    """Hands a message to it; to be called on the server's own thread."""
    has_list: bool = False
    """Whether it has the list as a whole."""
    watched: dict[str, dict[str, int]] = field(default_factory=dict)
    """Runs whose curves it shows, with the number of points of each metric that it has."""
    followed: dict[tuple[str, int, str], int] = field(default_factory=dict)
    """Run, job and name of the logs that it follows, with the byte up to which it has each; a negative byte counts from
    the end."""


class Pages:
    """The connected pages. Changed on the server's thread; the watcher's thread reads a copy."""

    def __init__(self) -> None:
        self._pages: tuple[Page, ...] = ()

    @property
    def connected(self) -> tuple[Page, ...]:
        """All of them at this moment."""
        return self._pages

    def join(self, page: Page) -> None:
        """Take a page in."""
        self._pages = (*self._pages, page)

    def leave(self, page: Page) -> None:
        """Let a page go."""
        self._pages = tuple(other for other in self._pages if other is not page)

    def tell(self, message: Message) -> None:
        """Send a message to every page; on the server's thread."""
        text = encoded(message)
        for page in self._pages:
            page.send(text)
