"""The files of a run, served whole or in parts, and sandboxed."""

from __future__ import annotations

import functools
import mimetypes
import re
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import BinaryIO

from jupyter_server.auth.decorator import authorized
from tornado import web

from rlnb_jupyterlab import detail
from rlnb_jupyterlab.handler import Handler, Refused
from rlnb_jupyterlab.opening import opened, size_of

PIECE = 1 << 20
IN_PAGE = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".mp4", ".html"}
"""Kinds of files that a page may show; others are downloaded."""
REPORTS = "reports"
"""Folder of a root with the reports of several runs."""
SANDBOX = "sandbox; default-src 'none'; img-src data: 'self'; media-src data: 'self'; style-src 'unsafe-inline'"
"""Policy for files that a browser opens as a page: they are not trusted, so they may execute nothing."""


class FileHandler(Handler):
    """A file of a run, but none of its records and no file outside its folder."""

    other_sites = True

    @web.authenticated
    @authorized
    async def get(self, key: str, path: str) -> None:
        await self._send(path, lambda: self._opened(key, path))

    async def _send(self, path: str, open_file: Callable[[], BinaryIO]) -> None:
        with await self.aside(open_file) as file:
            begin, end = self._range(size_of(file))
            self._set_headers(PurePath(path), end - begin)
            rest = end - begin
            file.seek(begin)
            while content := await self.aside(functools.partial(file.read, min(PIECE, rest))):
                rest -= len(content)
                self.write(content)
                await self.flush()
        self.finish()

    def _opened(self, key: str, path: str) -> BinaryIO:
        run = self.run_of(key)
        file = detail.open_offered(run, run.path / path)
        if file is None:
            raise Refused(404, "The run has no such file.")
        return file

    def _set_headers(self, path: PurePath, length: int) -> None:
        in_page = path.suffix.lower() in IN_PAGE
        kind = mimetypes.guess_type(path.name)[0] if in_page else None
        self.set_header("Content-Type", kind or "application/octet-stream")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Security-Policy", SANDBOX)
        self.set_header("Accept-Ranges", "bytes")
        self.set_header("Content-Length", length)
        if not in_page:
            name = re.sub(r"[^\w.()+ -]", "_", path.name, flags=re.ASCII)
            self.set_header("Content-Disposition", f'attachment; filename="{name}"')

    def _range(self, size: int) -> tuple[int, int]:
        """Return the first byte and the end of the requested range (RFC 9110, 14.2), else of the file.

        Players of films request ranges.
        """
        match = re.fullmatch(r"bytes=(\d{0,15})-(\d{0,15})", self.request.headers.get("Range", ""))
        first, last = match.groups() if match else ("", "")
        if not first and not last:
            return 0, size
        begin = int(first) if first else max(0, size - int(last))
        end = min(size, int(last) + 1) if first and last else size
        if begin >= end:
            self.set_header("Content-Range", f"bytes */{size}")
            raise Refused(416, "The file has no bytes in this range.")
        self.set_status(206)
        self.set_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        return begin, end


class ReportHandler(FileHandler):
    """A report of several runs, its notebook or its PDF."""

    @web.authenticated
    @authorized
    async def get(self, root: str, name: str) -> None:
        await self._send(name, lambda: self._report(int(root), name))

    def _report(self, root: int, name: str) -> BinaryIO:
        file = open_report(self.watcher.roots[root], name) if root < len(self.watcher.roots) else None
        if file is None:
            raise Refused(404, "There is no such report.")
        return file


def open_report(root: Path, name: str) -> BinaryIO | None:
    """Open a file in the folder of reports of a root; None if there is none, or it is hidden or a symbolic link."""
    # A name may be a path, since the server decodes %2F of an address.
    return None if name.startswith(".") or PurePath(name).name != name else opened(root / REPORTS / name, root)
