"""The seconds from a logged point to the page, in marimo and for two users of a JupyterHub.

    python benchmarks/front_ends.py            # needs Chromium, marimo, JupyterHub and its proxy; skips what is missing

The delay is that between the time at which a point was logged (its wall time in the event file) and the time at which
the page has it, over 20 points.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from results import record

import rlnb

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
POINTS = 20
BOUND_S = 1.0
ITERATION_S = 0.7
"""Seconds between two points: longer than the interval between two updates, so that each update has one."""
REWARD_POINTS = """() => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap((e) => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e]);
  const plot = all(document).find((e) => e.classList.contains("js-plotly-plot"));
  return plot && plot.data && plot.data.length ? plot.data[0].x.length : 0;
}"""
SEEN = f"(count) => ({REWARD_POINTS})() >= count ? Date.now() / 1000 : 0"


def delays_s(page: Any, run: rlnb.Run) -> list[float]:
    """Return the seconds from the logging of each of the next points to the page."""
    page.wait_for_function(f"() => ({REWARD_POINTS})()", timeout=60_000)
    page.locator(".js-plotly-plot").first.scroll_into_view_if_needed()  # curves outside of the window are paused
    first = int(page.wait_for_function(f"() => ({REWARD_POINTS})()", timeout=60_000).json_value())
    seen_s = [
        float(page.wait_for_function(SEEN, arg=count, timeout=20_000, polling="raf").json_value())
        for count in range(first + 1, first + 1 + POINTS)
    ]
    logged_s = run.metrics["reward"].array("wall_time")[first : first + POINTS]
    return [seen - float(logged) for seen, logged in zip(seen_s, logged_s, strict=True)]


def report(front_end: str, delays: list[float]) -> None:
    """Record the median and the largest delay."""
    median_s, worst_s = statistics.median(delays), max(delays)
    measured = f"{median_s:.2f} s median, {worst_s:.2f} s at most, of {len(delays)} points"
    record(f"a logged point in the page, {front_end}", measured, f"median <= {BOUND_S:g} s", median_s <= BOUND_S)


def of_marimo(folder: Path) -> None:
    """Measure an app of marimo."""
    from marimo_app import marimo, write_marimo

    train = f'run = rlnb.train("Echo", library="echo", agent={{"iteration_s": {ITERATION_S}}}, max_iterations=200)'
    cells = [("import rlnb", "", "rlnb"), (train, "rlnb", "run"), ("run.watch()", "run", "")]
    write_marimo(folder / "notebook.py", *cells)
    with marimo(folder / "notebook.py", "run", {"RLNB_ROOT": str(rlnb.options.root)}) as opened:
        opened.page.wait_for_function(f"() => ({REWARD_POINTS})() > 2", timeout=90_000)
        (run,) = rlnb.runs()
        report("marimo", delays_s(opened.page, run))
        run.cancel()


def of_hub(folder: Path) -> None:
    """Measure two users of a JupyterHub, who watch at the same time."""
    from hub import USERS, hub
    from lab import pages
    from test_hub import sign_in

    with hub(folder, {"JUPYTER_PATH": os.environ.get("JUPYTER_PATH", "")}) as url, pages(len(USERS)) as opened:
        labs = {name: sign_in(page, folder, url, name) for name, page in zip(USERS, opened, strict=True)}
        for one in labs.values():
            one.run(0)
            one.run(1)
        for name, one in labs.items():
            rlnb.options.root = folder / name / "rlnb-runs"
            (run,) = rlnb.runs()
            report(f"JupyterHub, user {name} of {len(USERS)}", delays_s(one.page, run))
            one.run(3)


def main() -> None:
    """Measure what is installed."""
    measures: dict[str, Callable[[Path], None]] = {"marimo": of_marimo, "jupyterhub": of_hub}
    for module, measure in measures.items():
        if importlib.util.find_spec(module) is None:
            print(f"{module} is not installed here")
            continue
        with tempfile.TemporaryDirectory(prefix="rlnb-front-ends-") as folder:
            rlnb.options.root = Path(folder) / "rlnb-runs"
            start_s = time.monotonic()
            measure(Path(folder))
            print(f"{module}: {time.monotonic() - start_s:.0f} s")


if __name__ == "__main__":
    main()
