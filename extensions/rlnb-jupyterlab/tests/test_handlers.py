"""What the server answers, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from asking import HOSTILE, Page, asked, echo, follow, heard, refused
from rlnb_jupyterlab import handlers
from rlnb_jupyterlab.watcher import key_of
from tornado.httpclient import HTTPClientError

import rlnb


async def test_a_run_is_told_with_everything_it_left(jp_fetch: Any, root: Path) -> None:
    run = echo(tags=["first"]).wait(60)
    run.evaluate(4)
    (run.path / "media").mkdir(exist_ok=True)
    (run.path / "media" / "film.mp4").write_bytes(b"film")
    found = await asked(jp_fetch, "runs", key_of(run))
    assert (found["row"]["id"], found["row"]["state"], found["row"]["tags"]) == (run.id, "completed", ["first"])
    assert found["row"]["iteration"] == found["row"]["total"] == 3
    assert len(found["row"]["spark"]) == 3
    assert dict(found["overview"])["task"] == "Echo"
    assert [job["kind"] for job in found["jobs"]] == ["train", "evaluate"]
    assert {"path": "media/film.mp4", "bytes": 4} in found["files"]
    assert not any(file["path"].startswith(("jobs/", "notes/")) for file in found["files"])
    assert found["config"]["max_iterations"] == "3"
    assert found["code"].splitlines()[2:6] == [
        *("run = rlnb.train(", "    'Echo',", "    library='echo',", "    max_iterations=3,")
    ]
    film = await jp_fetch("rlnb", "runs", key_of(run), "files", "media", "film.mp4")
    assert film.body == b"film"
    part = await jp_fetch("rlnb", "runs", key_of(run), "files", "media", "film.mp4", headers={"Range": "bytes=1-2"})
    assert (part.code, part.body, part.headers["Content-Range"]) == (206, b"il", "bytes 1-2/4")
    end = await jp_fetch("rlnb", "runs", key_of(run), "files", "media", "film.mp4", headers={"Range": "bytes=-1"})
    assert end.body == b"m"
    code, _ = await refused(
        jp_fetch, *f"runs/{key_of(run)}/files/media/film.mp4".split("/"), headers={"Range": "bytes=9-"}
    )
    assert code == 416
    assert "sandbox" in film.headers["Content-Security-Policy"]
    assert film.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_log_comes_in_pieces(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    log = run.jobs[0].folder.log()
    log.write_text("one\ntwo\nthree\n")
    found = await asked(jp_fetch, "runs", key_of(run), "logs", "0", log.name, params={"offset": "4"})
    assert (found["text"], found["offset"], found["next"]) == ("two\nthree\n", 4, 14)
    end = await asked(jp_fetch, "runs", key_of(run), "logs", "0", log.name, params={"offset": "-6"})
    assert end["text"] == "three\n"


async def test_a_long_log_is_bounded_and_ends_with_a_line(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    run.jobs[0].folder.log().write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 9999)
    found = await asked(jp_fetch, "runs", key_of(run), "logs", "0", "node0.log")
    assert 200_000 < len(found["text"]) <= 256 * 1024
    assert found["text"].endswith("y\n")


async def test_the_registry_knows_libraries_and_launchers(jp_fetch: Any, root: Path) -> None:
    found = await asked(jp_fetch, "registry", request_timeout=60)
    assert "echo" in [library["name"] for library in found["libraries"]]
    assert "local" in found["launchers"]
    libraries = (await asked(jp_fetch, "libraries", request_timeout=60))["libraries"]
    assert next(library["exports"] for library in libraries if library["name"] == "echo") == []


async def test_a_form_is_checked_and_becomes_code(jp_fetch: Any, root: Path) -> None:
    form = {"task": "Echo", "library": "echo", "max_iterations": 5, "agent": {"iteration_s": 0.5}}
    found = await asked(jp_fetch, "check", method="POST", body=json.dumps(form), request_timeout=60)
    assert found["problems"] == []
    assert found["code"].splitlines()[2:] == [
        *("run = rlnb.train(", "    'Echo',", "    library='echo',", "    max_iterations=5,"),
        *("    agent={'iteration_s': 0.5},", ")", "run.watch()"),
    ]
    wrong = json.dumps({**form, "max_iterations": -1, "library": "ecko"})
    told = (await asked(jp_fetch, "check", method="POST", body=wrong, request_timeout=60))["problems"]
    assert len(told) == 2
    assert "max_iterations=-1" in told[0]["what"]
    assert "echo" in told[1]["what"]


@pytest.mark.parametrize("launcher", ["__import__('os').system('x')", "slurm(walltime=open('x'))", "slurm('a')", "a b"])
async def test_a_launcher_is_never_evaluated(jp_fetch: Any, root: Path, launcher: str) -> None:
    body = json.dumps({"task": "Echo", "launcher": launcher})
    found = await asked(jp_fetch, "check", method="POST", body=body)
    assert "is not a launcher" in found["problems"][0]["what"]
    assert found["code"] == ""


PLUGIN = """
import plotly.graph_objects as go
import rlnb

print("[hello]")


@rlnb.hookimpl
def rlnb_panels(run):
    print("drawing")
    draw = lambda: go.Figure(go.Scatter(y=run.metrics["reward"].values))
    return [rlnb.Panel(title="<b>odd</b>", figure=draw), rlnb.Panel(title="broken", figure=lambda: 1 / 0)]
"""


async def test_plugins_draw_figures_in_a_process_of_their_own(
    jp_fetch: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = echo().wait(60)
    assert (await asked(jp_fetch, "runs", key_of(run), "figures", request_timeout=60))["figures"] == []
    installed = tmp_path / "installed"
    (installed / "drawing-1.0.dist-info").mkdir(parents=True)
    (installed / "drawing.py").write_text(PLUGIN)
    (installed / "drawing-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: drawing\nVersion: 1.0\n"
    )
    (installed / "drawing-1.0.dist-info" / "entry_points.txt").write_text("[rlnb]\ndrawing = drawing\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]))
    found = await asked(jp_fetch, "runs", key_of(run), "figures", request_timeout=60)
    heading, figure, _, broken = found["figures"]
    assert heading["text/html"] == "<h3>&lt;b&gt;odd&lt;/b&gt;</h3>"
    assert len(figure["application/vnd.plotly.v1+json"]["data"]) == 1
    assert figure["image/png"]
    assert "ZeroDivisionError" in broken["text/plain"]


async def test_pages_that_were_opened_are_linked_until_they_end(jp_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    run = echo().wait(60)
    body = json.dumps({"keys": [key_of(run)]})
    opened = await asked(jp_fetch, "tensorboard", method="POST", body=body, request_timeout=60)
    assert await asked(jp_fetch, "tensorboard", method="POST", body=body) == opened, "a second one is not started"
    links = (await asked(jp_fetch, "cluster"))["links"]
    assert links == [{"name": key_of(run), "title": f"TensorBoard of {run.id}", "url": opened["url"]}]
    jp_serverapp.web_app.settings["rlnb_open_pages"].close()
    assert (await asked(jp_fetch, "cluster"))["links"] == []


async def test_a_page_that_was_opened_is_closed(jp_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    pages = jp_serverapp.web_app.settings["rlnb_open_pages"]
    page = Page(4711)
    pages.get("scene a", "a in 3D", lambda: page)
    (link,) = (await asked(jp_fetch, "cluster"))["links"]
    body = json.dumps({"name": link["name"]})
    await asked(jp_fetch, "close", method="POST", body=body)
    assert not page.alive
    assert (await asked(jp_fetch, "cluster"))["links"] == []
    assert (await refused(jp_fetch, "close", method="POST", body=body))[0] == 404


async def test_a_run_without_a_simulator_has_no_3d_view(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    code, told = await refused(jp_fetch, "runs", key_of(run), "scene", method="POST", body="{}")
    assert code == 409
    assert "without a simulator" in told["message"]


async def test_the_dashboard_of_dask_is_linked_while_its_run_goes_on(jp_fetch: Any, root: Path) -> None:
    run = echo(max_iterations=1000, agent={"iteration_s": 0.1})
    (run.jobs[0].folder.path / "submitted.json").write_text('{"queue": "slurm", "jobs": ["17"], "dashboard": 8787}')
    key = key_of(run)
    assert ["queue's job", "17"] in (await asked(jp_fetch, "runs", key))["overview"]
    assert (await asked(jp_fetch, "cluster"))["links"] == [{"title": f"Dask for {run.id}", "url": "proxy/8787/status"}]
    run.cancel()
    with pytest.raises(rlnb.RunError):
        run.wait(60)
    assert (await asked(jp_fetch, "cluster"))["links"] == []


async def test_an_action_is_an_rlnb_command_whose_end_is_told(jp_fetch: Any, jp_ws_fetch: Any, root: Path) -> None:
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
    found = await asked(jp_fetch, "runs", key_of(run))
    assert (found["row"]["error"], found["jobs"][0]["error"]) == ("", ""), "that it was cancelled is said as its state"
    assert "error" not in dict(found["overview"])
    body = json.dumps({"action": "delete", "keys": [key_of(run)]})
    name = (await asked(jp_fetch, "actions", method="POST", body=body))["id"]
    await heard(stream, "action", id=name, state="done")
    assert (await heard(stream, "runs", gone=[key_of(run)]))["rows"] == []
    assert not run.path.exists()
    stream.close()


async def test_many_runs_are_deleted_by_one_command(jp_fetch: Any, jp_ws_fetch: Any, made: Any, root: Path) -> None:
    made(30)
    stream = await jp_ws_fetch("rlnb", "stream")
    keys = [key_of(rlnb.Run(path)) for path in sorted((root / "runs").iterdir())]
    told = await asked(jp_fetch, "actions", method="POST", body=json.dumps({"action": "delete", "keys": keys}))
    assert len(told["ids"]) == 1
    said = await heard(stream, "action", id=told["id"], state="done")
    assert (said["keys"], said["left"]) == (keys, [])
    assert list((root / "runs").iterdir()) == []
    stream.close()


async def test_what_is_deleted_twice_is_gone_and_nothing_else(
    jp_fetch: Any, jp_ws_fetch: Any, made: Any, root: Path
) -> None:
    made(6)
    stream = await jp_ws_fetch("rlnb", "stream")
    paths = sorted((root / "runs").iterdir())
    keys = [key_of(rlnb.Run(path)) for path in paths]
    for chosen in (keys[:4], keys[2:5], keys[:2]):
        body = json.dumps({"action": "delete", "keys": chosen})
        told = await asked(jp_fetch, "actions", method="POST", body=body)
    said = await heard(stream, "action", id=told["id"], state="done")
    assert said["left"] == []
    assert list((root / "runs").iterdir()) == [paths[5]], "an order about nothing is none about everything"
    stream.close()


async def test_rows_curves_and_logs_are_told_as_they_come(jp_ws_fetch: Any, root: Path) -> None:
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
        log.write("a word of its own\n")
    while "a word of its own" not in (await heard(stream, "log"))["text"]:
        pass
    stream.close()


async def test_nothing_is_read_while_nobody_looks(jp_ws_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    watcher = jp_serverapp.web_app.settings["rlnb_watcher"]
    assert watcher._thread is None
    stream = await jp_ws_fetch("rlnb", "stream")
    await heard(stream, "runs", reset=True)
    stream.close()
    deadline = time.monotonic() + 20
    while watcher._thread is not None:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def test_the_list_is_read_before_the_first_page(made: Any, jp_configurable_serverapp: Any) -> None:
    made(3)
    watcher = jp_configurable_serverapp().web_app.settings["rlnb_watcher"]
    deadline = time.monotonic() + 20
    while len(watcher._rows) < 3:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    assert watcher._thread is None


@pytest.mark.slow
async def test_ten_thousand_runs_are_listed(jp_ws_fetch: Any, made: Any) -> None:
    made(10_000)
    begun = time.monotonic()
    stream = await jp_ws_fetch("rlnb", "stream", max_message_size=64 << 20)
    first = await heard(stream, "runs", reset=True)
    assert time.monotonic() - begun < 5, "the newest come at once"
    assert first["rows"][0]["id"] == "20260101-009999-echo"
    keys = {row["key"] for row in first["rows"]}
    while len(keys) < 10_000:
        keys |= {row["key"] for row in (await heard(stream, "runs"))["rows"]}
    assert time.monotonic() - begun < 60
    stream.close()


# -- what is refused


@pytest.mark.parametrize("route", [route for route, _ in handlers.ROUTES])
async def test_strangers_are_refused(jp_fetch: Any, route: str, root: Path) -> None:
    path = re.sub(r"\(\?P<key>[^)]*\)", "0" * 20, route)
    path = re.sub(r"\(\?P<job>[^)]*\)", "0", re.sub(r"\(\?P<(name|path)>[^)]*\)", "a", path))
    for method in ("GET", "POST"):
        with pytest.raises(HTTPClientError) as told:
            await jp_fetch(
                *path.strip("/").split("/"),
                method=method,
                headers={"Authorization": ""},
                allow_nonstandard_methods=True,
                follow_redirects=False,
            )
        assert told.value.code in (302, 403, 405), (method, path)


async def logged_in(jp_fetch: Any, jp_serverapp: Any) -> str:
    """Return the cookie that a browser which has logged in sends by itself, whatever page asks for it."""
    token = jp_serverapp.identity_provider.token
    answer = await jp_fetch("rlnb", "cluster", params={"token": token}, headers={"Authorization": ""})
    (found,) = [word for word in answer.headers.get_list("Set-Cookie") if word.startswith("username-")]
    return found.split(";")[0]


async def test_a_browser_that_has_logged_in_may_read(jp_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    cookie = await logged_in(jp_fetch, jp_serverapp)
    headers = {"Authorization": "", "Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
    assert (await jp_fetch("rlnb", "cluster", headers=headers)).code == 200


async def test_a_write_from_another_site_is_refused(jp_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    """A browser sends the cookie by itself; what another site cannot send is the word against forgery."""
    cookie = await logged_in(jp_fetch, jp_serverapp)
    run = echo().wait(60)
    body = json.dumps({"action": "delete", "keys": [key_of(run)]})
    jp_serverapp.web_app.settings["rlnb_open_pages"].get("page", "a page", lambda: Page(4711))
    for headers in ({}, {"Origin": "http://evil.example"}):
        with pytest.raises(HTTPClientError) as told:
            await jp_fetch(
                "rlnb", "actions", method="POST", body=body, headers={"Authorization": "", "Cookie": cookie, **headers}
            )
        assert told.value.code in (403, 404), "Jupyter says of pages of other sites that there is nothing"
        with pytest.raises(HTTPClientError) as told:
            await jp_fetch(
                *("rlnb", "close"),
                method="POST",
                body='{"name": "page"}',
                headers={"Authorization": "", "Cookie": cookie, **headers},
            )
        assert told.value.code in (403, 404)
    assert run.path.exists()
    assert len(jp_serverapp.web_app.settings["rlnb_open_pages"].links()) == 1


async def test_a_stream_for_another_site_is_refused(
    jp_fetch: Any, jp_ws_fetch: Any, jp_serverapp: Any, root: Path
) -> None:
    host = f"127.0.0.1:{jp_serverapp.port}"  # cookies are a host's
    headers = {"Authorization": "", "Cookie": await logged_in(jp_fetch, jp_serverapp), "Host": host}
    own = await jp_ws_fetch("rlnb", "stream", headers=headers)
    own.close()
    with pytest.raises(HTTPClientError) as told:
        await jp_ws_fetch("rlnb", "stream", headers={**headers, "Origin": "http://evil.example"})
    assert told.value.code == 403


@pytest.mark.parametrize(
    "path",
    [
        "../../../../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "/etc/passwd",
        "media/../manifest.json",
        "manifest.json/..",
    ],
)
async def test_a_path_that_leads_out_is_refused(jp_fetch: Any, root: Path, path: str) -> None:
    run = echo().wait(60)
    (run.path / "media").mkdir(exist_ok=True)
    code, _ = await refused(jp_fetch, "runs", key_of(run), "files", path)
    assert code in (400, 403, 404)


async def test_links_that_lead_out_are_neither_shown_nor_served(jp_fetch: Any, root: Path, tmp_path: Path) -> None:
    run = echo().wait(60)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (run.path / "media").mkdir(exist_ok=True)
    (run.path / "media" / "link.txt").symlink_to(secret)
    (run.path / "folder").symlink_to(tmp_path)
    found = await asked(jp_fetch, "runs", key_of(run))
    assert not any("link.txt" in file["path"] or "secret" in file["path"] for file in found["files"])
    for path in (("media", "link.txt"), ("folder", "secret.txt")):
        assert (await refused(jp_fetch, "runs", key_of(run), "files", *path))[0] == 404


async def test_a_run_that_is_a_link_to_elsewhere_is_not_shown(
    jp_fetch: Any, jp_ws_fetch: Any, root: Path, tmp_path: Path
) -> None:
    run = echo().wait(60)
    elsewhere = tmp_path / "elsewhere"
    os.rename(run.path, elsewhere)
    run.path.symlink_to(elsewhere)
    stream = await jp_ws_fetch("rlnb", "stream")
    assert (await heard(stream, "runs", reset=True))["rows"] == []
    stream.close()
    assert (await refused(jp_fetch, "runs", key_of(run)))[0] == 404


@pytest.mark.parametrize("name", ["jobs/0-train/command.json", "jobs/0-train/node0.log", ".hidden"])
async def test_records_are_not_files_of_a_run(jp_fetch: Any, root: Path, name: str) -> None:
    run = echo().wait(60)
    (run.path / ".hidden").write_text("x")
    code, _ = await refused(jp_fetch, "runs", key_of(run), "files", *name.split("/"))
    assert code == 404


async def test_an_unknown_run_is_told_with_the_fix(jp_fetch: Any, root: Path) -> None:
    code, told = await refused(jp_fetch, "runs", "0" * 20)
    assert code == 404
    assert told == {"message": "There is no such run any more.", "fix": "Refresh the list."}


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
    ],
)
async def test_what_is_malformed_is_refused(jp_fetch: Any, root: Path, body: str) -> None:
    run = echo().wait(60)
    code, told = await refused(jp_fetch, "actions", method="POST", body=body.replace("KEY", key_of(run)))
    assert code == 400
    assert told["message"]


async def test_hostile_names_are_data(jp_fetch: Any, jp_ws_fetch: Any, made: Any) -> None:
    made(1, task=HOSTILE, tags=(HOSTILE,))
    stream = await jp_ws_fetch("rlnb", "stream")
    (row,) = (await heard(stream, "runs", reset=True))["rows"]
    stream.close()
    assert row["task"] == HOSTILE
    answer = await jp_fetch("rlnb", "runs", row["key"])
    assert answer.headers["Content-Type"].startswith("application/json")
    assert json.loads(answer.body)["row"]["tags"] == [HOSTILE]


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
