"""The WebSocket between a page and the server, one for each page."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

from jupyter_server.auth.decorator import authorized, ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado.websocket import WebSocketHandler

from rlnb_jupyterlab import logs
from rlnb_jupyterlab.messages import encoded
from rlnb_jupyterlab.pages import Page

RESOURCE = "rlnb"
"""Name of the panel's resource for Jupyter's authorizer."""
MOST_MESSAGE = 64 * 1024
MOST_WATCHED = 64
MOST_METRICS = 500
MOST_FOLLOWED = 8


class StreamHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """The WebSocket of a page, which carries the list of runs, curves, logs, and the progress of actions."""

    auth_resource = RESOURCE

    @ws_authenticated
    @authorized
    async def get(self, *arguments: Any, **options: Any) -> None:
        """Open the WebSocket for an authorized user."""
        await super().get(*arguments, **options)

    def open(self, *arguments: Any, **options: Any) -> None:
        """Add the page to the connected ones, and repeat the last messages about actions for it."""
        super().open(*arguments, **options)
        self._page = Page(send=self._send)
        self._loop = asyncio.get_running_loop()
        for message in self.settings["rlnb_actions"].messages:
            self._send(encoded(dataclasses.replace(message, again=True)))
        self.settings["rlnb_pages"].join(self._page)
        self._wake()

    def on_message(self, message: str | bytes) -> None:
        """Note the runs and logs that the page shows; other messages are ignored."""
        try:
            content = json.loads(message) if len(message) <= MOST_MESSAGE else None
        except (ValueError, RecursionError):  # the latter if it is nested too deeply
            return
        if not isinstance(content, dict):
            return
        page = self._page
        if content.get("type") == "watch" and isinstance(content.get("keys"), list):
            keys = [key for key in content["keys"] if isinstance(key, str)][:MOST_WATCHED]
            page.watched = {key: page.watched.get(key, {}) for key in keys}
            metrics = content.get("metrics")
            names = metrics if isinstance(metrics, list) else []
            page.metrics = tuple(name for name in names if isinstance(name, str))[:MOST_METRICS]
        elif content.get("type") == "follow" and isinstance(content.get("files"), list):
            files = [file for file in content["files"] if isinstance(file, dict) and isinstance(file.get("job"), int)]
            names = [(str(file.get("key")), file["job"], str(file.get("name"))) for file in files[:MOST_FOLLOWED]]
            page.followed = {log: page.followed.get(log, -logs.FIRST_BYTES) for log in names}
        self._wake()

    def on_close(self) -> None:
        """Remove the page from the connected ones."""
        super().on_close()
        if hasattr(self, "_page"):
            self.settings["rlnb_pages"].leave(self._page)
            self.settings["rlnb_watcher"].wake()

    def _wake(self) -> None:
        self.settings["rlnb_watcher"].start(self._loop.call_soon_threadsafe)

    def _send(self, text: str) -> None:
        if self.ws_connection is not None and not self.ws_connection.is_closing():
            self.write_message(text)
