"""Tests of rlnb.node.alerts: an agent with the echo library, and a webhook on this machine."""

from __future__ import annotations

import contextlib
import http.server
import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlnb
from rlnb.node import alerts
from rlnb.node.alerts import WEBHOOK, AlertMonitor, send


class Hook(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent, and refuses the first few posts."""

    posts: list[dict[str, str]]
    refusals = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if Hook.refusals:
            Hook.refusals -= 1
            self.send_error(503)
            return
        Hook.posts.append(body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of a webhook, which agents that start from now on know."""
    Hook.posts, Hook.refusals = [], 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/secret"
    monkeypatch.setenv(WEBHOOK, url)
    yield url
    server.shutdown()
    server.server_close()


def test_the_node_alerts_once_for_each_rule_and_tells_the_webhook(root: Path, hook: str) -> None:
    rules = ["iteration >= 0", "reward < -1e9", "ended", "failed"]
    run = rlnb.train("Echo", library="echo", max_iterations=3, alerts=rules).wait(60)
    deadline = time.monotonic() + 20
    while len(Hook.posts) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert {alert.rule for alert in run.alerts} == {"iteration >= 0", "ended"}
    assert {post["text"] for post in Hook.posts} == {f"{run.id}: {alert.what}" for alert in run.alerts}
    assert hook not in "".join(path.read_text(errors="replace") for path in run.path.rglob("*") if path.is_file())
    assert run.jobs[0].folder.flight_request.read_text().startswith("iteration >= 0: iteration is ")


def test_a_second_look_at_the_end_tells_nothing_twice(root: Path, hook: str) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1, alerts=["iteration >= 0", "ended"]).wait(60)
    for _ in range(2):
        AlertMonitor(run.jobs[0].folder).end()
    deadline = time.monotonic() + 20
    while len(Hook.posts) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(Hook.posts) == len(run.alerts) == 2


def test_a_training_that_fails_alerts(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=3, agent={"crash_at": 1}, alerts=True)
    with contextlib.suppress(rlnb.RunError):
        run.wait(60)
    deadline = time.monotonic() + 20
    while not run.alerts:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [alert.rule for alert in run.alerts] == ["failed"]
    assert run.alerts[0].what.startswith("failed")


def test_a_webhook_that_is_away_is_tried_again(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    Hook.refusals = 2
    send(hook, "first")
    assert Hook.posts == [{"text": "first"}]


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "http://127.0.0.1:9/secret",
        "nonsense/secret",
        "https://user:secret@127.0.0.1/x",
        "http://127.0.0.1:9/a secret",
    ],
)
def test_a_webhook_that_cannot_be_told_is_said_without_its_address(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    send(url, "first")
    error = capsys.readouterr().err
    assert "did not take an alert" in error
    assert "secret" not in error
    assert "passwd" not in error


def test_a_status_of_the_webhook_is_said(
    hook: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    Hook.refusals = 3
    send(hook, "first")
    assert "HTTPError (HTTP status 503)" in capsys.readouterr().err
    assert Hook.posts == []


def test_curves_that_cannot_be_read_do_not_end_the_job(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1, alerts="reward < -1e9").wait(60)
    monkeypatch.setattr(alerts, "LOOK_S", 0.0)
    monkeypatch.setattr(alerts, "SHARE", 1e9)
    monitor = AlertMonitor(run.jobs[0].folder)
    monkeypatch.setattr(monitor, "_check", lambda text: 1 / 0)
    monitor.tick()
    monitor.tick()
    monitor.end()
    message = "the alert 'reward < -1e9' could not be checked: ZeroDivisionError"
    assert capsys.readouterr().err.count(message) == 1


def test_a_full_disk_does_not_keep_the_webhook_from_being_told(
    root: Path, hook: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    monkeypatch.setattr(alerts, "rules", lambda run: ("ended",))

    def full(job: object, alert: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(alerts, "write_alert", full)
    AlertMonitor(run.jobs[0].folder).end()
    assert Hook.posts == [{"text": f"{run.id}: completed"}]
    assert "could not be kept" in capsys.readouterr().err


@pytest.mark.parametrize(("outcome", "interrupted", "expected"), [("failed", True, 0), ("failed", False, 1)])
def test_a_job_that_goes_on_in_another_one_has_not_failed(
    root: Path, monkeypatch: pytest.MonkeyPatch, outcome: str, interrupted: bool, expected: int
) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    job = run.jobs[0].folder
    result = json.loads(job.result.read_text())
    job.result.write_text(json.dumps({**result, "outcome": outcome, "values": {"interrupted": interrupted}}))
    monkeypatch.setattr(alerts, "rules", lambda run: ("failed",))
    AlertMonitor(job).end()
    assert len(run.alerts) == expected


def test_looks_take_a_small_share_of_a_core(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    monkeypatch.setattr(alerts, "rules", lambda run: ("reward < -1e9",))
    clock = [100.0]
    monkeypatch.setattr(alerts.time, "monotonic", lambda: clock[0])
    monitor = AlertMonitor(run.jobs[0].folder)
    looks: list[float] = []

    def slow(text: str) -> None:
        looks.append(clock[0])
        clock[0] += 2.0

    monkeypatch.setattr(monitor, "_check", slow)
    for _ in range(200):
        clock[0] += 1.0
        monitor.tick()
    assert len(looks) >= 3
    assert all(later - earlier >= 2.0 / alerts.SHARE for earlier, later in itertools.pairwise(looks))
