"""What a page may ask: authenticated, about runs by their keys, within bounds, answered in JSON with the fix."""

from __future__ import annotations

import asyncio
import functools
import json
import mimetypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

import rlnb
from rlnb_jupyterlab import actions, code, detail, logs, queues, subprocesses
from rlnb_jupyterlab.cameras import Cameras
from rlnb_jupyterlab.open_pages import OpenPages
from rlnb_jupyterlab.readers import Readers
from rlnb_jupyterlab.stream import RESOURCE, StreamHandler
from rlnb_jupyterlab.watcher import Watcher

Found = TypeVar("Found")
KEY = r"(?P<key>[0-9a-f]{20})"
MOST_RUNS = 20
"""Of one comparison, or one action."""
MOST_TOGETHER = 2000
"""Of an action that one command does with all of them: as many fit into its line."""
MOST_BODY = 256 * 1024
PIECE = 1 << 20
CHECK_S = 240.0
FIGURES_S, MOST_FIGURES = 120.0, 8 << 20
"""Seconds and bytes of the figures that plugins draw."""
IN_PAGE = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".mp4", ".html"}
"""Kinds of files that a page may show; others are downloaded."""
SANDBOX = "sandbox; default-src 'none'; img-src data: 'self'; media-src 'self'; style-src 'unsafe-inline'"
"""A file of a run is somebody's work: as a page it may do nothing."""


class Refused(Exception):
    """A question that has no answer, with what to do instead."""

    def __init__(self, status: int, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.fix = status, message, fix


class Handler(APIHandler):
    """What all have in common."""

    auth_resource = RESOURCE

    @property
    def watcher(self) -> Watcher:
        """The reader of the runs' folders."""
        found: Watcher = self.settings["rlnb_watcher"]
        return found

    async def aside(self, work: Callable[[], Found]) -> Found:
        """Do what reads files on another thread."""
        return await asyncio.get_running_loop().run_in_executor(None, work)

    async def opened(self, work: Callable[[], str]) -> str:
        """Return the address of a page that takes long to start."""
        open_pages: OpenPages = self.settings["rlnb_open_pages"]
        return await asyncio.get_running_loop().run_in_executor(open_pages.openers, work)

    def run_of(self, key: str) -> rlnb.Run:
        """Return a run with a reader of its own."""
        found = self.watcher.run(key)
        if found is None:
            raise Refused(404, "There is no such run any more.", "Refresh the list.")
        return found

    def body(self) -> dict[str, Any]:
        """Return what was sent."""
        if len(self.request.body) > MOST_BODY:
            raise Refused(413, "That is too much at once.")
        try:
            found = json.loads(self.request.body)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Refused(400, "A JSON object is expected.")
        return found

    def runs_of(self, keys: Any, most: int = MOST_RUNS) -> dict[str, rlnb.Run]:
        """Return the runs of several keys, of those that are still there."""
        if not isinstance(keys, list) or not keys or not all(isinstance(key, str) for key in keys):
            raise Refused(400, "No runs are named.", "Select one or more.")
        if len(keys) > most:
            raise Refused(400, f"{len(keys)} runs are more than {most} at once.")
        found = {key: run for key in keys if (run := self.watcher.run(key)) is not None}
        if not found:
            raise Refused(404, "There are no such runs any more.", "Refresh the list.")
        return found

    def write_error(self, status_code: int, **options: Any) -> None:
        """Answer in JSON: what is wrong, and the fix; never with what only the log should hold."""
        error = options.get("exc_info", (None, None, None))[1]
        message, fix = "The server failed; its log says why.", ""
        if isinstance(error, Refused):
            message, fix = error.message, error.fix
            self.set_status(error.status)
        elif isinstance(error, rlnb.RlnbError):
            message = str(error)
            self.set_status(409)
        elif isinstance(error, web.HTTPError):
            message = error.log_message or error.reason or f"HTTP {status_code}"
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps({"message": message, "fix": fix}))

    def log_exception(self, *info: Any) -> None:
        """Log what nobody expected only."""
        if not isinstance(info[1], Refused | rlnb.RlnbError):
            super().log_exception(*info)


class RegistryHandler(Handler):
    """What a form offers."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        self.finish(json.dumps(await self.settings["rlnb_registry"].get()))


class LibrariesHandler(Handler):
    """The libraries alone, which are known sooner than tasks."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        self.finish(json.dumps({"libraries": (await self.settings["rlnb_registry"].quick())["libraries"]}))


class RunHandler(Handler):
    """A run."""

    @web.authenticated
    @authorized
    async def get(self, key: str) -> None:
        readers: Readers = self.settings["rlnb_readers"]

        def read() -> dict[str, Any]:
            with readers.reader(self.run_of(key)) as run:
                return detail.detail(run, key)

        self.finish(json.dumps(await self.aside(read), allow_nan=False))


class LogHandler(Handler):
    """A piece of a log."""

    @web.authenticated
    @authorized
    async def get(self, key: str, job: str, name: str) -> None:
        try:
            offset = int(self.get_argument("offset", "0"))
        except ValueError:
            raise Refused(400, "offset is not a whole number.") from None

        def read() -> dict[str, Any]:
            path = logs.path_of(self.run_of(key), int(job), name)
            if path is None:
                raise Refused(404, "There is no such log.")
            text, begin, end = logs.piece(path, offset)
            return {"text": text, "offset": begin, "next": end, "size": path.stat().st_size}

        self.finish(json.dumps(await self.aside(read)))


class FileHandler(Handler):
    """A file that a run has left; none of its records, and nothing outside of it."""

    @web.authenticated
    @authorized
    async def get(self, key: str, path: str) -> None:
        def find() -> Path:
            run = self.run_of(key)
            asked = run.path / path
            if not detail.offered(run, asked):
                raise Refused(404, "The run has no such file.")
            return asked

        found = await self.aside(find)
        size = (await self.aside(found.stat)).st_size
        begin, end = self._range(size)
        kind = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
        shown = found.suffix.lower() in IN_PAGE
        self.set_header("Content-Type", kind if shown else "application/octet-stream")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Security-Policy", SANDBOX)
        self.set_header("Accept-Ranges", "bytes")
        self.set_header("Content-Length", end - begin)
        if not shown:
            self.set_header(
                "Content-Disposition", f'attachment; filename="{found.name.encode("ascii", "replace").decode()}"'
            )
        left = end - begin
        with await self.aside(lambda: open(found, "rb")) as file:
            file.seek(begin)
            while content := await self.aside(functools.partial(file.read, min(PIECE, left))):
                left -= len(content)
                self.write(content)
                await self.flush()
        self.finish()

    def _range(self, size: int) -> tuple[int, int]:
        """Return which bytes are asked for: one range, as players of films do (RFC 9110, 14.2), or all."""
        asked = re.fullmatch(r"bytes=(\d{0,15})-(\d{0,15})", self.request.headers.get("Range", ""))
        first, last = asked.groups() if asked else ("", "")
        if not first and not last:
            return 0, size
        begin = int(first) if first else max(0, size - int(last))
        end = min(size, int(last) + 1) if first and last else size
        if begin >= end:
            self.set_header("Content-Range", f"bytes */{size}")
            raise Refused(416, "The file has no such bytes.")
        self.set_status(206)
        self.set_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        return begin, end


class FrameHandler(Handler):
    """What the cameras of a training see now, as a PNG; asked for every second, which keeps the training at it."""

    @web.authenticated
    @authorized
    async def get(self, key: str) -> None:
        cameras: Cameras = self.settings["rlnb_cameras"]
        png = await self.aside(lambda: cameras.picture(key, lambda: self.run_of(key)))
        self.set_header("Cache-Control", "no-store")
        if png is None:
            self.set_status(204)
            self.finish()
            return
        self.finish(png, set_content_type="image/png")


class FiguresHandler(Handler):
    """What plugins draw of a run, as Jupyter mime bundles."""

    @web.authenticated
    @authorized
    async def get(self, key: str) -> None:
        run = await self.aside(lambda: self.run_of(key))
        drawing: dict[str, asyncio.Task[tuple[int, str]]] = self.settings.setdefault("rlnb_drawing", {})
        if key not in drawing:  # a page asks each time it is shown
            words = ["rlnb", "plugins", "figures", str(run.path)]
            drawn = subprocesses.output(words, run.path.parent.parent, within_s=FIGURES_S, most=MOST_FIGURES + 1)
            drawing[key] = asyncio.create_task(drawn)
            drawing[key].add_done_callback(lambda _: drawing.pop(key, None))
        try:
            status, printed = await asyncio.shield(drawing[key])
        except TimeoutError:
            raise Refused(504, f"The plugins' figures took more than {FIGURES_S:.0f} s.", "Open a notebook.") from None
        if len(printed) > MOST_FIGURES:
            raise Refused(413, f"The plugins' figures are more than {MOST_FIGURES >> 20} MiB.", "Open a notebook.")
        if status:
            raise Refused(500, "The plugins' figures could not be drawn.", "The server's log says why.")
        self.finish(json.dumps({"figures": json.loads(printed)}))


class DiffHandler(Handler):
    """What differs between runs."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        keys = self.get_argument("keys", "").split(",")
        self.finish(json.dumps(await self.aside(lambda: detail.difference([*self.runs_of(keys).values()]))))


class CheckHandler(Handler):
    """What would make a run fail, and the lines of a notebook that start it."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        form = self.body()
        try:
            text = code.code(form)
        except code.Malformed as exc:
            self.finish(json.dumps({"problems": [{"what": str(exc), "fix": ""}], "code": ""}))
            return
        given = json.dumps(form).encode()
        try:
            status, printed = await subprocesses.output(
                ["rlnb_jupyterlab.check"], self.watcher.roots[0], given=given, within_s=CHECK_S
            )
            found = json.loads(printed[printed.rindex('{"problems"') :]) if status == 0 else None
        except (TimeoutError, ValueError):
            found = None
        unknown = {"what": "The check itself failed; the server's log says why.", "fix": ""}
        if found is None:
            self.log.warning("rlnb_jupyterlab.check failed")
        self.finish(json.dumps({"problems": found["problems"] if found else [unknown], "code": text}))


class ActionHandler(Handler):
    """Has something done with runs."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        asked = self.body()
        options = asked.get("options") or {}
        if not isinstance(options, dict):
            raise Refused(400, "options is not a JSON object.")

        action = str(asked.get("action"))
        together = action == actions.TOGETHER

        def words() -> list[tuple[dict[str, rlnb.Run], list[str]]]:
            found = []
            runs = self.runs_of(asked.get("keys"), MOST_TOGETHER if together else MOST_RUNS)
            for about in [runs] if together else [{key: run} for key, run in runs.items()]:
                try:
                    argv = actions.command(action, [*about.values()], options)
                except (StopIteration, ValueError, TypeError):
                    raise Refused(400, "The run has no such checkpoint, or a number is none.") from None
                if argv is None:
                    raise Refused(400, "There is no such action.")
                found.append((about, argv))
            return found

        names = [self.settings["rlnb_actions"].start(action, about, argv) for about, argv in await self.aside(words)]
        self.finish(json.dumps({"id": names[0], "ids": names}))


class TensorBoardHandler(Handler):
    """Starts TensorBoard on runs, on this machine's loopback."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        keys = self.body().get("keys")
        name = ",".join(sorted(keys)) if isinstance(keys, list) else ""
        open_pages: OpenPages = self.settings["rlnb_open_pages"]
        runs = [*(await self.aside(lambda: self.runs_of(keys))).values()]
        title = f"TensorBoard of {runs[0].id if len(runs) == 1 else f'{len(runs)} runs'}"
        url = await self.opened(lambda: open_pages.get(name, title, lambda: rlnb.tensorboard(runs)))
        self.finish(json.dumps({"url": url}))


class SceneHandler(Handler):
    """Opens a 3D view of a run's policy, on this machine's loopback."""

    @web.authenticated
    @authorized
    async def post(self, key: str) -> None:
        open_pages: OpenPages = self.settings["rlnb_open_pages"]
        run = await self.aside(lambda: self.run_of(key))
        url = await self.opened(lambda: open_pages.get(f"scene {key}", f"{run.id} in 3D", lambda: rlnb.view(run)))
        self.finish(json.dumps({"url": url}))


class CloseHandler(Handler):
    """Ends a page that this server has opened, and what it holds."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        open_pages: OpenPages = self.settings["rlnb_open_pages"]
        name = str(self.body().get("name"))
        if not await self.aside(lambda: open_pages.end(name)):
            raise Refused(404, "There is no such page any more.")
        self.finish(json.dumps({}))


class ClusterHandler(Handler):
    """What queues say, and what else can be looked at."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        open_pages: OpenPages = self.settings["rlnb_open_pages"]
        dashboards = await self.aside(lambda: queues.dashboards(self.watcher.active()))
        self.finish(json.dumps({"queues": await queues.queues(), "links": [*open_pages.links(), *dashboards]}))


ROUTES = [
    (r"/rlnb/stream", StreamHandler),
    (r"/rlnb/registry", RegistryHandler),
    (r"/rlnb/libraries", LibrariesHandler),
    (rf"/rlnb/runs/{KEY}", RunHandler),
    (rf"/rlnb/runs/{KEY}/logs/(?P<job>\d{{1,6}})/(?P<name>[^/]+)", LogHandler),
    (rf"/rlnb/runs/{KEY}/files/(?P<path>.+)", FileHandler),
    (rf"/rlnb/runs/{KEY}/frame", FrameHandler),
    (rf"/rlnb/runs/{KEY}/figures", FiguresHandler),
    (rf"/rlnb/runs/{KEY}/scene", SceneHandler),
    (r"/rlnb/diff", DiffHandler),
    (r"/rlnb/check", CheckHandler),
    (r"/rlnb/actions", ActionHandler),
    (r"/rlnb/tensorboard", TensorBoardHandler),
    (r"/rlnb/close", CloseHandler),
    (r"/rlnb/cluster", ClusterHandler),
]
