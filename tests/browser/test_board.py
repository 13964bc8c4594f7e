"""TensorBoard in JupyterLab in Chromium, below a base URL and through the Jupyter server."""

from __future__ import annotations

from pathlib import Path

from lab import in_browser, lab, write_notebook

pytestmark = in_browser("jupyterlab", "jupyter_server_proxy")

TRAIN = """
import rlnb
runs = [rlnb.train("Echo", library="echo", max_iterations=30, seed=seed).wait() for seed in (1, 2)]
"""
OPEN = "board = rlnb.Runs(runs).tensorboard()\nboard"


def test_the_curves_of_two_runs_are_visible_below_a_base_url(tmp_path: Path) -> None:
    write_notebook(tmp_path / "board.ipynb", TRAIN, OPEN, "board.close(); print(board)")
    env = {"RLNB_ROOT": str(tmp_path / "rlnb-runs"), "RLNB_QUEUE": str(tmp_path / "queue")}
    with lab(tmp_path, env=env) as opened:
        opened.open("board.ipynb")
        opened.run(0)
        opened.run(1)
        frame = opened.page.wait_for_selector(".jp-OutputArea-output iframe", timeout=30_000)
        assert "/hosted/user-1/proxy/" in str(frame.get_attribute("src"))
        inside = frame.content_frame()
        inside.wait_for_selector("text=Metrics/success_rate", timeout=60_000)
        inside.wait_for_selector("scalar-card line-chart", timeout=30_000)
        opened.page.wait_for_timeout(2000)
        opened.screenshot(tmp_path / "board.png")
        opened.run(2)
        assert "ended" in opened.text(2)
        assert opened.problems == []
