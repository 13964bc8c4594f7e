"""A report in a real browser: its videos play, from a file and without JavaScript."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from lab import CHROMIUM

import rlnb
from rlnb.records.video import Mp4

pytestmark = [pytest.mark.browser, pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed here")]
PLAYING = "(v => v.duration > 0 && v.currentTime > 0)(document.querySelector('video'))"


@pytest.mark.slow
def test_the_video_of_a_report_plays(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("papermill")
    playwright = pytest.importorskip("playwright.sync_api")
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait()
    run.evaluate(episodes=2)
    video = run.path / "media" / "video.mp4"
    writer = Mp4(video, fps=10.0)
    for value in range(0, 250, 10):
        writer.add(np.full((32, 48, 3), value, np.uint8))
    writer.close()
    record = run.jobs[-1].folder.path / "evaluation.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "video": str(video)}))
    page_path = rlnb.report(run, tmp_path / "report.html")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(Path(page_path).as_uri())
        page.locator("video").scroll_into_view_if_needed()
        deadline = time.monotonic() + 10.0
        while not page.evaluate(PLAYING) and time.monotonic() < deadline:
            page.wait_for_timeout(100)
        assert page.evaluate(PLAYING), page.evaluate("String(document.querySelector('video').error?.message)")
        browser.close()
