"""What one run, one plugin or one action does to itself takes nothing from the others."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from asking import asked, echo, follow, heard, refused
from jupyter_server.auth.authorizer import AllowAllAuthorizer
from rlnb_jupyterlab import actions, queues, subprocesses, watcher
from rlnb_jupyterlab.choices import Choices
from rlnb_jupyterlab.pages import Pages
from rlnb_jupyterlab.watcher import Watcher, key_of
from tornado.httpclient import HTTPClientError

import rlnb

FIRST = "20260101-000000-echo"
RESULT = "jobs/0-train/result.json"
NO_HORIZON = json.dumps(
    {"hosts": [], "devices": [], "world_size": 1, "num_envs": 4, "horizon": 0, "frames_per_step": 64.0}
)


def damage_manifest(**changed: Any) -> Any:
    def do(run: Path) -> None:
        path = run / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))

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
    told = {row["id"] for row in (await heard(stream, "runs", reset=True))["rows"]}
    assert told >= {"20260101-000001-echo", "20260101-000002-echo"}
    stream.close()


@pytest.mark.parametrize("odd", ODD)
async def test_a_run_of_which_a_part_is_odd_is_listed_with_the_others(
    jp_ws_fetch: Any, made: Any, root: Path, odd: str
) -> None:
    made(3)
    ODD[odd](root / "runs" / FIRST)
    stream = await jp_ws_fetch("rlnb", "stream")
    told = {row["id"]: row["state"] for row in (await heard(stream, "runs", reset=True))["rows"]}
    stream.close()
    assert len(told) == 3
    assert list(told.values()).count("completed") >= 2


def test_what_is_odd_about_a_run_is_logged_once(
    made: Any, root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(run: Any, key: str, **_: Any) -> dict[str, Any]:
        raise ValueError("of a kind that nobody thought of")

    made(1)
    monkeypatch.setattr(watcher, "row", fail)
    damage_job("started.json", NO_HORIZON)(root / "runs" / FIRST)  # it goes on, so that each look goes to it
    looking = Watcher([root], Pages())
    for _ in range(3):
        looking._look()
    assert len(caplog.messages) == 1
    assert "of a kind that nobody thought of" in caplog.text


async def test_values_of_a_row_are_what_a_page_takes(jp_ws_fetch: Any, made: Any, root: Path) -> None:
    made(1)
    run = root / "runs" / FIRST
    damage_manifest(library="l" * 10_000, launcher="a" * 10_000, tags=["x" * 10_000] * 100)(run)
    (run / "jobs" / "0-train" / "result.json").write_text(json.dumps({"outcome": "failed", "error": "e" * 10**6}))
    stream = await jp_ws_fetch("rlnb", "stream")
    (row,) = (await heard(stream, "runs", reset=True))["rows"]
    stream.close()
    assert all(isinstance(row[name], str) for name in ("task", "library", "launcher", "device", "created", "error"))
    assert len(json.dumps(row)) < 100_000


async def test_a_pipe_keeps_nobody_waiting_and_a_log_that_leads_out_is_not_told(
    jp_fetch: Any, root: Path, tmp_path: Path
) -> None:
    run = echo().wait(60)
    (run.path / "media").mkdir(exist_ok=True)
    os.mkfifo(run.path / "media" / "a.png")
    assert stat.S_ISFIFO((run.path / "media" / "a.png").stat().st_mode)
    (tmp_path / "secret.txt").write_text("secret")
    log = run.jobs[0].folder.log()
    log.unlink()
    log.symlink_to(tmp_path / "secret.txt")
    found = await asked(jp_fetch, "runs", key_of(run))
    assert not any(file["path"] == "media/a.png" for file in found["files"])
    assert (await refused(jp_fetch, "runs", key_of(run), "files", "media", "a.png"))[0] == 404
    assert (await refused(jp_fetch, "runs", key_of(run), "logs", "0", log.name))[0] == 404


async def test_a_run_that_becomes_a_link_is_let_go_of(
    jp_ws_fetch: Any, jp_fetch: Any, root: Path, tmp_path: Path
) -> None:
    run = echo(max_iterations=1000, agent={"iteration_s": 0.1})
    stream = await jp_ws_fetch("rlnb", "stream")
    assert len((await heard(stream, "runs", reset=True))["rows"]) == 1
    os.rename(run.path, tmp_path / "elsewhere")
    run.path.symlink_to(tmp_path / "elsewhere")
    assert (await refused(jp_fetch, "runs", key_of(run)))[0] == 404
    await heard(stream, "runs", gone=[key_of(run)])
    stream.close()
    run.cancel()


async def test_what_a_question_finds_is_told_to_every_page(
    jp_ws_fetch: Any, jp_fetch: Any, made: Any, root: Path
) -> None:
    made(2)
    stream = await jp_ws_fetch("rlnb", "stream")
    (gone, _) = (await heard(stream, "runs", reset=True))["rows"]
    os.rename(root / "runs" / gone["id"], root / "elsewhere")
    await refused(jp_fetch, "runs", "0" * 20)
    await heard(stream, "runs", gone=[gone["key"]])
    stream.close()


async def test_two_logs_are_followed_at_once(jp_ws_fetch: Any, root: Path) -> None:
    run = echo(max_iterations=1000, agent={"iteration_s": 0.1})
    second = run.jobs[0].folder.log(1)
    second.write_text("of the second node\n")
    stream = await jp_ws_fetch("rlnb", "stream")
    await heard(stream, "runs", reset=True)
    await stream.write_message(follow(run, "node0.log", "node1.log"))
    told: dict[str, str] = {}
    while len(told) < 2:
        message = await heard(stream, "log")
        told.setdefault(message["name"], message["text"])
    assert told["node1.log"] == "of the second node\n"
    assert "iteration" in told["node0.log"]
    stream.close()


class Denying(AllowAllAuthorizer):
    """Lets nobody have anything of ours."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        """Return whether it may be."""
        return resource != "rlnb"


async def test_a_stream_is_for_those_who_may(jp_ws_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    jp_serverapp.web_app.settings["authorizer"] = Denying(parent=jp_serverapp)
    with pytest.raises(HTTPClientError) as told:
        await jp_ws_fetch("rlnb", "stream")
    assert told.value.code == 403


async def test_a_cancellation_does_not_wait_for_evaluations(
    jp_fetch: Any, jp_ws_fetch: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "AT_ONCE", 0)
    run = echo(max_iterations=1000, agent={"iteration_s": 0.1})
    stream = await jp_ws_fetch("rlnb", "stream")
    for action in ("evaluate", "cancel"):
        body = json.dumps({"action": action, "keys": [key_of(run)]})
        name = (await asked(jp_fetch, "actions", method="POST", body=body))["id"]
    await heard(stream, "action", id=name, state="done")
    stream.close()
    later = await jp_ws_fetch("rlnb", "stream")
    said = await heard(later, "action", id=name)
    assert (said["state"], said["again"]) == ("done", True), "a page whose connection was cut hears of it"
    later.close()


async def test_a_run_that_something_still_goes_on_with_is_not_deleted_and_that_is_said(
    jp_fetch: Any, jp_ws_fetch: Any, root: Path
) -> None:
    ended = echo().wait(60)
    run = echo(max_iterations=1000, agent={"iteration_s": 0.1})
    stream = await jp_ws_fetch("rlnb", "stream")
    body = json.dumps({"action": "delete", "keys": [key_of(run), "0" * 20, key_of(ended)]})
    name = (await asked(jp_fetch, "actions", method="POST", body=body))["id"]
    said = await heard(stream, "action", id=name, state="failed")
    assert "left alone" in said["output"]
    assert said["left"] == [key_of(run)]
    assert run.path.exists()
    assert not ended.path.exists()
    stream.close()


async def test_only_the_end_of_what_a_process_prints_is_held(root: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", "yes | head -c 3000000; echo end", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    status, printed = await subprocesses.end_of(process, b"unread" * 100_000, most=100)
    assert (status, len(printed)) == (0, 100)
    assert printed.endswith("end\n")


async def test_a_queue_that_does_not_answer_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "WITHIN_S", 0.3)
    table = await queues._table("slurm", rlnb.QueueTable(title="jobs", argv=("sleep", "4711")))
    assert table.error == "sleep does not answer: not within 0 s"
    assert "sleep 4711" not in await _printed("ps", "-eo", "args")


async def test_slurm_without_a_cluster_says_so_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("squeue", "sinfo"):
        command = tmp_path / name
        command.write_text(f"#!/bin/sh\necho {name}: error: no controller >&2\nexit 1\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (table,) = await queues.queues((await Choices(root).installed()).launchers)
    assert table.error == "squeue is installed, but no cluster answers."
    assert table.detail == "squeue: error: no controller"


async def test_where_runs_are_looked_for_is_told(jp_ws_fetch: Any, root: Path) -> None:
    stream = await jp_ws_fetch("rlnb", "stream")
    assert (await heard(stream, "places"))["places"] == [{"path": str(root), "trouble": ""}]
    root.rmdir()
    root.write_text("no folder")
    assert (await heard(stream, "places"))["places"] == [{"path": str(root), "trouble": "Not a directory"}]
    stream.close()
    root.unlink()


async def _printed(*argv: str) -> str:
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()
