"""The rate at which the live view paints frames in a real Chromium, and the growth of the kernel's memory meanwhile.

python benchmarks/painted.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from results import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
from lab import lab, write_notebook

FRAMES, TILE_PX, TILES = 2000, 128, 16
SOURCE = f"""
import json, time
import numpy as np
import psutil
from rlnb.cameras.live import shown
from rlnb.display.live_pictures import LiveView
from rlnb.records.camera_files import Frame

random = np.random.default_rng(0)
# A moving image with smooth and sharp parts, because cameras show neither noise nor a flat colour.
y, x = np.mgrid[:{TILE_PX}, :{TILE_PX}]
def tile(moment, env):
    light = 127 + 100 * np.sin((x + 3 * moment) / 17 + env) * np.cos(y / 23)
    image = np.stack([light, light[::-1], 255 - light], axis=-1).astype(np.uint8)
    image[40 + moment % 40 : 60 + moment % 40, 30 + env : 50 + env] = (230, 60, 40)
    return image
moments = [np.stack([tile(moment, env) for env in range({TILES})]) for moment in range(40)]
number = 0

def source():
    global number
    number += 1
    images = {{"camera/rgb": moments[number % len(moments)]}}
    return shown(Frame(number=number, step=number, cost_s=0.0, error="", images=images))

view = LiveView(source).start()
"""
WATCH = f"""
while view.painted < 100:
    time.sleep(0.1)
before, begun, first = psutil.Process().memory_info().rss, time.monotonic(), view.painted
while view.painted < first + {FRAMES}:
    time.sleep(0.1)
rate = {FRAMES} / (time.monotonic() - begun)
print(json.dumps([rate, before, psutil.Process().memory_info().rss]))
view.stop()
"""


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    write_notebook(folder / "painted.ipynb", SOURCE, WATCH)
    with lab(folder) as opened:
        opened.open("painted.ipynb")
        opened.run(0)
        opened.run(1, timeout_s=600)
        rate, before, after = json.loads(opened.text(1))
        opened.screenshot(folder / "painted.png")
    growth = after / before - 1
    record(
        f"frames painted in Chromium, 4 x 4 tiles of {TILE_PX} px, and the kernel's memory over {FRAMES:,} frames",
        f"{rate:.1f} /s; {before / 2**20:.0f} to {after / 2**20:.0f} MiB ({growth:+.1%})",
        ">= 20 /s, no growth",
        rate >= 20 and growth < 0.02,
    )
    print(folder)


if __name__ == "__main__":
    main()
