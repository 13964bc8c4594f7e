"""Pictures, progress and live curves in Notebook 7 in Chromium, below a base URL and without a network."""

from __future__ import annotations

import json
import os
from pathlib import Path

from lab import in_browser, lab, write_notebook

pytestmark = in_browser("notebook")

PICTURES = """
import numpy as np, rlnb
from PIL import Image
from rlnb.cameras.preview import Preview
from rlnb.display.status import status

rgb = np.random.default_rng(0).integers(0, 255, (2, 2, 24, 32, 3), np.uint8)
with status("Previewing Puck") as show:
    show(Image.fromarray(rgb[0, 0]))
Preview(task="Puck", clip={"camera": {"rgb": rgb}}, times_s=(0.0, 0.5), envs=(0, 1), state=np.zeros((2, 2, 3)),
        labels={}, ranges_m={}, noisy=(), steps=30, added=False, findings=(), task_findings=(), seconds={})
"""
TRAIN = 'run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.1}, max_iterations=900); run'
WATCH = "run.watch()"
END = "run.cancel(); run.wait(30).plot()"
POINTS = """() => {
  const plot = document.querySelector(".js-plotly-plot");
  return plot && plot.data ? plot.data.reduce((sum, trace) => sum + trace.x.length, 0) : 0;
}"""
MORE = "(before) => { const now = (" + POINTS + ")(); return now > before ? now : 0; }"


def test_pictures_progress_and_live_curves_without_a_text_in_their_place(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    write_notebook(folder / "first.ipynb", PICTURES, TRAIN, WATCH, END)
    env = {"RLNB_ROOT": str(root), "RLNB_QUEUE": os.environ["RLNB_QUEUE"]}
    with lab(folder, env, app="notebook") as opened:
        page = opened.page
        opened.open("first.ipynb", mode="notebook")
        opened.run(0)
        assert page.locator(".jp-OutputArea img").evaluate_all("all => all.map((one) => one.naturalWidth > 20)") == [
            True
        ]
        opened.run(1)
        opened.run(2)
        seen = page.wait_for_function(MORE, arg=10, timeout=40_000).json_value()
        page.locator(".js-plotly-plot").first.scroll_into_view_if_needed()  # curves outside of the window are paused
        for _ in range(4):
            seen = page.wait_for_function(MORE, arg=seen, timeout=40_000).json_value()
        if screenshots := os.environ.get("RLNB_SCREENSHOTS"):
            opened.screenshot(Path(screenshots, "notebook.png"))
        opened.run(3)
        page.wait_for_function("() => document.body.textContent.includes('cancelled')", timeout=20_000)
        page.wait_for_timeout(2000)
        opened.save()
        page.wait_for_timeout(1500)
        # Notebook 7.6 itself reads a setting before it is loaded.
        assert [problem for problem in opened.problems if "reading 'schema'" not in problem] == []
    cells = json.loads((folder / "first.ipynb").read_text())["cells"]
    kinds = [[set(output["data"]) for output in cell["outputs"] if "data" in output] for cell in cells]
    for number in (0, 2):  # the preview, and the curves that stay
        assert sum("image/png" in kind for kind in kinds[number]) == 1
    assert all({"text/plain"} not in of_cell for of_cell in kinds)
