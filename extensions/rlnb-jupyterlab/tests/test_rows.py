"""A row has bounded values of the right types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from asking import HOSTILE, echo, heard, write_whole
from rlnb_jupyterlab.detail import detail
from rlnb_jupyterlab.rows import MOST_TEXT, number, row, text

import rlnb
from rlnb.plugin import Result
from rlnb.records.incidents import MOST_TEXT as MOST_REASON
from rlnb.records.incidents import Alert, WaitsWriter, write_alert
from rlnb.spec import Command, Job
from rlnb.storage import files

FIRST = "20260101-000000-echo"


async def test_a_row_has_only_values_that_a_page_accepts(jp_ws_fetch: Any, made: Any, root: Path) -> None:
    made(1)
    run = root / "runs" / FIRST
    damage_manifest(library="l" * 10_000, launcher="a" * 10_000, tags=["x" * 10_000] * 100)(run)
    (run / "jobs" / "0-train" / "result.json").write_text(json.dumps({"outcome": "failed", "error": "e" * 10**6}))
    stream = await jp_ws_fetch("rlnb", "stream")
    (row,) = (await heard(stream, "runs", reset=True))["rows"]
    stream.close()
    assert all(isinstance(row[name], str) for name in ("task", "library", "launcher", "device", "created", "reason"))
    assert len(json.dumps(row)) < 100_000


async def test_hostile_names_are_data(jp_fetch: Any, jp_ws_fetch: Any, made: Any) -> None:
    made(1, task=HOSTILE, tags=(HOSTILE,))
    stream = await jp_ws_fetch("rlnb", "stream")
    (row,) = (await heard(stream, "runs", reset=True))["rows"]
    stream.close()
    assert row["task"] == HOSTILE
    answer = await jp_fetch("rlnb", "runs", row["key"])
    assert answer.headers["Content-Type"].startswith("application/json")
    assert json.loads(answer.body)["row"]["tags"] == [HOSTILE]


def damage_manifest(**changed: Any) -> Any:
    def do(run: Path) -> None:
        path = run / "manifest.json"
        write_whole(path, json.dumps({**json.loads(path.read_text()), **changed}))

    return do


def test_a_row_without_metrics_gets_them_from_an_earlier_row(made: Any, root: Path) -> None:
    run = echo(tags=["first"]).wait(60)
    whole = row(run, "key")
    quick = row(run, "key", metrics=False)
    assert (quick.iteration, quick.reward, quick.spark) == (0, None, [])
    assert quick.with_metrics_of(whole) == whole
    assert len(whole.spark) == whole.iteration == whole.total == 3


def test_a_number_that_json_does_not_have_is_null() -> None:
    assert number(float("nan")) is None
    assert number(float("inf")) is None
    assert number(0.123456) == 0.1235


def test_a_character_that_utf_8_cannot_encode_is_replaced() -> None:
    assert text("\ud800" + "x" * 9999) == "?" + "x" * (MOST_TEXT - 1)


def test_a_row_has_the_newest_alerts_of_a_run_that_has_rules(made: Any, root: Path) -> None:
    run = echo(alerts="reward < -1e9").wait(60)
    assert row(run, "key").alerts == []
    for second in range(9):
        time = f"2026-01-01T00:00:0{second}+00:00"
        write_alert(run.jobs[0].folder, Alert(rule=f"rule {second}", what=f"<b>{second}</b>" + "x" * 9999, time=time))
    alerts = row(run, "key").alerts
    assert [alert.time[18] for alert in alerts] == ["4", "5", "6", "7", "8"]
    assert all(len(alert.what) == MOST_TEXT for alert in alerts)


def test_a_run_that_waits_says_why_and_since_when(made: Any, root: Path) -> None:
    run = echo().wait(60)
    assert (row(run, "key").reason, row(run, "key").since) == ("", "")
    records = {"job.json": Job(kind="train"), "command.json": Command(argv=("x",))}
    job = run.record.folder.next_job("train", lambda _: records)
    job.host_alive.touch()
    WaitsWriter(job).write("PENDING (<b>) " + "x" * 9999)
    new = row(run, "key", metrics=False)
    assert (new.state, new.reason[:14], len(new.reason)) == ("queued", "PENDING (<b>) ", MOST_REASON)
    assert new.since.startswith("20")
    assert ("reason", new.reason) in detail(run, "key").overview
    files.write_once(job.result, Result(outcome="failed", error="no such partition"))
    ended = row(rlnb.Run(run.path), "key")
    assert (ended.reason, ended.since) == ("no such partition", "")


def test_the_overview_has_the_restarts_with_their_causes(made: Any, root: Path) -> None:
    run = echo().wait(60)
    cause = Result(outcome="failed", error="node 1 (<gpu07>) is lost", values={"interrupted": True})
    files.replace_json(run.jobs[0].folder.result, cause)
    again = Job(kind="train", after="0-train", restart=1, max_restarts=3)
    run.record.folder.next_job("train", lambda _: {"job.json": again, "command.json": Command(argv=("x",))})
    run.record.folder.jobs()[0].successor.write_text('{"job": "1-train"}')
    assert ("restart 1 of 3", "node 1 (<gpu07>) is lost") in detail(rlnb.Run(run.path), "key").overview
