"""The watcher drops curves that no page shows, and refreshes less often where refreshes are slow."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from asking import echo, heard, refused
from rlnb_jupyterlab import watcher
from rlnb_jupyterlab.pages import Page, Pages
from rlnb_jupyterlab.watcher import Watcher, key_of


def test_curves_of_an_ended_run_are_dropped(root: Path) -> None:
    run = echo().wait(60)
    pages, messages = Pages(), []
    page = Page(send=lambda text: messages.append(json.loads(text)), watched={key_of(run): {}})
    watching = Watcher([root], pages)
    watching._call = lambda send, text: send(text)
    pages.join(page)
    watching._tell()
    assert any(message["type"] == "curves" for message in messages)
    read = watching._runs[key_of(run)]
    watching._tell()
    assert watching._runs[key_of(run)] is read, "the page still watches the run"
    page.watched = {}
    watching._tell()
    assert watching._runs[key_of(run)] is not read


@pytest.mark.parametrize(("slow", "soon"), [("waits", True), ("once", True), ("always", False)])
def test_refreshes_become_less_frequent_only_if_they_keep_a_core_busy(
    root: Path, monkeypatch: pytest.MonkeyPatch, slow: str, soon: bool
) -> None:
    monkeypatch.setattr(watcher, "LOOK_S", 0.1)
    pages, looks = Pages(), []

    class Slow(Watcher):
        def _tell(self) -> None:
            looks.append(time.monotonic())
            super()._tell()
            if slow == "waits":
                time.sleep(0.3)
            elif slow == "always" or len(looks) == 3:
                busy_until = time.thread_time() + 0.3
                while time.thread_time() < busy_until:
                    pass

    watching = Slow([root], pages)
    pages.join(Page(send=lambda _: None))
    watching.start(lambda send, text: send(text))
    time.sleep(6.0)
    watching.stop()
    assert (len(looks) > 5) is soon, looks


async def test_nothing_is_read_while_no_page_is_connected(jp_ws_fetch: Any, jp_serverapp: Any, root: Path) -> None:
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
    assert time.monotonic() - begun < 5, "the newest runs come at once"
    assert first["rows"][0]["id"] == "20260101-009999-echo"
    keys = {row["key"] for row in first["rows"]}
    while len(keys) < 10_000:
        keys |= {row["key"] for row in (await heard(stream, "runs"))["rows"]}
    assert time.monotonic() - begun < 60
    stream.close()


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


async def test_a_run_that_becomes_a_link_is_removed_from_the_list(
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


async def test_a_change_that_a_request_finds_is_sent_to_every_page(
    jp_ws_fetch: Any, jp_fetch: Any, made: Any, root: Path
) -> None:
    made(2)
    stream = await jp_ws_fetch("rlnb", "stream")
    (gone, _) = (await heard(stream, "runs", reset=True))["rows"]
    os.rename(root / "runs" / gone["id"], root / "elsewhere")
    await refused(jp_fetch, "runs", "0" * 20)
    await heard(stream, "runs", gone=[gone["key"]])
    stream.close()


async def test_the_folders_with_runs_are_sent_to_the_page(jp_ws_fetch: Any, root: Path) -> None:
    stream = await jp_ws_fetch("rlnb", "stream")
    assert (await heard(stream, "places"))["places"] == [{"path": str(root), "trouble": ""}]
    root.rmdir()
    root.write_text("no folder")
    assert (await heard(stream, "places"))["places"] == [{"path": str(root), "trouble": "Not a directory"}]
    stream.close()
    root.unlink()
