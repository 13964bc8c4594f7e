"""The watcher lets go of curves that no page shows, and looks less often where looking is slow."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from asking import echo
from rlnb_jupyterlab import watcher
from rlnb_jupyterlab.pages import Page, Pages
from rlnb_jupyterlab.watcher import Watcher, key_of


def test_curves_of_what_has_ended_are_let_go_of(root: Path) -> None:
    run = echo().wait(60)
    pages, said = Pages(), []
    page = Page(send=lambda text: said.append(json.loads(text)), watched={key_of(run): {}})
    watching = Watcher([root], pages)
    watching._call = lambda send, text: send(text)
    pages.join(page)
    watching._tell()
    assert any(message["type"] == "curves" for message in said)
    read = watching._runs[key_of(run)]
    watching._tell()
    assert watching._runs[key_of(run)] is read, "it is still watched"
    page.watched = {}
    watching._tell()
    assert watching._runs[key_of(run)] is not read


@pytest.mark.parametrize(("slow", "soon"), [("waits", True), ("once", True), ("always", False)])
def test_looks_come_less_often_only_where_they_keep_a_core_busy(
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
