"""The panel of runs in JupyterLab, in a real Chromium: its first paint, its memory, and its load on the server.

python benchmarks/panel.py            # all parts, 12 minutes
python benchmarks/panel.py --parts paint

- ``paint``: the time from the command that shows the panel to rows on the screen, with 1,000 runs, in fresh pages.
- ``table``: the time from a click to the painted result with 1,000 runs in the table: sort, group, columns, rename.
- ``memory``: the page's memory over an hour of five live runs that log every second, at twenty times the speed, with
  the curves of one run open.
- ``server``: the load on the server with 50 live runs that log every second, and three pages.
- ``wheel``: the size of the wheel, and its installation without Node.js (`make extension` must have built the pages).

The live runs are real runs of the echo library, which needs no simulator.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from results import record

import rlnb
from rlnb.launchers import LocalLauncher
from rlnb.plugin import Manifest, Result

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
from lab import Lab, lab, write_notebook

MANY, LIVE, PAGES, FEW = 1000, 50, 3, 5
HOUR_S, TIMES = 3600, 20
MEASURED_S = 60
ROUNDS = 10
SHOW = """() => {
  const begun = performance.now();
  return new Promise(resolve => {
    const look = () => {
      if (document.querySelectorAll('[role=treeitem]').length > 5) {
        requestAnimationFrame(() => resolve((performance.now() - begun) / 1000));
      } else {
        requestAnimationFrame(look);
      }
    };
    window.jupyterapp.commands.execute('rlnb:panel').then(look);
  });
}"""
DO = """([action, expected]) => {
  const find = text => [...document.querySelectorAll('.rlnb-TableView ' + text)];
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const look = () => {
      if (eval(expected)) {
        requestAnimationFrame(() => resolve((performance.now() - begun) / 1000));
      } else if (performance.now() - begun > 10000) {
        reject(new Error(`not reached: ${expected}`));
      } else {
        requestAnimationFrame(look);
      }
    };
    eval(action);
    look();
  });
}"""
"""Does something in the page, and returns the seconds until what is expected is painted."""
PARTS = ("wheel", "paint", "table", "memory", "server")


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(dataclasses.asdict(value)))


def ended(root: Path, count: int) -> None:
    """Write the records of ``count`` completed runs."""
    for number in range(count):
        folder = root / "runs" / f"20260101-{number:06d}-echo"
        (folder / "jobs" / "0-train").mkdir(parents=True)
        (folder / "logs").mkdir()
        created = f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}+00:00"
        task = rlnb.Task(id=f"Task-{number % 7}")
        write(
            folder / "manifest.json",
            Manifest(
                run_id=folder.name,
                created=created,
                task=task,
                library="echo",
                seed=number % 11,
                agent={"iteration_s": 0.001 * (1 + number % 13), "goal": float(number)},
            ),
        )
        write(folder / "jobs" / "0-train" / "result.json", Result(outcome="completed"))


def live(count: int, iteration_s: float) -> list[rlnb.Run]:
    """Start trainings without a simulator, and wait until they run."""
    runs = [
        rlnb.train(
            "Echo",
            library="echo",
            max_iterations=1_000_000,
            seed=seed,
            agent={"iteration_s": iteration_s},
            launcher=LocalLauncher(max_running=count),
        )
        for seed in range(count)
    ]
    while not all(run.state == "running" for run in runs):
        time.sleep(0.5)
    return runs


def opened(folder: Path, root: Path) -> Any:
    """Return a JupyterLab with the extension built in this checkout."""
    import rlnb_jupyterlab

    folder.mkdir()
    write_notebook(folder / "work.ipynb", "1 + 1")
    shared = folder / "share" / "jupyter"
    (shared / "labextensions").mkdir(parents=True)
    built = Path(str(rlnb_jupyterlab.__file__)).parent / "labextension"
    (shared / "labextensions" / "rlnb-jupyterlab").symlink_to(built)
    env = {"RLNB_ROOT": str(root), "JUPYTER_PATH": str(shared)}
    return lab(folder, env, "--ServerApp.jpserver_extensions={'rlnb_jupyterlab': True}")


def paint(base: Path) -> None:
    root = base / "paint-runs"
    ended(root, MANY)
    took = []
    with opened(base / "paint", root) as found:
        for _ in range(ROUNDS):
            found.open("work.ipynb")
            took.append(found.page.evaluate(SHOW))
            found.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        found.screenshot(base / "paint.png")
    took.sort()
    record(
        f"panel with {MANY} runs: from the command to rows on the screen, fresh pages",
        f"median of {ROUNDS}: {took[ROUNDS // 2]:.2f} s, worst {took[-1]:.2f} s",
        "<= 1 s",
        took[-1] <= 1.0,
    )


def choose(label: str, value: str) -> str:
    """Return the action that chooses a value of a selection."""
    return (
        f"const select = find('select[aria-label={label}]')[0];"
        f"Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, 'value').set.call(select, '{value}');"
        "select.dispatchEvent(new Event('change', {bubbles: true}))"
    )


def table(base: Path) -> None:
    root = base / "table-runs"
    ended(root, MANY)
    first = "find('[role=treeitem] .rlnb-RunTable-cells')[0]?.textContent"
    steps = {
        "sort": ("find('.rlnb-RunTable-head button').find(b => b.textContent.startsWith('seed')).click()", ["0", "10"]),
        "group": (choose("Grouping", "arg:agent.iteration_s"), "find('.rlnb-Group').length > 0"),
        "ungroup": (choose("Grouping", "none"), "find('.rlnb-Group').length === 0"),
    }
    took: dict[str, list[float]] = {name: [] for name in ("sort", "group", "columns", "rename")}
    with opened(base / "table", root) as found:
        page = found.page
        found.open("work.ipynb", mode="lab")
        page.evaluate(SHOW)
        page.evaluate("() => void window.jupyterapp.commands.execute('rlnb:table')")
        page.get_by_text(f"{MANY} of {MANY} runs").first.wait_for(timeout=60_000)
        for number in range(ROUNDS):
            action, seeds = steps["sort"]
            cell = f"find('[role=treeitem] .rlnb-RunTable-cells')[0]?.children[8].textContent === '{seeds[number % 2]}'"
            took["sort"].append(page.evaluate(DO, [action, cell]))
            took["group"].append(page.evaluate(DO, list(steps["group"])))
            if number == 0:
                found.screenshot(base / "table-groups.png")
            page.evaluate(DO, list(steps["ungroup"]))
            head = "find('.rlnb-RunTable-head button').some(b => b.title === 'agent.goal')"
            box = "find('.rlnb-Columns label').find(l => l.title === 'agent.goal').click()"
            took["columns"].append(page.evaluate(DO, [box, head if number % 2 == 0 else f"!{head}"]))
            if number == 0:
                found.screenshot(base / "table-columns.png")
            page.evaluate("() => document.querySelector('.rlnb-TableView [role=treeitem]').click()")
            page.evaluate("() => void window.jupyterapp.commands.execute('rlnb:rename', {of: 'selection'})")
            page.locator(".jp-Dialog input").fill(f"name {number}")
            accept = "document.querySelector('.jp-Dialog .jp-mod-accept').click()"
            took["rename"].append(page.evaluate(DO, [accept, f"{first}?.includes('name {number}')"]))
        found.screenshot(base / "table.png")
        assert not found.problems, found.problems
    worst = {name: max(times) for name, times in took.items()}
    record(
        f"table of {MANY} runs in the panel's tab: from the click to the painted result",
        "; ".join(
            f"{name} median {sorted(times)[ROUNDS // 2]:.2f} s, worst {max(times):.2f} s"
            for name, times in took.items()
        ),
        "<= 0.3 s each",
        max(worst.values()) <= 0.3,
    )


def wheel(base: Path) -> None:
    source = Path(__file__).parents[1] / "extensions" / "rlnb-jupyterlab"
    uv = [str(Path(sys.executable).parent / "uv")]
    subprocess.run([*uv, "build", "-q", "--wheel", "--out-dir", str(base), str(source)], check=True)
    (made,) = base.glob("*.whl")
    without_node = {**os.environ, "PATH": "/nowhere"}
    target = base / "installed"
    argv = [*uv, "pip", "install", "-q", "--no-deps", "--python", sys.executable, "--prefix", str(target), str(made)]
    subprocess.run(argv, check=True, env=without_node)
    pages = target / "share" / "jupyter" / "labextensions" / "rlnb-jupyterlab"
    sizes = sorted((path.stat().st_size for path in pages.rglob("*") if path.is_file()), reverse=True)
    enabled = target / "etc" / "jupyter" / "jupyter_server_config.d" / "rlnb_jupyterlab.json"
    whole = (pages / "package.json").exists() and enabled.exists()
    record(
        "rlnb-jupyterlab: size of the wheel, of its pages and of plotly's bundle; installation without Node.js",
        f"{made.stat().st_size / 1e6:.2f} MB, {sum(sizes[1:]) / 1e6:.2f} MB and {sizes[0] / 1e6:.2f} MB; "
        f"{'pages and server are installed' if whole else 'INCOMPLETE'}",
        "pages < 1 MB; installed",
        sum(sizes[1:]) < 1e6 and whole,
    )


def heap(found: Lab) -> float:
    """Return the MiB of a page's JavaScript objects after garbage collection."""
    session = found.page.context.new_cdp_session(found.page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return float(metrics["JSHeapUsedSize"]) / 2**20


def memory(base: Path) -> None:
    root = base / "memory-runs"
    rlnb.options.root = root
    runs = live(FEW, 1.0 / TIMES)
    with opened(base / "memory", root) as found:
        found.open("work.ipynb")
        found.page.evaluate(SHOW.replace("> 5", f">= {FEW}"))
        found.page.get_by_role("treeitem").first.dblclick()
        found.page.get_by_role("tab", name="Curves").click()
        time.sleep(30)
        sizes = [heap(found)]
        for _ in range(6):
            time.sleep(HOUR_S / TIMES / 6)
            sizes.append(heap(found))
        found.screenshot(base / "memory.png")
    for run in runs:
        run.cancel()
    grown = sizes[-1] / sizes[0] - 1.0
    record(
        f"panel and curves, {FEW} live runs, {HOUR_S} points each in {HOUR_S // TIMES} s: memory of the page's objects",
        f"{sizes[0]:.1f} to {sizes[-1]:.1f} MiB, {grown:+.1%}",
        "grows < 20 %",
        grown < 0.20,
    )


def server(base: Path) -> None:
    root = base / "server-runs"
    rlnb.options.root = root
    runs = live(LIVE, 1.0)
    with opened(base / "server", root) as found:
        found.open("work.ipynb")
        pages = [found.page, *(found.page.context.new_page() for _ in range(PAGES - 1))]
        for page in pages[1:]:
            page.goto(found.page.url, wait_until="domcontentloaded")
            page.wait_for_selector(".jp-Notebook", timeout=90_000)
        for page in pages:
            page.evaluate(SHOW)
        time.sleep(20)
        process = next(
            child
            for child in psutil.Process().children(recursive=True)
            if "jupyterlab" in " ".join(child.cmdline()) and "--no-browser" in child.cmdline()
        )
        before, begun = process.cpu_times(), time.monotonic()
        time.sleep(MEASURED_S)
        after, passed_s = process.cpu_times(), time.monotonic() - begun
        found.screenshot(base / "server.png")
    for run in runs:
        run.cancel()
    share = (after.user + after.system - before.user - before.system) / passed_s
    record(
        f"Jupyter's server with {LIVE} live runs and {PAGES} pages",
        f"{share:.1%} of a core over {passed_s:.0f} s",
        "<= 5 %",
        share <= 0.05,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parts = parser.parse_args().parts
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    os.environ["RLNB_QUEUE"] = str(base / "queue")
    for part in parts:
        {"wheel": wheel, "paint": paint, "table": table, "memory": memory, "server": server}[part](base)
    print(base)


if __name__ == "__main__":
    main()
