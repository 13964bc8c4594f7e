"""The WebSocket of a page: access to it, and its messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from asking import echo, follow, heard, logged_in
from jupyter_server.auth.authorizer import AllowAllAuthorizer
from rlnb_jupyterlab.watcher import key_of
from tornado.httpclient import HTTPClientError


async def test_rows_curves_and_logs_are_sent_as_they_change(jp_ws_fetch: Any, root: Path) -> None:
    ended = echo().wait(60)
    stream = await jp_ws_fetch("rlnb", "stream")
    first = await heard(stream, "runs", reset=True)
    assert [row["id"] for row in first["rows"]] == [ended.id]
    (filled,) = (await heard(stream, "runs"))["rows"]
    assert len(filled["spark"]) == 3
    run = echo(max_iterations=1000, agent={"iteration_s": 0.05})
    while True:
        rows = (await heard(stream, "runs"))["rows"]
        if [row["id"] for row in rows] == [run.id] and rows[0]["state"] == "running" and rows[0]["iteration"] > 3:
            break
    await stream.write_message(json.dumps({"type": "watch", "keys": [key_of(run)]}))
    await stream.write_message(follow(run, "node0.log"))
    curves = await heard(stream, "curves", reset=True)
    seen = len(curves["series"]["reward"]["x"])
    more = await heard(stream, "curves", reset=False)
    assert more["series"]["reward"]["x"][0] > curves["series"]["reward"]["x"][-1]
    assert seen > 3
    with open(run.jobs[0].folder.log(), "a") as log:
        log.write("a line of the test\n")
    while "a line of the test" not in (await heard(stream, "log"))["text"]:
        pass
    stream.close()


async def test_two_logs_are_followed_at_once(jp_ws_fetch: Any, root: Path) -> None:
    run = echo(max_iterations=1000, agent={"iteration_s": 0.1})
    second = run.jobs[0].folder.log(1)
    second.write_text("of the second node\n")
    stream = await jp_ws_fetch("rlnb", "stream")
    await heard(stream, "runs", reset=True)
    await stream.write_message(follow(run, "node0.log", "node1.log"))
    texts: dict[str, str] = {}
    while len(texts) < 2:
        message = await heard(stream, "log")
        texts.setdefault(message["name"], message["text"])
    assert texts["node1.log"] == "of the second node\n"
    assert "iteration" in texts["node0.log"]
    stream.close()


@pytest.mark.parametrize("message", ["{", "[" * 10_000, "[]", '{"type": "watch", "keys": 1}'])
async def test_a_malformed_message_is_ignored(jp_ws_fetch: Any, root: Path, message: str) -> None:
    stream = await jp_ws_fetch("rlnb", "stream")
    await heard(stream, "runs", reset=True)
    await stream.write_message(message)
    run = echo()
    assert [row["id"] for row in (await heard(stream, "runs"))["rows"]] == [run.id], "the stream has ended"
    stream.close()


async def test_a_stream_for_another_site_is_refused(
    jp_fetch: Any, jp_ws_fetch: Any, jp_serverapp: Any, root: Path
) -> None:
    host = f"127.0.0.1:{jp_serverapp.port}"  # a cookie belongs to one host
    headers = {"Authorization": "", "Cookie": await logged_in(jp_fetch, jp_serverapp), "Host": host}
    own = await jp_ws_fetch("rlnb", "stream", headers=headers)
    own.close()
    with pytest.raises(HTTPClientError) as raised:
        await jp_ws_fetch("rlnb", "stream", headers={**headers, "Origin": "http://evil.example"})
    assert raised.value.code == 403


class Denying(AllowAllAuthorizer):
    """Denies every user access to the extension."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        """Return whether the resource is another one than the extension's."""
        return resource != "rlnb"


async def test_a_stream_needs_authorization(jp_ws_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    jp_serverapp.web_app.settings["authorizer"] = Denying(parent=jp_serverapp)
    with pytest.raises(HTTPClientError) as raised:
        await jp_ws_fetch("rlnb", "stream")
    assert raised.value.code == 403
