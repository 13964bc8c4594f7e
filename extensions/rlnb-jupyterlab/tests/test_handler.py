"""Requests without a login and from other sites are refused, and a refusal has a fix."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from asking import Page, echo, logged_in, refused
from rlnb_jupyterlab import handlers
from rlnb_jupyterlab.watcher import key_of
from tornado.httpclient import HTTPClientError


@pytest.mark.parametrize("route", [route for route, _ in handlers.ROUTES])
async def test_a_request_without_a_login_is_refused(jp_fetch: Any, route: str, root: Path) -> None:
    path = re.sub(r"\(\?P<key>[^)]*\)", "0" * 20, route)
    path = re.sub(r"\(\?P<(job|root)>[^)]*\)", "0", re.sub(r"\(\?P<(name|path)>[^)]*\)", "a", path))
    for method in ("GET", "POST"):
        with pytest.raises(HTTPClientError) as raised:
            await jp_fetch(
                *path.strip("/").split("/"),
                method=method,
                headers={"Authorization": ""},
                allow_nonstandard_methods=True,
                follow_redirects=False,
            )
        assert raised.value.code in (302, 403, 405), (method, path)


async def test_a_browser_that_has_logged_in_may_read(jp_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    cookie = await logged_in(jp_fetch, jp_serverapp)
    headers = {"Authorization": "", "Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
    assert (await jp_fetch("rlnb", "cluster", headers=headers)).code == 200


async def test_a_write_from_another_site_is_refused(jp_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    """A browser sends the cookie by itself, but another site cannot send the XSRF token."""
    cookie = await logged_in(jp_fetch, jp_serverapp)
    run = echo().wait(60)
    body = json.dumps({"action": "delete", "keys": [key_of(run)]})
    jp_serverapp.web_app.settings["rlnb_open_pages"].get("page", "a page", lambda: Page(4711))
    for headers in ({}, {"Origin": "http://evil.example"}):
        with pytest.raises(HTTPClientError) as raised:
            await jp_fetch(
                "rlnb", "actions", method="POST", body=body, headers={"Authorization": "", "Cookie": cookie, **headers}
            )
        assert raised.value.code in (403, 404), "Jupyter may answer other sites with 404"
        with pytest.raises(HTTPClientError) as raised:
            await jp_fetch(
                *("rlnb", "close"),
                method="POST",
                body='{"name": "page"}',
                headers={"Authorization": "", "Cookie": cookie, **headers},
            )
        assert raised.value.code in (403, 404)
    assert run.path.exists()
    assert len(jp_serverapp.web_app.settings["rlnb_open_pages"].links()) == 1


async def test_a_request_for_an_unknown_run_is_refused_with_a_fix(jp_fetch: Any, root: Path) -> None:
    code, refusal = await refused(jp_fetch, "runs", "0" * 20)
    assert code == 404
    assert refusal == {"message": "The run no longer exists.", "fix": "Refresh the list."}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_read_that_another_sites_page_makes_is_refused(
    jp_fetch: Any, jp_serverapp: Any, root: Path, site: str
) -> None:
    """It would start a process for the figures, and make a training take pictures."""
    headers = {"Authorization": "", "Cookie": await logged_in(jp_fetch, jp_serverapp), "Sec-Fetch-Site": site}
    key = key_of(echo().wait(60))
    for parts in (("runs", key, "figures"), ("runs", key, "frame"), ("cluster",)):
        code, refusal = await refused(jp_fetch, *parts, headers=headers)
        assert (code, refusal["message"]) == (403, "Another site has made this request.")
    assert (await jp_fetch("rlnb", "runs", key, "files", "logs", "model_2.json", headers=headers)).code == 200
