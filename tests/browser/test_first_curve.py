"""Curves in pages that the kernel cannot answer, because the cell that watches also waits."""

from __future__ import annotations

import os
from pathlib import Path

from lab import Lab, in_browser, lab, write_notebook

import rlnb

pytestmark = in_browser("jupyterlab")

CELL = """import rlnb
from rlnb.curves import live
live.AGAIN_S = 4
run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.2}, max_iterations=3000)
run.watch(); run.wait()"""
POINTS = """() => {
  const plot = [...document.querySelectorAll("figure:not([hidden]) .js-plotly-plot")].find((one) => one.data?.length);
  return plot ? plot.data[0].x.length : 0;
}"""
MORE = "(before) => { const now = (" + POINTS + ")(); return now > before ? now : 0; }"
BUSY = "() => window.jupyterapp.shell.currentWidget.content.widgets[0].model.executionCount === null"


def grows(opened: Lab, name: str) -> None:
    """Wait until curves are there and grow, and save a screenshot."""
    before = 0
    for _ in range(2):
        before = opened.page.wait_for_function(MORE, arg=before, timeout=90_000).json_value()
    if screenshots := os.environ.get("RLNB_SCREENSHOTS"):
        opened.screenshot(Path(screenshots, f"{name}.png"))


def test_a_busy_kernel_draws_on_a_new_page_a_reloaded_page_and_a_second_page(tmp_path: Path) -> None:
    rlnb.options.root = tmp_path / "rlnb-runs"
    write_notebook(tmp_path / "first.ipynb", CELL)
    env = {"RLNB_ROOT": str(rlnb.options.root), "RLNB_QUEUE": str(tmp_path / "queue")}
    with lab(tmp_path, env) as opened:
        opened.open("first.ipynb")
        opened.save()  # as people do; JupyterLab draws no widget in a file that it has not written
        opened.start(0)
        grows(opened, "first")
        assert opened.page.evaluate(BUSY)
        opened.page.reload(wait_until="domcontentloaded")  # before the notebook was saved with its output
        grows(opened, "reloaded")
        second = Lab(opened.page.context.new_page(), opened.url, opened.token)
        second.page.goto(f"{opened.url}doc/tree/first.ipynb?token={opened.token}", wait_until="domcontentloaded")
        grows(second, "second")
        (run,) = rlnb.runs()
        run.cancel()
        run.wait(60)
        for one in (opened, second):  # the curves stay as a picture
            one.page.get_by_label("smoothing").wait_for(state="detached", timeout=60_000)
            one.page.wait_for_selector(".jp-OutputArea .js-plotly-plot, .jp-OutputArea img", timeout=60_000)
            assert one.problems == []
