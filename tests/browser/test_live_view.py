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
