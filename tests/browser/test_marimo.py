"""Pictures, progress and live curves in marimo in Chromium, without a network, as an app and in the editor."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import TRIES, Lab, in_browser
from marimo_app import DEEP, TEXT_FALLBACKS, marimo, write_marimo

import rlnb

pytestmark = in_browser("marimo")

IMPORTS = """
import numpy as np
import rlnb
from PIL import Image
from rlnb.cameras.preview import Preview
from rlnb.display.status import status
rlnb.options.warm = False
"""
PICTURES = """
rgb = np.random.default_rng(0).integers(0, 255, (2, 2, 24, 32, 3), np.uint8)
with status("Previewing Puck") as show:
    show(Image.fromarray(rgb[0, 0]))
Preview(task="Puck", clip={"camera": {"rgb": rgb}}, times_s=(0.0, 0.5), envs=(0, 1), state=np.zeros((2, 2, 3)),
        labels={}, ranges_m={}, noisy=(), steps=30, added=False, findings=(), task_findings=(), seconds={})
"""
PUCK = """
puck = rlnb.define("Puck", "TASK = 1")
"""
TRAIN = """
run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.1}, max_iterations=300)
"""
WATCH = "run.watch()"
POINTS = f"""() => {{ {DEEP}
  const plot = all(document).find((e) => e.classList.contains("js-plotly-plot"));
  return plot && plot.data ? plot.data.reduce((sum, trace) => sum + trace.x.length, 0) : 0;
}}"""
MORE = f"(before) => {{ const now = ({POINTS})(); return now > before ? now : 0; }}"
PICTURES_SEEN = f"""() => {{ {DEEP}
  const pictures = all(document).filter((e) => e.tagName === "IMG" && /^data:image|@file/.test(e.src));
  return pictures.filter((e) => e.naturalWidth > 20).length;
}}"""

NO_PLOT = f"""() => {{ {DEEP}
  return all(document).every((e) => !e.matches(".js-plotly-plot") || !e.checkVisibility());
}}"""


@pytest.fixture
def folder(root: Path, tmp_path: Path) -> Path:
    """A folder for the notebook and the server's files."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def env(root: Path) -> dict[str, str]:
    return {"RLNB_ROOT": str(root), "RLNB_QUEUE": os.environ["RLNB_QUEUE"]}


CELLS = [
    (IMPORTS, "", "Image, Preview, np, rlnb, status"),
    (PICTURES, "Image, Preview, np, status", ""),
    (PUCK, "rlnb", "puck"),
    (TRAIN, "rlnb", "run"),
    (WATCH, "run", ""),
]


@pytest.fixture(params=["run", "edit"])
def watching(request: pytest.FixtureRequest, root: Path, folder: Path) -> Iterator[Lab]:
    write_marimo(folder / "notebook.py", *CELLS)
    with marimo(folder / "notebook.py", request.param, env(root)) as opened:
        if request.param == "edit":
            run_all(opened)
        opened.page.wait_for_function(MORE, arg=10, timeout=90_000)
        yield opened
        assert opened.problems == []
    for run in rlnb.runs():
        run.cancel()


def run_all(opened: Lab) -> None:
    """Run all cells of the editor. The shortcut is lost while the page is still loading, so it is repeated."""
    from playwright.sync_api import expect

    opened.page.get_by_text("import numpy as np").wait_for(timeout=60_000)
    for _ in range(TRIES):
        opened.page.keyboard.press("Control+Shift+KeyR")
        with contextlib.suppress(AssertionError):
            expect(opened.page.get_by_text("saved as")).to_be_visible(timeout=20_000)
            return
    raise AssertionError("the cells do not run")


def look(opened: Lab, name: str) -> None:
    """Save a screenshot."""
    if screenshots := os.environ.get("RLNB_SCREENSHOTS"):
        Path(screenshots).mkdir(parents=True, exist_ok=True)
        opened.screenshot(Path(screenshots, f"{name}.png"))


def test_pictures_are_shown_and_live_curves_grow(watching: Lab, request: pytest.FixtureRequest) -> None:
    page = watching.page
    before = page.evaluate(POINTS)
    for _ in range(3):
        before = page.wait_for_function(MORE, arg=before, timeout=5000).json_value()
    assert page.evaluate(PICTURES_SEEN) == 1, "the preview; the interim picture has made way for the wait's duration"
    assert page.evaluate(TEXT_FALLBACKS) == []
    look(watching, f"marimo-{request.node.callspec.params['watching']}")
    (run,) = rlnb.runs()
    assert rlnb.task("Puck").source is not None
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel: click again").click()
    assert run.wait(30).state == "cancelled"
    page.wait_for_function(f"() => ({PICTURES_SEEN})() === 2", timeout=20_000)  # the curves stay as a picture
    page.wait_for_function(NO_PLOT, timeout=20_000)
    look(watching, f"marimo-{request.node.callspec.params['watching']}-ended")
