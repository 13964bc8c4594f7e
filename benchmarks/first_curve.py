"""The seconds from the first logged point to the first drawn curve, on a new page with a new kernel that stays busy.

    python benchmarks/first_curve.py                                   # 20 starts, 10 and 10; about 15 minutes
    python benchmarks/first_curve.py --lab 5 --notebook 0 --gateway 0

The notebook's only cell trains, watches and waits. Each start has a browser with an empty profile. The kernel counts as
busy if no message since the start of the cell says that it is idle or that the cell has ended. Behind the gateway, the
browser reaches only nginx, below a path.

A start in which the kernel never begins the cell is repeated, and the row says how many there were. ipykernel 7.3.0,
also without rlnb, may leave a request that arrives while it sends a reply unread until the next request comes.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from results import record

import rlnb

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
from gateway import gateway
from lab import Lab, pages, server, write_notebook

BOUND_S = 3.0
REACHES_S = 30.0
"""A start is repeated if the kernel has not begun the cell after this time."""
ITERATION_S = 0.2
CELL = """import rlnb
run = rlnb.train("Echo", library="echo", agent={"iteration_s": %s}, max_iterations=3000)
run.watch(); run.wait()"""
DRAWN = """() => {
  const drawn = (plot) => plot.querySelector(".scatterlayer .trace path") && plot.data.some((trace) => trace.x.length);
  return [...document.querySelectorAll(".js-plotly-plot")].some(drawn) ? Date.now() / 1000 : 0;
}"""
WATCH_STATUS = """() => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  window.idle = window.begun = 0;
  kernel.iopubMessage.connect((_, message) => {
    if (message.header.msg_type === "execute_input") window.begun += 1;
    if (message.header.msg_type === "status" && message.content.execution_state === "idle"
        && message.parent_header.msg_type === "execute_request") window.idle += 1;
  });
}"""
BUSY = """() => window.idle === 0
  && window.jupyterapp.shell.currentWidget.content.widgets[0].model.executionState === "running" """


def start(page: Any, url: str, token: str, folder: Path, name: str, mode: str) -> tuple[float, bool] | None:
    """Open a new notebook, run its cell, and return the seconds to the first curve and whether the kernel was busy.

    Returns:
        None if the kernel did not begin the cell.
    """
    from playwright.sync_api import TimeoutError as NotYet

    write_notebook(folder / f"{name}.ipynb", CELL % ITERATION_S)
    known = {run.id for run in rlnb.runs()}
    opened = Lab(page, url, token)
    try:
        opened.open(f"{name}.ipynb", mode=mode, timeout_s=60)
        page.evaluate(WATCH_STATUS)
        opened.start(0)
        page.wait_for_function("() => window.begun > 0", timeout=1000 * REACHES_S)
    except (NotYet, AssertionError) as error:
        print(f"{name}: the kernel did not begin the cell: {str(error).splitlines()[0]}", flush=True)
        return None
    try:
        drawn_s = float(page.wait_for_function(DRAWN, timeout=180_000, polling=50).json_value())
        busy = bool(page.evaluate(BUSY))
        (run,) = [run for run in rlnb.runs() if run.id not in known]
        delay_s = drawn_s - float(run.metrics["reward"].array("wall_time")[0])
    except Exception as error:  # no curve: the start counts, as a failure
        print(f"{name}: {error}", flush=True)
        delay_s, busy = float("inf"), False
    if screenshots := os.environ.get("RLNB_SCREENSHOTS"):
        opened.screenshot(Path(screenshots, f"{name}.png"))
    for run in rlnb.runs():
        if run.id not in known:
            run.cancel()
            run.wait(60)
    print(f"{name}: {delay_s:.2f} s, {'busy' if busy else 'IDLE'}", flush=True)
    return delay_s, busy


@contextlib.contextmanager
def served(folder: Path, app: Literal["jupyterlab", "notebook"], through: bool) -> Iterator[tuple[str, str]]:
    """Serve the folder, and yield the URL for the browser and the token."""
    env = {"RLNB_ROOT": str(rlnb.options.root), "RLNB_QUEUE": str(folder / "queue")}
    with server(folder, env, app=app) as (url, token), contextlib.ExitStack() as stack:
        yield stack.enter_context(gateway(folder / "nginx", url)) if through else url, token


def measure(what: str, count: int, app: Literal["jupyterlab", "notebook"], *, through: bool = False) -> None:
    """Measure the starts in one front end and record their row."""
    with tempfile.TemporaryDirectory(prefix="rlnb-first-curve-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        rlnb.options.root = folder / "rlnb-runs"
        mode = "notebook" if app == "notebook" else "doc"
        results: list[tuple[float, bool]] = []
        repeated = 0
        with served(folder, app, through) as (url, token):
            while len(results) < count and repeated < count:
                with pages(1) as (page,):
                    result = start(page, url, token, folder, f"start-{len(results) + repeated}", mode)
                if result is None:
                    repeated += 1
                else:
                    results.append(result)
    delays = sorted(delay for delay, _ in results) or [float("inf")]
    good = sum(delay <= BOUND_S and busy for delay, busy in results)
    record(
        f"first curve after the first point, new browser, new kernel, watch() and wait() in one cell, {what}",
        f"{good} of {count}; {delays[len(delays) // 2]:.2f} s median, {delays[-1]:.2f} s at most"
        + (f"; starts repeated because the kernel did not begin the cell: {repeated}" if repeated else ""),
        f"<= {BOUND_S:g} s while the kernel is busy, {count} of {count}",
        good == count,
    )


def main() -> None:
    """Measure what is installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lab", type=int, default=20)
    parser.add_argument("--notebook", type=int, default=10)
    parser.add_argument("--gateway", type=int, default=10)
    counts = parser.parse_args()
    if counts.lab:
        measure("JupyterLab", counts.lab, "jupyterlab")
    if counts.notebook and importlib.util.find_spec("notebook") is None:
        print("notebook is not installed here")
    elif counts.notebook:
        measure("Notebook 7", counts.notebook, "notebook")
    if counts.gateway:
        measure("JupyterLab below a path behind nginx", counts.gateway, "jupyterlab", through=True)


if __name__ == "__main__":
    main()
