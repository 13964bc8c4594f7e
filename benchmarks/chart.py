"""The time that a page takes to paint an update of the live dashboard, compared with another checkout in pairs.

    git worktree add /path/to/other 8c64859
    python benchmarks/chart.py --other /path/to/other --name 8c64859

Each checkout's own page script gets the same messages, without a kernel: the curves of 3 runs and 4 metrics with 600
points each, then updates with one more point for each curve. An update ends when the page reports that it is painted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from results import ratio_interval, record

HERE = Path(__file__).parents[1]
RUNS, METRICS = 3, ("reward", "episode_length", "success_rate", "fps")
UPDATES = 100
RUN = """
import rlnb
for seed in range(3):
    rlnb.train("Echo", library="echo", max_iterations=2, seed=seed).wait()
"""
SCRIPT = f"""
import json
import rlnb
from rlnb.curves import live, stream
from rlnb.storage.serial import to_json
layout = stream.layout(list(rlnb.runs()), {METRICS!r}, "frames", None)
print(json.dumps({{"layout": to_json(layout), "script": str(live._widget()._esm)}}))
"""
PAGE = """async ({script, layout, curves, points, updates}) => {
  globalThis.__rlnb_plotly = {loaded: true, promise: Promise.resolve(globalThis.Plotly)};
  const module = await import(URL.createObjectURL(new Blob([script], {type: "text/javascript"})));
  let heard = null, painted = null;
  const model = {
    on: (_, listener) => { heard = listener; },
    off: () => {},
    send: (message) => { if (message.painted !== undefined) painted(); },
  };
  const el = document.body.appendChild(document.createElement("div"));
  module.default.render({model, el});
  while (!heard) await new Promise(requestAnimationFrame);
  heard(layout, []);
  let number = 0;
  const update = async (how, first, count) => {
    const changes = Array.from({length: curves}, (_, curve) => [curve, how, count]);
    const buffer = new ArrayBuffer(12 * curves * count);
    const xs = new Float64Array(buffer, 0, curves * count), ys = new Float32Array(buffer, 8 * curves * count);
    for (let i = 0; i < xs.length; i++) {
      xs[i] = 64 * (first + i % count);
      ys[i] = Math.sin((first + i % count) / 20) + i / xs.length;
    }
    const start = performance.now();
    await new Promise((resolve) => {
      painted = resolve;
      heard({kind: "curves", number: ++number, changes, runs: null}, [new DataView(buffer)]);
    });
    return performance.now() - start;
  };
  await update("set", 0, points);
  const times = [];
  for (let i = 0; i < updates; i++) {
    times.push(await update("add", points + i, 1));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return times;
}"""


def environment(checkout: Path, root: str) -> dict[str, str]:
    sources = os.pathsep.join(map(str, [checkout, *checkout.glob("plugins/*/src")]))
    return {**os.environ, "PYTHONPATH": sources, "RLNB_ROOT": root, "RLNB_QUEUE": f"{root}/queue"}


def output(code: str, checkout: Path, root: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment(checkout, root), check=True, capture_output=True, text=True).stdout


def update_ms(browser: Any, sent: dict[str, Any]) -> float:
    """Return the median time of an update in a fresh page, in milliseconds."""
    import plotly

    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.route(
        "**", lambda route: route.fulfill(content_type="text/html", body="<body style='background:white'></body>")
    )
    page.goto("http://localhost/")  # not about:blank: the older script needs a page of a secure kind
    page.add_script_tag(path=Path(plotly.__file__).with_name("package_data") / "plotly.min.js")
    options = {"curves": RUNS * len(METRICS), "points": 600, "updates": UPDATES}
    times = page.evaluate(PAGE, {**sent, **options})
    page.close()
    return float(statistics.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path, required=True, help="checkout to compare with")
    parser.add_argument("--name", default="the other", help="commit of the other checkout, for RESULTS.md")
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    root = tempfile.mkdtemp(prefix="rlnb-bench-")
    output(RUN, HERE, root)
    sent = {checkout: json.loads(output(SCRIPT, checkout, root)) for checkout in (HERE, arguments.other)}
    pairs = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for number in range(arguments.rounds):
            order = (HERE, arguments.other) if number % 2 else (arguments.other, HERE)
            took = {checkout: update_ms(browser, sent[checkout]) for checkout in order}
            pairs.append((took[arguments.other], took[HERE]))
            print(f"{number}: {took[HERE]:.1f} ms here, {took[arguments.other]:.1f} ms there", flush=True)
        browser.close()
    ratio, low, high = ratio_interval(pairs)
    now_ms = statistics.median(now for _, now in pairs)
    record(
        f"a page's time for an update of the live curves, {RUNS} runs x {len(METRICS)} metrics, {arguments.name} / now",
        f"{ratio:.3f} ({low:.3f} to {high:.3f}), {arguments.rounds} pairs; {now_ms:.0f} ms now",
        "median >= 0.98, low >= 0.95",
        ratio >= 0.98 and low >= 0.95,
    )


if __name__ == "__main__":
    main()
