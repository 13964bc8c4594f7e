"""The live view in JupyterLab in Chromium: pictures are painted, and the last one stays."""

from __future__ import annotations

import json
from pathlib import Path

from lab import in_browser, lab, write_notebook

pytestmark = in_browser("jupyterlab", timeout=300)

SYNTHETIC = """
import numpy as np
from PIL import Image
from rlnb.display.live_pictures import LiveView, Shown

random = np.random.default_rng(0)
tiles = [Image.fromarray(random.integers(0, 255, (512, 512, 3), dtype=np.uint8).repeat(1, 0)) for _ in range(8)]
made = [0]

def source():
    made[0] += 1
    return Shown(pictures=[tiles[made[0] % 8]], lossless=[False], caption=f"frame {made[0]}")

view = LiveView(source).start()
"""


def test_pictures_are_painted_and_the_last_stays_in_the_saved_notebook(tmp_path: Path) -> None:
    write_notebook(
        tmp_path / "live.ipynb",
        SYNTHETIC,
        "import time; first = view.painted; time.sleep(3); print(view.painted - first)",
        "view.stop(); time.sleep(1); print(view)",
    )
    with lab(tmp_path) as opened:
        opened.open("live.ipynb")
        opened.run(0)
        opened.page.wait_for_selector("canvas", timeout=30_000)
        opened.run(1)
        assert int(opened.text(1)) > 10, "frames painted in three seconds while a cell blocks the kernel's shell"
        size = opened.page.evaluate("() => { const c = document.querySelector('canvas'); return [c.width, c.height]; }")
        assert size == [512, 512]
        opened.run(2)
        assert "ended" in opened.text(2)
        opened.page.wait_for_selector(".jp-OutputArea-output img", timeout=10_000)
        opened.save()
        opened.page.wait_for_timeout(1500)
        assert opened.problems == []
    saved = json.loads((tmp_path / "live.ipynb").read_text())
    assert any("image/png" in output.get("data", {}) for output in saved["cells"][0]["outputs"])


TURNED = """
from rlnb.display.live_pictures import LiveView, Shown
from PIL import Image

gestures = []

def source():
    return Shown(pictures=[Image.new("RGB", (200, 100))], lossless=[False], caption="", place="eye=(1, 2, 3)")

view = LiveView(source, turn=gestures.append).start()
"""


def test_a_drag_the_wheel_and_a_double_click_turn_the_camera(tmp_path: Path) -> None:
    write_notebook(
        tmp_path / "turned.ipynb",
        TURNED,
        "for one in gestures: print(round(one.right, 2), round(one.down, 2), round(one.zoom, 2), one.reset)",
        "view.stop()",
    )
    with lab(tmp_path) as opened:
        opened.open("turned.ipynb")
        opened.run(0)
        page = opened.page
        page.wait_for_selector("canvas", timeout=30_000)
        page.wait_for_function("() => document.querySelector('code')?.textContent === 'eye=(1, 2, 3)'")
        box = page.locator("canvas").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 50, box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + 150, box["y"] + 75)
        page.mouse.up()
        page.wait_for_timeout(500)
        page.keyboard.down("Control")
        page.mouse.wheel(0, 50)
        page.keyboard.up("Control")
        page.wait_for_timeout(500)
        page.mouse.dblclick(box["x"] + 50, box["y"] + 50)
        page.wait_for_timeout(500)
        opened.run(1)
        assert opened.text(1).split("\n")[:3] == ["1.57 0.39 1.0 False", "0.0 0.0 1.11 False", "0.0 0.0 1.0 True"]
        opened.run(2)
        assert opened.problems == []
