"""The live dashboard: latency from the log to the paint in Chromium, bytes per update, and the kernel's memory.

python benchmarks/dashboard.py            # all parts
python benchmarks/dashboard.py --part latency
python benchmarks/dashboard.py --part pairs --other /path/to/checkout --name 8c64859

``pairs`` compares the latency with that of another checkout, in interleaved pairs of 12 s each.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from events import write
from results import ratio_interval, record

import rlnb
from rlnb.curves.live import give_memory_back
from rlnb.curves.stream import Stream, packed

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
from lab import lab, write_notebook

RUNS, POINTS, UPDATES = 10, 1_000_000, 10_000
METRICS = tuple(f"Train/metric_{number}" for number in range(6))
SECONDS, PAIR_S = 60, 12
HERE = Path(__file__).parents[1]

LATENCY = f"""
import json, threading, time
import rlnb
from rlnb.curves import live
sent, painted = {{}}, {{}}
plain = live.Dashboard._tell
def tell(self):
    newest = max((run.metrics["reward"].wall_time_s[-1:] or [0.0])[0] for run in self._runs)
    before = self._sent
    behind = plain(self)
    if self._sent > before:
        sent[self._sent] = newest
    return behind
live.Dashboard._tell = tell
heard = live.Dashboard._hear
def hear(self, message):
    if message.painted is not None:
        painted[message.painted] = time.time()
    heard(self, message)
live.Dashboard._hear = hear
runs = [rlnb.train("Echo", library="echo", agent={{"iteration_s": 0.1}}, max_iterations={SECONDS * 10 + 300}, seed=seed,
                   launcher=rlnb.launchers.LocalLauncher(max_running=3)) for seed in range(3)]
rlnb.watch(runs)
"""
FOUND = """
time.sleep(%d)
print(json.dumps([painted[number] - sent[number] for number in sorted(painted) if number in sent and number > 5]))
[run.cancel() for run in runs]
"""


class Written:
    """The parts of a run that a stream needs, with event files written by this benchmark."""

    def __init__(self, folder: Path) -> None:
        from rlnb.metrics.metrics import Metrics

        self.metrics = Metrics(folder, None)
        self.jobs: list[object] = []


def latencies(checkout: Path, seconds: int) -> list[float]:
    """Return the seconds from the log to the paint of each update with a checkout, in ascending order."""
    folder = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    write_notebook(folder / "latency.ipynb", LATENCY, FOUND % seconds)
    sources = [checkout, *checkout.glob("plugins/*/src")]
    env = {"RLNB_ROOT": str(folder / "runs"), "RLNB_QUEUE": str(folder / "queue")}
    with lab(folder, env={**env, "PYTHONPATH": os.pathsep.join(map(str, sources))}) as opened:
        opened.open("latency.ipynb")
        opened.run(0)
        opened.page.wait_for_selector(".js-plotly-plot", timeout=60_000)
        opened.run(1, timeout_s=2 * seconds + 30)
        took = sorted(json.loads(opened.text(1)))
        opened.screenshot(folder / "latency.png")
    print(folder)
    return took


def patient(checkout: Path, attempts: int = 3) -> list[float]:
    """Return the latencies of a short run; try again if the page shows no curve within a minute."""
    from playwright.sync_api import TimeoutError

    for _ in range(attempts - 1):
        try:
            return latencies(checkout, PAIR_S)
        except TimeoutError as exc:
            print(f"{checkout}: no curve, trying again: {exc}", flush=True)
    return latencies(checkout, PAIR_S)


def pairs(other: Path, name: str, rounds: int) -> None:
    """Compare the median latency with that of another checkout."""
    medians = []
    for number in range(rounds):
        order = (HERE, other) if number % 2 else (other, HERE)
        took = {checkout: patient(checkout) for checkout in order}
        medians.append((took[other][len(took[other]) // 2], took[HERE][len(took[HERE]) // 2]))
        print(f"{number}: {medians[-1][1]:.3f} s here, {medians[-1][0]:.3f} s there", flush=True)
    ratio, low, high = ratio_interval(medians)
    now_s = statistics.median(now for _, now in medians)
    record(
        f"median latency from the log to the paint in Chromium, {name} / now",
        f"{ratio:.3f} ({low:.3f} to {high:.3f}), {rounds} pairs; {now_s:.2f} s now",
        "median >= 0.98, low >= 0.95",
        ratio >= 0.98 and low >= 0.95,
    )


def latency() -> None:
    took = latencies(HERE, SECONDS)
    p95 = took[int(0.95 * len(took))]
    record(
        "logged in the worker to painted in Chromium, 3 runs x 4 metrics",
        f"p95 {p95:.2f} s, median {took[len(took) // 2]:.2f} s, worst {took[-1]:.2f} s of {len(took)} updates",
        "p95 <= 1.0 s",
        p95 <= 1.0,
    )


def weight_and_memory() -> None:
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    folders = [base / f"run-{number}" for number in range(RUNS)]
    for folder in folders:
        write(folder, POINTS, METRICS)
    write(base / "small", 100, METRICS)
    Stream([Written(base / "small")], METRICS, "frames").changes()  # type: ignore[list-item]  # makes the stream's imports
    process = psutil.Process()
    gc.collect()
    empty = process.memory_info().rss
    runs = [Written(folder) for folder in folders]
    stream = Stream(runs, METRICS, "frames")  # type: ignore[arg-type]
    sizes, begun = [], time.monotonic()
    while not sizes or stream.behind:
        sizes.append(weight(stream))
    print(f"first curves complete after {time.monotonic() - begun:.0f} s in {len(sizes)} messages")
    written, updates = POINTS, []
    before = 0
    for number in range(UPDATES + 500):
        for folder in folders:
            write(folder, len(METRICS), METRICS, first=written)
        written += len(METRICS)
        for run in runs:
            run.metrics._refreshed = float("-inf")
        updates.append(weight(stream))
        if number == 500:
            gc.collect()
            before = process.memory_info().rss
    gc.collect()
    after = process.memory_info().rss
    del stream, runs, run  # a dashboard releases these when its last page closes
    give_memory_back()
    disposed = process.memory_info().rss
    whole = [size for size in updates if size > 0]
    theirs = figure_widget(POINTS // len(METRICS))
    record(
        f"bytes per update, {RUNS} runs x {len(METRICS)} metrics, histories of {POINTS:,} points per run",
        f"largest {max(*sizes, *whole):,}, median {sorted(whole)[len(whole) // 2]:,}; FigureWidget {theirs:,}",
        "<= 20 KB",
        max(*sizes, *whole) <= 20_000,
    )
    record(
        f"kernel memory over {UPDATES:,} updates of that dashboard",
        f"{(after - before) / 2**20:+.1f} MiB of {before / 2**20:.0f}",
        "< 20 MB",
        after - before < 20e6,
    )
    record(
        "kernel memory after closing that dashboard, compared with before it",
        f"{(disposed - empty) / 2**20:+.1f} MiB; the dashboard took {(after - empty) / 2**20:.0f}",
        "< 20 MB",
        disposed - empty < 20e6,
    )


def weight(stream: Stream) -> int:
    """Return the bytes of the next message to a page."""
    heads, buffer = packed(stream.changes())
    return len(json.dumps(heads)) + len(buffer)


def figure_widget(points: int) -> int:
    """Return the bytes that plotly's own widget sends for the same update, one more point in each curve."""
    import numpy as np
    import plotly.graph_objects as go

    figure = go.FigureWidget([go.Scatter(x=np.arange(points), y=np.zeros(points)) for _ in METRICS])
    sent = []
    figure.send_state = lambda key=None: sent.append(figure.get_state(key))  # type: ignore[method-assign]
    figure._send_restyle_msg = lambda restyle, **options: sent.append(restyle)
    with figure.batch_update():
        for trace in figure.data:
            trace.x, trace.y = np.arange(points + 1), np.zeros(points + 1)
    return RUNS * sum(size(message) for message in sent)


def size(message: object) -> int:
    """Return the bytes of the arrays in a message."""
    if (nbytes := getattr(message, "nbytes", None)) is not None:  # an array, or ipywidgets' buffer of one
        return int(nbytes)
    parts = message.values() if isinstance(message, dict) else message if isinstance(message, list | tuple) else ()
    return sum(size(part) for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("latency", "weight", "pairs"))
    parser.add_argument("--other", type=Path, help="checkout to compare with")
    parser.add_argument("--name", default="the other", help="commit of the other checkout, for RESULTS.md")
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    part = arguments.part
    os.environ.setdefault("RLNB_ROOT", tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.root = Path(os.environ["RLNB_ROOT"])
    if part == "pairs":
        pairs(arguments.other, arguments.name, arguments.rounds)
    if part in (None, "latency"):
        latency()
    if part in (None, "weight"):
        weight_and_memory()


if __name__ == "__main__":
    main()
