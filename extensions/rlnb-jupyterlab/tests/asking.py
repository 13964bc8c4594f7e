"""Requests of the tests to the server, and the runs and pages that they are about."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from rlnb_jupyterlab.watcher import key_of
from tornado.httpclient import HTTPClientError

import rlnb

HOSTILE = '<img src=x onerror="alert(1)">\u202e'


def echo(**arguments: Any) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **{"max_iterations": 3, **arguments})


async def asked(jp_fetch: Any, *parts: str, **options: Any) -> Any:
    answer = await jp_fetch("rlnb", *parts, **options)
    return json.loads(answer.body)


async def refused(jp_fetch: Any, *parts: str, **options: Any) -> tuple[int, dict[str, str]]:
    with pytest.raises(HTTPClientError) as raised:
        await jp_fetch("rlnb", *parts, **options)
    body = raised.value.response.body
    return raised.value.code, json.loads(body) if body else {}


async def heard(stream: Any, kind: str, within_s: float = 20.0, **wanted: Any) -> dict[str, Any]:
    """Return the first message of a kind with the wanted fields: one that was kept, or one that is still to come."""
    kept: list[dict[str, Any]] = stream.__dict__.setdefault("kept", [])  # later messages may arrive first
    seen, deadline = 0, time.monotonic() + within_s
    while True:
        for number in range(seen, len(kept)):
            message = kept[number]
            if message["type"] == kind and all(message.get(name) == value for name, value in wanted.items()):
                return kept.pop(number)
        seen = len(kept)
        text = await asyncio.wait_for(stream.read_message(), deadline - time.monotonic())
        assert text is not None, "the stream was closed"
        kept.append(json.loads(text))


def follow(run: rlnb.Run, *names: str) -> str:
    return json.dumps({"type": "follow", "files": [{"key": key_of(run), "job": 0, "name": name} for name in names]})


def write_whole(path: Path, text: str) -> None:
    """Write a file in one step, since the server may read it at any moment."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


class Page:
    """A page that stays open until it is closed."""

    def __init__(self, port: int) -> None:
        self.port, self.alive = port, True

    def close(self) -> None:
        """Close the page."""
        self.alive = False


async def logged_in(jp_fetch: Any, jp_serverapp: Any) -> str:
    """Return the cookie of a login, which a browser sends by itself, whichever page makes the request."""
    token = jp_serverapp.identity_provider.token
    answer = await jp_fetch("rlnb", "cluster", params={"token": token}, headers={"Authorization": ""})
    (cookie,) = [text for text in answer.headers.get_list("Set-Cookie") if text.startswith("username-")]
    return cookie.split(";")[0]
