"""Odd requests: each is answered with a result, or refused with a sentence, within five seconds.

``RLNB_ODD=all`` sends 500 requests to each handler.
"""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from asking import echo
from rlnb_jupyterlab.watcher import key_of
from tornado.httpclient import HTTPClientError

import rlnb

COUNT = 500 if os.environ.get("RLNB_ODD") == "all" else 12
SLOW_COUNT = COUNT if COUNT == 500 else 3
LIMIT_S = 5.0
DEEP = "[" * 50_000
TEXTS = (
    "",
    "x" * 5000,
    "..",
    "../../../../etc/passwd",
    "a\r\nb: c",
    'a"b',
    "\u202e",
    "\ud800",
    "%00",
    "a\0b",
    "-1",
    "1e9",
    "[/x]",
)
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 4, 1.5, 10**30, float("nan"), float("inf"), [], [[]], {}, {"a": {}}, *TEXTS),
)
BODIES = (
    "",
    "{",
    DEEP,
    '{"a":' * 50_000,
    "null",
    "[]",
    "\xff",
    "{" + '"a": 1,' * 50_000,
    '{"max_iterations": Infinity}',
)
NAMES = ("model_2.json", "node0.log", "manifest.json", "report.html", *TEXTS)
GETS = (
    "registry",
    "libraries",
    "runs/{key}",
    "runs/{key}/lineage",
    "runs/{key}/logs/{job}/{odd}",
    "runs/{key}/files/{odd}",
    "runs/{key}/frame",
)
"""Requests; figures and queues start a process each, so there are fewer of them."""
SLOW = ("runs/{key}/figures", "cluster")
POSTS = {
    "actions": ("action", "keys", "options"),
    "check": ("task", "library", "agent", "max_iterations", "num_envs", "launcher", "agent_config"),
    "close": ("name",),
    "goodput": ("keys",),
    "tensorboard": ("keys",),
    "runs/{key}/scene": ("any",),
}
OPTIONS = ("episodes", "max_iterations", "checkpoint")


def text_of(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


def asked_of(rng: random.Random, route: str, key: str) -> tuple[str, dict[str, str]]:
    """Return the path and the parameters of a request, with odd parts."""
    path = route.replace("{key}", rng.choice([key, key, key, "0" * 20]))
    path = path.replace("{job}", rng.choice(["0", "7", "999999"]))
    while "{odd}" in path:
        name = plain(rng.choice(NAMES)) or "-"
        path = path.replace("{odd}", name if "/files/" in route else name.replace("/", "_"), 1)
    parameters = {rng.choice(["offset", "keys", "any"]): plain(rng.choice(TEXTS))} if rng.random() < 0.5 else {}
    return path, parameters


def plain(text: str) -> str:
    """Return a text as a URL can have it."""
    return text.encode("utf-8", "replace").decode()


def body_of(rng: random.Random, names: tuple[str, ...], key: str) -> str:
    """Return the body of a request: of no use, or an object with odd values."""
    if rng.random() < 0.3:
        return rng.choice(BODIES)
    fields: dict[str, Any] = {name: rng.choice(VALUES) for name in names if rng.random() < 0.8}
    if "keys" in fields and rng.random() < 0.5:
        fields["keys"] = [rng.choice([key, "0" * 20, 5, ""])]
    if "options" in fields and rng.random() < 0.7:
        fields |= {"action": "evaluate", "options": {name: rng.choice(VALUES) for name in OPTIONS}}
    return text_of(fields)


async def answer(jp_fetch: Any, path: str, **options: Any) -> tuple[int, bytes]:
    """Return the status and the body of the answer to a request."""
    begin_s = time.monotonic()
    try:
        done = await jp_fetch("rlnb", *path.split("/"), request_timeout=60, **options)
    except HTTPClientError as exc:
        done = exc.response
    assert time.monotonic() - begin_s < LIMIT_S, path
    return (done.code, done.body) if done is not None else (599, b"no answer")


def check(code: int, body: bytes, asked: str) -> None:
    """Check that a request was answered, or refused with a sentence."""
    assert code < 500, f"{asked}: {body[:300]!r}"
    if code >= 400:
        message = json.loads(body)["message"]
        assert message, asked
        assert "Traceback" not in message


@pytest.mark.timeout(600)
@pytest.mark.parametrize("route", [*GETS, *SLOW, "diff"])
async def test_an_odd_request_to_read_is_answered_or_refused(jp_fetch: Any, root: Path, route: str) -> None:
    run, rng = echo().wait(60), random.Random(route)
    for _ in range(SLOW_COUNT if route in SLOW else COUNT):
        path, parameters = asked_of(rng, route, key_of(run))
        check(*await answer(jp_fetch, path, params=parameters), asked=f"{path} {parameters}"[:300])


@pytest.mark.parametrize("route", POSTS)
async def test_an_odd_request_to_act_is_answered_or_refused(
    jp_fetch: Any, root: Path, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, rng = echo().wait(60), random.Random(route)
    monkeypatch.setattr(rlnb, "tensorboard", lambda runs: pytest.fail("no odd request may start a server"))
    for number in range(SLOW_COUNT if route == "check" else COUNT):
        path, body = asked_of(rng, route, key_of(run))[0], body_of(rng, POSTS[route], key_of(run))
        if route == "tensorboard" or route.endswith("scene"):  # a valid one would start a server
            path, body = path.replace(key_of(run), "0" * 20), body.replace(key_of(run), "0" * 20)
        code, text = await answer(jp_fetch, path, method="POST", body=body)
        check(code, text, asked=f"{number}: {path} {body[:200]}")
    assert [job.kind for job in run.jobs if job.kind == "train"] == ["train"]
