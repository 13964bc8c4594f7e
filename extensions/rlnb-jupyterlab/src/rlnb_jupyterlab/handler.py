"""The base of all handlers: authenticated questions about runs by their keys, within bounds, answered in JSON."""

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
"""Of one comparison, or one action."""
MOST_BODY = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """The answer to a question that has none, with the fix."""

    message: str
    fix: str = ""


class Refused(Exception):
    """A question that has no answer.

    Args:
        status: HTTP status of the answer.
        message: The reason.
        fix: What to do instead.
    """

    def __init__(self, status: int, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.status, self.refusal = status, Refusal(message=message, fix=fix)


class Handler(APIHandler):
    """The common part of all handlers."""

    auth_resource = RESOURCE

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
        """Return the result of work that reads files, on another thread."""
        return await asyncio.get_running_loop().run_in_executor(None, work)

    async def opened(self, work: Callable[[], str]) -> str:
        """Return the address of a page that takes long to start."""
        return await asyncio.get_running_loop().run_in_executor(self.open_pages.openers, work)

    def run_of(self, key: str) -> rlnb.Run:
        """Return a run with a reader of its own."""
        run = self.watcher.run(key)
        if run is None:
            raise Refused(404, "There is no such run any more.", "Refresh the list.")
        return run

    def body(self) -> Mapping[str, Json]:
        """Return the JSON object that the page has sent."""
        if len(self.request.body) > MOST_BODY:
            raise Refused(413, "That is too much at once.")
        try:
            content = json.loads(self.request.body)
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise Refused(400, "A JSON object is expected.")
        return content

    def runs_of(self, keys: Json, most: int = MOST_RUNS) -> dict[str, rlnb.Run]:
        """Return the runs of several keys, without those that are gone."""
        if not isinstance(keys, list) or not keys or not all(isinstance(key, str) for key in keys):
            raise Refused(400, "No runs are named.", "Select one or more.")
        if len(keys) > most:
            raise Refused(400, f"{len(keys)} runs are more than {most} at once.")
        runs = {key: run for key in keys if (run := self.watcher.run(key)) is not None}
        if not runs:
            raise Refused(404, "There are no such runs any more.", "Refresh the list.")
        return runs

    def write_error(self, status_code: int, **options: Any) -> None:
        """Answer in JSON with the error and its fix, and without any detail that only the log should hold."""
        error = options.get("exc_info", (None, None, None))[1]
        refusal = Refusal(message="The server failed; its log says why.")
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
