"""Other pages that this server has opened: processes on this machine's loopback, handed through under its base URL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol


class Page(Protocol):
    """What ``rlnb.tensorboard`` and ``rlnb.view`` return."""

    port: int

    @property
    def alive(self) -> bool: ...

    def close(self) -> None: ...


MOST_OPEN = 8
"""The oldest is closed for a further one: each is a process, some with a simulator."""
AT_ONCE = 4


class OpenPages:
    """The pages that are open; asked for from any thread."""

    def __init__(self) -> None:
        self.openers = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="rlnb-open")
        """Threads that may wait for a page to start; others are not kept from their work by that."""
        self._opening: dict[str, threading.Lock] = {}
        self._pages: dict[str, tuple[str, Page]] = {}

    def get(self, name: str, title: str, opened: Callable[[], Page]) -> str:
        """Return the address of a page, relative to the server's base; open it where it is not.

        Args:
            name: What it is known by here.
            title: What a link to it says.
            opened: Opens it.
        """
        with self._opening.setdefault(name, threading.Lock()):  # a second click does not open a second one
            _, page = self._pages.get(name, ("", None))
            if page is None or not page.alive:
                self._pages.pop(name, None)
                page = opened()
                self._pages[name] = title, page
                for oldest in list(self._pages)[:-MOST_OPEN]:
                    self.end(oldest)
            return _url(page)

    def links(self) -> list[dict[str, str]]:
        """Return name, title and address of each that still answers."""
        return [
            {"name": name, "title": title, "url": _url(page)}
            for name, (title, page) in list(self._pages.items())
            if page.alive
        ]

    def end(self, name: str) -> bool:
        """End one; return whether there was one."""
        _, page = self._pages.pop(name, ("", None))
        if page is not None:
            page.close()
        return page is not None

    def close(self) -> None:
        """End them all."""
        self.openers.shutdown(wait=False, cancel_futures=True)
        for _, page in list(self._pages.values()):
            page.close()


def _url(page: Page) -> str:
    return f"proxy/{page.port}/"
