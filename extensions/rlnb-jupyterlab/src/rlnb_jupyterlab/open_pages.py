"""Other pages that this server has opened: processes on this machine's loopback, proxied under its base URL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol


class Page(Protocol):
    """The result of ``runs.tensorboard()`` and ``rlnb.view``."""

    port: int

    @property
    def alive(self) -> bool: ...

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A link to another page."""

    title: str
    url: str
    """Address, relative to the server's base."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageLink(Link):
    """A link to a page that can be closed by its name."""

    name: str


MOST_OPEN = 8
"""Maximum number of open pages. A further one closes the oldest: each is a process, some with a simulator."""
AT_ONCE = 4


class OpenPages:
    """The open pages; safe to use from any thread."""

    def __init__(self) -> None:
        self.openers = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="rlnb-open")
        """Threads that wait for pages to start, so that the server's other threads stay free."""
        self._opening: dict[str, threading.Lock] = {}
        self._pages: dict[str, tuple[str, Page]] = {}

    def get(self, name: str, title: str, opened: Callable[[], Page]) -> str:
        """Return the address of a page, relative to the server's base; open the page if it is not open.

        Args:
            name: Name by which the page is found again and closed.
            title: Text of a link to the page.
            opened: Opens the page.
        """
        with self._opening.setdefault(name, threading.Lock()):  # a second click must not open a second page
            _, page = self._pages.get(name, ("", None))
            if page is None or not page.alive:
                self._pages.pop(name, None)
                page = opened()
                self._pages[name] = title, page
                for oldest in list(self._pages)[:-MOST_OPEN]:
                    self.end(oldest)
            return _url(page)

    def links(self) -> list[PageLink]:
        """Return a link to each page that still answers."""
        return [
            PageLink(name=name, title=title, url=_url(page))
            for name, (title, page) in list(self._pages.items())
            if page.alive
        ]

    def end(self, name: str) -> bool:
        """Close a page; return whether it was open."""
        _, page = self._pages.pop(name, ("", None))
        if page is not None:
            page.close()
        return page is not None

    def close(self) -> None:
        """Close all pages."""
        self.openers.shutdown(wait=False, cancel_futures=True)
        for _, page in list(self._pages.values()):
            page.close()


def _url(page: Page) -> str:
    return f"proxy/{page.port}/"
