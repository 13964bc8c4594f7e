"""The server extension: its roots, and its shutdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from asking import Page

import rlnb


def test_the_roots_are_those_of_the_settings(jp_serverapp: Any, root: Path) -> None:
    assert jp_serverapp.web_app.settings["rlnb_watcher"].roots == [root.resolve()]
    assert not rlnb.options.warm, "the server keeps no warm simulator"


async def test_the_end_of_the_server_closes_the_pages_that_it_has_opened(jp_serverapp: Any, root: Path) -> None:
    page = Page(4711)
    jp_serverapp.web_app.settings["rlnb_open_pages"].get("page", "a page", lambda: page)
    (extension,) = jp_serverapp.extension_manager.extension_apps["rlnb_jupyterlab"]
    await extension.stop_extension()
    assert not page.alive
