"""Pages that the server has opened: their links, their end, and their largest number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from asking import Page, asked, echo, refused
from rlnb_jupyterlab import open_pages
from rlnb_jupyterlab.watcher import key_of


def test_the_oldest_page_makes_room() -> None:
    pages = [Page(port) for port in range(open_pages.MOST_OPEN + 2)]
    opened = open_pages.OpenPages()
    for page in pages:
        opened.get(str(page.port), "a page", lambda page=page: page)
    assert [page.alive for page in pages] == [False] * 2 + [True] * open_pages.MOST_OPEN
    opened.close()
    assert not any(page.alive for page in pages)


async def test_pages_that_were_opened_are_linked_until_they_end(jp_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    run = echo().wait(60)
    body = json.dumps({"keys": [key_of(run)]})
    opened = await asked(jp_fetch, "tensorboard", method="POST", body=body, request_timeout=60)
    assert await asked(jp_fetch, "tensorboard", method="POST", body=body) == opened, "no second TensorBoard is started"
    links = (await asked(jp_fetch, "cluster"))["links"]
    assert links == [{"name": key_of(run), "title": f"TensorBoard of {run.id}", "url": opened["url"]}]
    jp_serverapp.web_app.settings["rlnb_open_pages"].close()
    assert (await asked(jp_fetch, "cluster"))["links"] == []


async def test_a_page_that_was_opened_is_closed(jp_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    pages = jp_serverapp.web_app.settings["rlnb_open_pages"]
    page = Page(4711)
    pages.get("scene a", "a in 3D", lambda: page)
    (link,) = (await asked(jp_fetch, "cluster"))["links"]
    body = json.dumps({"name": link["name"]})
    await asked(jp_fetch, "close", method="POST", body=body)
    assert not page.alive
    assert (await asked(jp_fetch, "cluster"))["links"] == []
    assert (await refused(jp_fetch, "close", method="POST", body=body))[0] == 404
