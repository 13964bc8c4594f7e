"""The one stream of a page, both ways."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from jupyter_server.auth.decorator import authorized, ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado.websocket import WebSocketHandler

from rlnb_jupyterlab import logs
from rlnb_jupyterlab.pages import Page, encoded

RESOURCE = "rlnb"
"""What may be allowed or not, to Jupyter's authorizer."""
MOST_MESSAGE = 64 * 1024
MOST_WATCHED = 64
MOST_FOLLOWED = 8


class StreamHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """The one stream of a page: the list of runs, curves, a log, and how actions go."""

    auth_resource = RESOURCE

    @ws_authenticated
    @authorized
    async def get(self, *arguments: Any, **options: Any) -> None:
        """Open it, for those who may."""
        await super().get(*arguments, **options)

    def open(self, *arguments: Any, **options: Any) -> None:
        """Take the page in."""
        super().open(*arguments, **options)
        self._page = Page(send=self._send)
        self._loop = asyncio.get_running_loop()
        for message in self.settings["rlnb_actions"].said:
            self._send(encoded({**message, "again": True}))
        self.settings["rlnb_pages"].join(self._page)
        self._wake()

    def on_message(self, message: str | bytes) -> None:
        """Hear what the page wants to be told; what is not understood is passed over."""
        try:
            asked = json.loads(message) if len(message) <= MOST_MESSAGE else None
        except ValueError:
            return
        if not isinstance(asked, dict):
            return
        page = self._page
        if asked.get("type") == "watch" and isinstance(asked.get("keys"), list):
            keys = [key for key in asked["keys"] if isinstance(key, str)][:MOST_WATCHED]
            page.watched = {key: page.watched.get(key, {}) for key in keys}
        elif asked.get("type") == "follow" and isinstance(asked.get("files"), list):
            files = [file for file in asked["files"] if isinstance(file, dict) and isinstance(file.get("job"), int)]
            wanted = [(str(file.get("key")), file["job"], str(file.get("name"))) for file in files[:MOST_FOLLOWED]]
            page.followed = {log: page.followed.get(log, -logs.FIRST_BYTES) for log in wanted}
        self._wake()

    def on_close(self) -> None:
        """Let the page go."""
        super().on_close()
        if hasattr(self, "_page"):
            self.settings["rlnb_pages"].leave(self._page)
            self.settings["rlnb_watcher"].wake()

    def _wake(self) -> None:
        self.settings["rlnb_watcher"].start(self._loop.call_soon_threadsafe)

    def _send(self, text: str) -> None:
        if self.ws_connection is not None and not self.ws_connection.is_closing():
            self.write_message(text)
