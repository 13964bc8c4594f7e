"""The controls in the sidebar of a 3D view, in Chromium. Without a simulator: ``test_scene.py`` has one."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "rig"))

from lab import browser, in_browser

from rlnb.errors import RlnbError
from rlnb.protocol.requests import Hold
from rlnb.worker.requests.sidebar import Sidebar

pytestmark = in_browser("viser")

RANGES = {"lin_vel_x": (-1.0, 1.0), "lin_vel_y": (0.0, 0.0), "ang_vel_z": (0.5, 2.0)}
NAME = "base_velocity"
WITHIN_S = 20.0


class Recorded:
    """Records what an env would have done."""

    def __init__(self, no_push: str = "") -> None:
        self.no_push, self.commands = no_push, {NAME: RANGES}
        self.done: list[tuple[str, tuple[float, ...] | None]] = []

    def push(self, velocity: tuple[float, ...]) -> None:
        if velocity == (1.0,):
            raise RlnbError("The robot is broken.")
        self.done.append(("push", velocity))

    def hold(self, name: str, value: tuple[float, ...] | None) -> None:
        self.done.append((name, value))


@pytest.fixture
def server() -> Iterator[Any]:
    import viser

    server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    yield server
    server.stop()


def wait_for(controls: Recorded, sidebar: Sidebar, last: tuple[str, tuple[float, ...] | None]) -> None:
    """Do the requests of the browser until the last one is as expected."""
    deadline = time.monotonic() + WITHIN_S
    while controls.done[-1:] != [last] and time.monotonic() < deadline:
        sidebar.do_requests()
        time.sleep(0.02)
    assert controls.done[-1:] == [last]


def test_pushes_and_commands_of_the_browser_are_done_and_those_of_the_kernel_are_shown(
    server: Any, tmp_path: Path
) -> None:
    controls: Any = Recorded()
    sidebar = Sidebar(server, controls)
    with browser(tmp_path) as page:
        page.goto(f"http://127.0.0.1:{server.get_port()}/")
        page.get_by_role("button", name="Push", exact=True).click(timeout=60_000)
        wait_for(controls, sidebar, ("push", (1.0, 0.0)))
        page.get_by_label("Hold").click()
        wait_for(controls, sidebar, (NAME, (0.0, 0.0, 0.5)))
        page.locator("input[type=text][value='0.5']").fill("1.25")
        page.keyboard.press("Enter")
        wait_for(controls, sidebar, (NAME, (0.0, 0.0, 1.25)))
        page.get_by_role("button", name="Push in a random direction").click()
        deadline = time.monotonic() + WITHIN_S
        while not page.get_by_text("The robot is broken.").count() and time.monotonic() < deadline:
            sidebar.do_requests()
            page.wait_for_timeout(50)
        assert page.get_by_text("The robot is broken.").count(), "the browser is told"
        page.get_by_label("Hold").click()
        wait_for(controls, sidebar, (NAME, None))
        sidebar.do(Hold(name=NAME, value=(-0.75, 3.0, 1.0)))
        page.locator("input[type=text][value='-0.75']").wait_for(timeout=1000 * WITHIN_S)
        page.locator("input[type=text][value='3']").wait_for(timeout=1000 * WITHIN_S)
        assert page.get_by_label("Hold").is_checked()
        sidebar.do_requests()
        assert controls.done[-1] == (NAME, (-0.75, 3.0, 1.0)), "it is not requested again"
        page.screenshot(path=str(tmp_path / "sidebar.png"))


def test_a_robot_with_a_fixed_base_has_a_reason_in_the_place_of_the_buttons(server: Any, tmp_path: Path) -> None:
    controls: Any = Recorded(no_push="The base of 'cartpole' is fixed.")
    Sidebar(server, controls)
    with browser(tmp_path) as page:
        page.goto(f"http://127.0.0.1:{server.get_port()}/")
        page.get_by_text("The base of 'cartpole' is fixed.").wait_for(timeout=60_000)
        assert page.get_by_role("button", name="Push").count() == 0
