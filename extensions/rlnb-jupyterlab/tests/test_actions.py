"""An action is an rlnb command, and every page gets the messages about it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from asking import asked, echo, heard, refused
from rlnb_jupyterlab import actions
from rlnb_jupyterlab.messages import ActionMessage
from rlnb_jupyterlab.pages import Pages
from rlnb_jupyterlab.watcher import key_of

import rlnb


async def test_an_action_is_an_rlnb_command_and_reports_its_end(jp_fetch: Any, jp_ws_fetch: Any, root: Path) -> None:
    run = echo(max_iterations=1000, agent={"iteration_s": 0.1})
    while run.state != "running":
        await asyncio.sleep(0.1)
    stream = await jp_ws_fetch("rlnb", "stream")
    await heard(stream, "runs", reset=True)
    body = json.dumps({"action": "cancel", "keys": [key_of(run)]})
    name = (await asked(jp_fetch, "actions", method="POST", body=body))["id"]
    assert (await heard(stream, "action", id=name, state="done"))["output"].startswith(run.id)
    while run.state != "cancelled":
        await asyncio.sleep(0.1)
    shown = await asked(jp_fetch, "runs", key_of(run))
    assert (shown["row"]["reason"], shown["jobs"][0]["error"]) == ("", ""), "a cancellation is a state, not an error"
    assert "reason" not in dict(shown["overview"])
    body = json.dumps({"action": "delete", "keys": [key_of(run)]})
    name = (await asked(jp_fetch, "actions", method="POST", body=body))["id"]
    await heard(stream, "action", id=name, state="done")
    assert (await heard(stream, "runs", gone=[key_of(run)]))["rows"] == []
    assert not run.path.exists()
    stream.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
async def test_an_action_on_a_run_of_another_user_is_refused_with_what_it_would_execute(
    jp_fetch: Any, jp_ws_fetch: Any, root: Path
) -> None:
    run = echo().wait(60)
    os.chown(run.path / "manifest.json", 65_534, 65_534)
    stream = await jp_ws_fetch("rlnb", "stream")
    for action in ("evaluate", "resume"):
        body = json.dumps({"action": action, "keys": [key_of(run)], "options": {"max_iterations": 9}})
        name = (await asked(jp_fetch, "actions", method="POST", body=body))["id"]
        output = " ".join((await heard(stream, "action", id=name, state="failed"))["output"].split())
        assert (
            "belongs to the user 65534, and its records decide what is executed: task: Echo launcher: local(" in output
        )
    assert len(run.jobs) == 1
    stream.close()


async def test_many_runs_are_deleted_by_one_command(jp_fetch: Any, jp_ws_fetch: Any, made: Any, root: Path) -> None:
    made(30)
    stream = await jp_ws_fetch("rlnb", "stream")
    keys = [key_of(rlnb.Run(path)) for path in sorted((root / "runs").iterdir())]
    answer = await asked(jp_fetch, "actions", method="POST", body=json.dumps({"action": "delete", "keys": keys}))
    assert len(answer["ids"]) == 1
    message = await heard(stream, "action", id=answer["id"], state="done")
    assert (message["keys"], message["left"]) == (keys, [])
    assert list((root / "runs").iterdir()) == []
    stream.close()


async def test_overlapping_deletions_delete_the_named_runs_only(
    jp_fetch: Any, jp_ws_fetch: Any, made: Any, root: Path
) -> None:
    made(6)
    stream = await jp_ws_fetch("rlnb", "stream")
    paths = sorted((root / "runs").iterdir())
    keys = [key_of(rlnb.Run(path)) for path in paths]
    for chosen in (keys[:4], keys[2:5], keys[:2]):
        body = json.dumps({"action": "delete", "keys": chosen})
        answer = await asked(jp_fetch, "actions", method="POST", body=body)
    message = await heard(stream, "action", id=answer["id"], state="done")
    assert message["left"] == []
    assert list((root / "runs").iterdir()) == [paths[5]], "a deletion without existing runs must not delete all"
    stream.close()


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{}",
        '{"action": "cancel", "keys": []}',
        '{"action": "format", "keys": ["KEY"]}',
        '{"action": "evaluate", "keys": ["KEY"], "options": {"checkpoint": "../../x"}}',
        '{"action": "evaluate", "keys": ["KEY"], "options": {"episodes": "--all"}}',
        '{"action": "evaluate", "keys": ["KEY"], "options": {"episodes": Infinity}}',
    ],
)
async def test_a_malformed_request_is_refused(jp_fetch: Any, root: Path, body: str) -> None:
    run = echo().wait(60)
    code, refusal = await refused(jp_fetch, "actions", method="POST", body=body.replace("KEY", key_of(run)))
    assert code == 400
    assert refusal["message"]


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
    message = await heard(later, "action", id=name)
    assert (message["state"], message["again"]) == ("done", True), "a page that connects later gets the message"
    later.close()


async def test_an_active_run_is_not_deleted_and_the_message_says_so(
    jp_fetch: Any, jp_ws_fetch: Any, root: Path
) -> None:
    ended = echo().wait(60)
    run = echo(max_iterations=1000, agent={"iteration_s": 0.1})
    stream = await jp_ws_fetch("rlnb", "stream")
    body = json.dumps({"action": "delete", "keys": [key_of(run), "0" * 20, key_of(ended)]})
    name = (await asked(jp_fetch, "actions", method="POST", body=body))["id"]
    message = await heard(stream, "action", id=name, state="failed")
    assert "Runs that have not ended stay as they are: 1." in message["output"]
    assert message["left"] == [key_of(run)]
    assert run.path.exists()
    assert not ended.path.exists()
    stream.close()


def test_a_command_has_the_options_of_its_action_only(root: Path) -> None:
    run = echo().wait(60)
    name = run.checkpoints[-1].name
    options = actions.Options.of({"checkpoint": name, "episodes": "5", "max_iterations": 9, "strange": "--yes"})
    path = str(run.path)
    checkpoint = f"--checkpoint={run.checkpoints[-1]}"
    assert actions.command("evaluate", [run], options) == ["evaluate", checkpoint, "--episodes=5", path]
    assert actions.command("resume", [run], options) == ["resume", "--detach", checkpoint, "--max-iterations=9", path]
    assert actions.command("export", [run], actions.Options()) == ["export", path]
    assert actions.command("delete", [run, run], options) == ["runs", "prune", "--whole", "--yes", path, path]
    assert actions.command("format", [run], options) is None


def test_the_last_messages_of_ended_actions_are_kept_for_later_pages() -> None:
    commands = actions.Actions(Pages())
    for number in range(actions.ENDED_KEPT + 2):
        commands._tell(ActionMessage(id=str(number), action="export", keys=[], state="done"))
    commands._tell(ActionMessage(id="runs", action="export", keys=[]))
    names = [message.id for message in commands.messages]
    assert len(names) == actions.ENDED_KEPT + 1
    assert names[0] == "2"
    assert names[-1] == "runs"
