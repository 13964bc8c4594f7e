"""Tests of rlnb.jobs.alerts, with the runs of the echo library."""

from __future__ import annotations

import contextlib
import logging
import time
from pathlib import Path

import pytest

import rlnb
from rlnb.jobs import alerts
from rlnb.metrics import metrics


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "POLL_S", 0.05)


def test_the_alert_of_a_function_is_printed_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metrics, "FRESH_S", 1e9)  # a reader that is behind when the training ends

    def rewarded(run: rlnb.Run) -> str | None:
        assert isinstance(run, rlnb.Run), "a rule may call the verbs of a run"
        return f"reward is {run.metrics['reward'].last:.0f}" if "reward" in run.metrics.names else None

    run = rlnb.train("Echo", library="echo", max_iterations=3, alerts=rewarded).wait(60)
    alerts._threads[run.path].join(10)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Alert of")]
    assert len(lines) == 1
    assert lines[0].startswith(f"Alert of {run.id}: reward is ")
    assert [alert.rule for alert in run.alerts] == ["function rewarded"]
    assert run.jobs[0].folder.flight_request.read_text().startswith("reward is ")


def test_an_alert_is_printed_once_while_the_training_goes_on(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=40, agent={"iteration_s": 0.02}, alerts=lambda run: True)
    run.wait(60)
    alerts._threads[run.path].join(10)
    assert capsys.readouterr().out.count("Alert of") == 1


def test_what_the_agent_says_after_the_end_is_printed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=3, agent={"crash_at": 1}, alerts=["ended", "failed"])
    with contextlib.suppress(rlnb.RunError):
        run.wait(60)
    deadline, text = time.monotonic() + 40, ""
    while text.count("Alert of") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
        text += capsys.readouterr().out
    assert text.count(f"Alert of {run.id}: failed") == 2


def test_a_resumed_run_is_followed_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=400, agent={"iteration_s": 0.02}, alerts="ended")
    deadline = time.monotonic() + 30
    while not run.checkpoints:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run.cancel()
    with contextlib.suppress(rlnb.RunError):
        run.wait(60)
    run.resume(max_iterations=run.progress[0] + 3).wait(60)
    text = ""
    while f"Alert of {run.id}: completed" not in text:
        assert time.monotonic() < deadline + 60
        time.sleep(0.05)
        text += capsys.readouterr().out


def test_a_function_that_fails_is_not_called_again(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[float] = []

    def broken(run: rlnb.Run) -> str:
        calls.append(time.monotonic())
        raise ValueError("no such metric")

    with caplog.at_level(logging.WARNING):
        run = rlnb.train("Echo", library="echo", max_iterations=200, alerts=broken).wait(60)
        alerts._threads[run.path].join(10)
    assert len(calls) == 1
    assert "The alert function broken is not checked any more. ValueError: no such metric" in caplog.text


@pytest.mark.parametrize(("finding", "what"), [(True, "function always"), ("too low", "too low")])
def test_a_function_is_called_until_it_alerts(root: Path, finding: bool | str, what: str) -> None:
    findings: list[bool | str | None] = [None, False, finding]

    def always(run: rlnb.Run) -> bool | str | None:
        return findings.pop(0)

    run = rlnb.train("Echo", library="echo", max_iterations=400, alerts=always)
    deadline = time.monotonic() + 30
    while not run.alerts:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run.cancel().wait(30)
    assert [alert.what for alert in run.alerts] == [what]
    assert findings == []


def test_a_run_without_rules_has_no_thread(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    assert alerts.follow(run, {}) is None
