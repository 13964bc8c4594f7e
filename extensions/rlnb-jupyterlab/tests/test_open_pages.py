"""Pages that the server has opened: only so many stay open."""

from __future__ import annotations

from asking import Page
from rlnb_jupyterlab import open_pages


def test_the_oldest_page_makes_room() -> None:
    pages = [Page(port) for port in range(open_pages.MOST_OPEN + 2)]
    opened = open_pages.OpenPages()
    for page in pages:
        opened.get(str(page.port), "a page", lambda page=page: page)
    assert [page.alive for page in pages] == [False] * 2 + [True] * open_pages.MOST_OPEN
    opened.close()
    assert not any(page.alive for page in pages)
