"""Tests of rlnb.run.alerts, with the runs of the echo library."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import rlnb
from rlnb.records.alerts import Alert, write
from rlnb.run import alerts


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "POLL_S", 0.05)


def test_an_alert_of_the_node_and_one_of_a_function_are_printed_once(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=3).wait(60)
    write(run.jobs[0].folder, Alert(rule="ended", what="completed", time="2026-01-01T00:00:00+00:00"))

    def rewarded(run: rlnb.Run) -> str | None:
        return f"reward is {run.metrics['reward'].last:.0f}" if "reward" in run.metrics.names else None

    thread = alerts.follow(run, [rewarded])
    assert thread is not None
    thread.join(10)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Alert of {run.id}: completed"
    assert lines[1].startswith(f"Alert of {run.id}: reward is ")
    assert len(lines) == 2
    assert [(alert.rule, alert.iteration) for alert in run.alerts] == [("ended", None), ("rewarded", 2)]


def test_a_function_that_fails_is_not_called_again(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=200)
    calls: list[float] = []

    def broken(run: rlnb.Run) -> str:
        calls.append(time.monotonic())
        raise ValueError("no such metric")

    with caplog.at_level(logging.WARNING):
        thread = alerts.follow(run, [broken])
        run.wait(60)
        assert thread is not None
        thread.join(10)
    assert len(calls) == 1
    assert "The alert broken is not checked any more. ValueError: no such metric" in caplog.text


@pytest.mark.parametrize(("finding", "what"), [(True, "always"), ("too low", "too low")])
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
    none: list[Callable[[rlnb.Run], str | bool | None]] = []
    assert alerts.follow(run, none) is None
