"""The 3D view in JupyterLab in Chromium: below a base URL, through the Jupyter server, moving."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "rig"))

from lab import in_browser, lab, write_notebook
from other_user import OTHER_UID, answer

pytestmark = [
    pytest.mark.isaaclab,
    *in_browser("jupyterlab", "viser", "jupyter_server_proxy", "isaaclab", timeout=600),
]

OPEN = """
import rlnb
scene = rlnb.view("Isaac-Ant-Direct", num_envs=2, device="cpu")
scene
"""
PICTURE_MS = 120_000
"""Time limit of a screenshot. The CPU renders WebGL, and also runs the view's simulator and other tests."""
PIXELS_MOVED = 200
"""Least number of pixels that change within a second, in which two ants stumble."""


def test_a_scene_is_visible_and_moves_below_a_base_url(tmp_path: Path) -> None:
    import numpy as np
    from PIL import Image

    def seen() -> np.ndarray:
        picture = opened.page.locator(".jp-OutputArea-output iframe").screenshot(timeout=PICTURE_MS)
        return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).astype(int)

    write_notebook(tmp_path / "scene.ipynb", OPEN, "scene.push(2.0); scene.close(); print(scene.alive, scene)")
    with lab(tmp_path, env={"RLNB_ROOT": str(tmp_path / "rlnb-runs")}) as opened:
        opened.open("scene.ipynb")
        opened.run(0, timeout_s=240)
        frame = opened.page.wait_for_selector(".jp-OutputArea-output iframe", timeout=20_000)
        before, _, after = str(frame.get_attribute("src")).partition("/proxy/")
        assert before.endswith("/hosted/user-1")
        if os.geteuid() == 0:
            assert answer(int(after.partition("/")[0]), OTHER_UID) == "", "another user gets no answer"
        frame.content_frame().wait_for_selector("canvas", timeout=60_000)
        opened.page.wait_for_timeout(10_000)
        first = seen()
        opened.page.wait_for_timeout(1000)
        second = seen()
        assert len(np.unique(first.reshape(-1, 3), axis=0)) > 100, "the page shows a scene"
        assert (np.abs(first - second).max(axis=-1) > 16).sum() > PIXELS_MOVED
        frame.content_frame().get_by_role("button", name="Push", exact=True).click(timeout=PICTURE_MS)
        opened.screenshot(tmp_path / "scene.png")
        opened.run(1)
        assert opened.text(1).startswith("False Viewer(")
        assert "ended" in opened.text(1)
        assert opened.problems == []
