"""A report of one run with eight figures: its size, and its figures without network and JavaScript.

    python benchmarks/report.py

The run is a training of the camera cartpole. The figures are its curves, the node's usage, five previews and a still
image of a video. Chromium opens the page without JavaScript and network, and takes a screenshot.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from against_isaaclab import asset_root
from PIL import Image
from results import record

import rlnb

TASK, NUM_ENVS, FIGURES = "Isaac-Cartpole-Camera-Direct", 16, 8


def seen_offline(page: Path, picture: Path) -> tuple[int, list[str]]:
    """Open a page without JavaScript and network; return the number of images it shows, and its network requests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(java_script_enabled=False, offline=True, viewport={"width": 1100, "height": 900})
        opened = context.new_page()
        urls: list[str] = []
        opened.on("request", lambda request: urls.append(request.url))
        opened.goto(page.as_uri())
        opened.screenshot(path=picture, full_page=True)
        # An image that does not load is only as high as its alternative text.
        boxes = [image.bounding_box() for image in opened.locator("img").all()]
        browser.close()
    shown = sum(box is not None and box["height"] > 50 for box in boxes)
    return shown, [url for url in urls if not url.startswith(("data:", page.as_uri()))]


def main() -> None:
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    run = rlnb.train(TASK, num_envs=NUM_ENVS, max_iterations=10, device="cpu").wait()
    run.evaluate(8, video=True)
    for number in range(FIGURES - 3):
        shown = rlnb.preview(TASK, num_envs=4, steps=10 * number, data_types=["rgb", "depth"], device="cpu")
        shown.save(run.path / "media" / f"preview-{number}.png")
    page = run.report()
    html, notebook = page.stat().st_size, page.with_suffix(".ipynb").stat().st_size
    picture = page.with_suffix(".png")
    shown_offline, requests = seen_offline(page, picture)
    with Image.open(picture) as image:
        print(picture, image.size)
    record(
        f"report of one run with {FIGURES} figures: size of its notebook and of its page",
        f"{notebook / 1e6:.2f} MB and {html / 1e6:.2f} MB",
        "<= 1 MB and <= 2 MB",
        notebook <= 1e6 and html <= 2e6,
    )
    record(
        "that report in Chromium without JavaScript and network",
        f"{shown_offline} of {FIGURES} figures; requests: {', '.join(requests) or 'none'}",
        "all figures, no requests",
        shown_offline == FIGURES and not requests,
    )


if __name__ == "__main__":
    main()
