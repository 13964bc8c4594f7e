"""A strange run does not hide the others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from asking import asked, heard, write_whole
from rlnb_jupyterlab import watcher
from rlnb_jupyterlab.pages import Pages
from rlnb_jupyterlab.watcher import Watcher

FIRST = "20260101-000000-echo"

RESULT = "jobs/0-train/result.json"

NO_HORIZON = json.dumps(
    {"hosts": [], "devices": [], "world_size": 1, "num_envs": 4, "horizon": 0, "frames_per_step": 64.0}
)


def damage_manifest(**changed: Any) -> Any:
    def do(run: Path) -> None:
        path = run / "manifest.json"
        write_whole(path, json.dumps({**json.loads(path.read_text()), **changed}))

    return do


def damage_job(name: str, text: str) -> Any:
    def do(run: Path) -> None:
        (run / "jobs" / "0-train" / "result.json").unlink()
        (run / "jobs" / "0-train" / "command.json").write_text("{}")
        (run / "jobs" / "0-train" / name).write_text(text)

    return do


def pipe(name: str) -> Any:
    def do(run: Path) -> None:
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)

    return do


def endless(name: str) -> Any:
    def do(run: Path) -> None:
        (run / name).unlink()
        (run / name).symlink_to("/dev/zero")

    return do


def loop(run: Path) -> None:
    (run.parent / "loop").symlink_to("loop")
    damage_manifest(created="yesterday")(run)


STRANGE = {
    "no time": damage_manifest(created="yesterday"),
    "no list": damage_manifest(tags=None),
    "nested": lambda run: (run / "manifest.json").write_text("[" * 100_000),
    "no handle": damage_job("handle.json", "{}"),
    "no steps": damage_job("started.json", '{"frames_per_step": 0}'),
    "a loop": loop,
    "a pipe": pipe("manifest.json"),
    "no end": endless("manifest.json"),
    "no text": damage_manifest(created=5),
}

ODD = {
    "a pipe for a result": pipe("jobs/0-train/result.json"),
    "a pipe for an event file": pipe("logs/events.out.tfevents.1.odd"),
    "a pipe for a note": pipe("notes/0.json"),
    "a result without end": endless("jobs/0-train/result.json"),
    "values that are text": lambda run: (run / RESULT).write_text('{"outcome": "completed", "values": "x"}'),
    "no iterations": lambda run: (run / "jobs" / "0-train" / "started.json").write_text(NO_HORIZON),
    "a negative process": damage_job("handle.json", json.dumps({"host": os.uname().nodename, "pid": -5})),
    "a field of a newer rlnb": damage_manifest(cluster={"a": 1}),
}


@pytest.mark.parametrize("strange", STRANGE)
async def test_a_strange_run_hides_no_other(jp_ws_fetch: Any, made: Any, root: Path, strange: str) -> None:
    made(3)
    STRANGE[strange](root / "runs" / FIRST)
    stream = await jp_ws_fetch("rlnb", "stream")
    listed = {row["id"] for row in (await heard(stream, "runs", reset=True))["rows"]}
    assert listed >= {"20260101-000001-echo", "20260101-000002-echo"}
    stream.close()


@pytest.mark.parametrize("odd", ODD)
async def test_a_run_with_an_odd_part_is_listed_with_the_others(
    jp_ws_fetch: Any, made: Any, root: Path, odd: str
) -> None:
    made(3)
    ODD[odd](root / "runs" / FIRST)
    stream = await jp_ws_fetch("rlnb", "stream")
    states = {row["id"]: row["state"] for row in (await heard(stream, "runs", reset=True))["rows"]}
    stream.close()
    assert len(states) == 3
    assert list(states.values()).count("completed") >= 2


def test_a_warning_about_an_odd_run_is_logged_once(
    made: Any, root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(run: Any, key: str, **_: Any) -> dict[str, Any]:
        raise ValueError("an unforeseen kind of error")

    made(1)
    monkeypatch.setattr(watcher, "row", fail)
    damage_job("started.json", NO_HORIZON)(root / "runs" / FIRST)  # the run has not ended, so each refresh reads it
    looking = Watcher([root], Pages())
    for _ in range(3):
        looking._look()
    # The watcher of an earlier test may still end its look.
    (message,) = (message for message in caplog.messages if str(root) in message)
    assert "an unforeseen kind of error" in message


@pytest.mark.parametrize(("record", "listed"), [("manifest.json", 1), ("jobs/0-train/result.json", 2)])
async def test_a_damaged_run_hides_no_other(
    jp_fetch: Any, jp_ws_fetch: Any, made: Any, root: Path, record: str, listed: int
) -> None:
    made(2)
    (root / "runs" / "20260101-000000-echo" / record).write_text("{")
    stream = await jp_ws_fetch("rlnb", "stream")
    assert len((await heard(stream, "runs", reset=True))["rows"]) == listed
    stream.close()
    assert (await asked(jp_fetch, "cluster"))["links"] == []
