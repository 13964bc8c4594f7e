"""The base of all handlers: authenticated and limited requests about runs by their keys, answered in JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from jupyter_server.base.handlers import APIHandler
from tornado import web

import rlnb
from rlnb_jupyterlab.messages import Json, encoded
from rlnb_jupyterlab.open_pages import OpenPages
from rlnb_jupyterlab.stream import RESOURCE
from rlnb_jupyterlab.watcher import Watcher

Answer = TypeVar("Answer")
MOST_RUNS = 20
"""Maximum number of runs of one comparison, or of one action."""
MOST_BODY = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """The response to a refused request: the reason and its fix."""

    message: str
    fix: str = ""


class Refused(Exception):
    """A request that is refused.

    Args:
        status: HTTP status of the response.
        message: The reason.
        fix: The fix.
    """

    def __init__(self, status: int, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.status, self.refusal = status, Refusal(message=message, fix=fix)


class Handler(APIHandler):
    """The common part of all handlers."""

    auth_resource = RESOURCE
    other_sites = False
    """Whether a page of another site may request it. A sandboxed page of a run counts as another site."""

    async def prepare(self) -> None:  # type: ignore[override]  # tornado awaits it
        """Refuse a request that another site's page makes with this user's cookie (Fetch Metadata, W3C)."""
        await super().prepare()  # type: ignore[misc]  # a coroutine in jupyter_server
        if not self.other_sites and self.request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
            raise Refused(403, "Another site has made this request.", "Open JupyterLab itself.")

    @property
    def watcher(self) -> Watcher:
        """The reader of the runs' folders."""
        watcher: Watcher = self.settings["rlnb_watcher"]
        return watcher

    @property
    def open_pages(self) -> OpenPages:
        """The pages that this server has opened."""
        pages: OpenPages = self.settings["rlnb_open_pages"]
        return pages

    def answer(self, value: object) -> None:
        """Answer with dataclasses, lists and mappings as JSON."""
        self.finish(encoded(value))

    async def aside(self, work: Callable[[], Answer]) -> Answer:
        """Do work that reads files on another thread, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(None, work)

    async def opened(self, work: Callable[[], str]) -> str:
        """Open a page, which may take long, on another thread, and return its address."""
        return await asyncio.get_running_loop().run_in_executor(self.open_pages.openers, work)

    def run_of(self, key: str) -> rlnb.Run:
        """Return a run with a reader of its own."""
        run = self.watcher.run(key)
        if run is None:
            raise Refused(404, "The run no longer exists.", "Refresh the list.")
        return run

    def body(self) -> Mapping[str, Json]:
        """Return the JSON object that the page has sent."""
        if len(self.request.body) > MOST_BODY:
            raise Refused(413, "The request is too large.")
        try:
            content = json.loads(self.request.body)
        except (ValueError, RecursionError):  # the latter if it is nested too deeply
            content = None
        if not isinstance(content, dict):
            raise Refused(400, "The request is not a JSON object.")
        return content

    def runs_of(self, keys: Json, most: int = MOST_RUNS) -> dict[str, rlnb.Run]:
        """Return the runs of several keys, without those that no longer exist."""
        if not isinstance(keys, list) or not keys or not all(isinstance(key, str) for key in keys):
            raise Refused(400, "No runs are selected.", "Select one or more.")
        if len(keys) > most:
            raise Refused(400, f"{len(keys)} runs are too many. Select at most {most}.")
        runs = {key: run for key in keys if (run := self.watcher.run(key)) is not None}
        if not runs:
            raise Refused(404, "The runs no longer exist.", "Refresh the list.")
        return runs

    def write_error(self, status_code: int, **options: Any) -> None:
        """Answer in JSON with the error and its fix, without details that belong only in the log."""
        error = options.get("exc_info", (None, None, None))[1]
        refusal = Refusal(message="The server failed. Its log gives the reason.")
        if isinstance(error, Refused):
            refusal = error.refusal
            self.set_status(error.status)
        elif isinstance(error, rlnb.RlnbError):
            refusal = Refusal(message=str(error))
            self.set_status(409)
        elif isinstance(error, web.HTTPError):
            refusal = Refusal(message=error.log_message or error.reason or f"HTTP {status_code}")
        self.set_header("Content-Type", "application/json")
        self.answer(refusal)

    def log_exception(self, *info: Any) -> None:
        """Log unexpected errors only."""
        if not isinstance(info[1], Refused | rlnb.RlnbError):
            super().log_exception(*info)
