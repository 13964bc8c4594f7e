"""Tables of many runs: their time in a fresh kernel and again, their memory, and ``rlnb runs`` in a shell.

    python benchmarks/tables.py                    # 200 runs of a million points, and 10,000 short ones
    python benchmarks/tables.py --before PYTHON    # and beside the commit that is installed for another interpreter

The runs are copies of a run of the echo library. Those of a million points share one event file of 20 tags, each under
a link of its own. A run that ended under this version has a summary, as its worker leaves one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from results import ratio_interval, record
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rig"))
from event_records import framed

import rlnb
from rlnb.records.layout import RunDir
from rlnb.records.record import RunRecord
from rlnb.storage import files
from rlnb.storage.cache import SETTLED_S

TAGS = ("Train/mean_reward", "Metrics/success_rate", *(f"Train/metric_{number}" for number in range(18)))
POINTS, RUNS, OLDER, SHORT, LISTED, ROUNDS = 1_000_000, 200, 5, 10_000, 1_000, 10
LAST_POINTS_S = 60.0
TABLE = """
import json, re, sys, time
import rlnb, pandas
rlnb.options.root = sys.argv[1]
times = []
for _ in range(2):
    begun = time.perf_counter()
    table = rlnb.runs().table()
    times.append(time.perf_counter() - begun)
assert len(table) == int(sys.argv[2]) and table["reward"].notna().all() and table["success_rate"].notna().all()
peak = re.search("VmHWM: *\\t*(.*) kB", open("/proc/self/status").read())  # getrusage counts the parent's too
print(json.dumps([*times, int(peak[1].strip()) / 1024]))
"""
LIST = """
import json, sys, time
begun = time.perf_counter()
import rlnb
rlnb.runs
imported = time.perf_counter()
rlnb.options.root = sys.argv[1]
runs = rlnb.runs()
listed = time.perf_counter()
runs._repr_html_()
print(json.dumps([imported - begun, listed - imported, time.perf_counter() - listed]))
"""

PANEL = """
import json, pathlib, sys, time
import rlnb
from rlnb_jupyterlab.pages import Pages
from rlnb_jupyterlab.watcher import Watcher
rlnb.runs
begun = time.perf_counter()
watcher = Watcher([pathlib.Path(sys.argv[1])], Pages())
watcher._look()
while watcher._index.behind:
    watcher._look()
listed = time.perf_counter()
while watcher._without:
    watcher._fill()
assert len(watcher._rows) == int(sys.argv[2])
print(json.dumps([listed - begun, time.perf_counter() - listed]))
"""


def long_file(path: Path) -> None:
    """Write an event file of ``POINTS`` points: rows of one point of each tag."""
    version, parts = Event(wall_time=1e9, file_version="brain.Event:2").SerializeToString(), []
    first = 2**14  # from here on, each step has three bytes
    for tag in TAGS:
        value = Summary.Value(tag=tag, simple_value=0.5)
        parts.append(Event(wall_time=1e9, step=first, summary=Summary(value=[value])).SerializeToString())
    row = np.frombuffer(b"".join(map(framed, parts)), np.uint8)
    rows = np.tile(row, (POINTS // len(TAGS), 1))
    steps = first + np.arange(len(rows))
    begin = 0
    for part in parts:
        for byte in range(3):
            more = 0x80 if byte < 2 else 0
            rows[:, begin + 22 + byte] = (steps >> 7 * byte & 0x7F) | more
        begin += len(part) + 16
    path.write_bytes(framed(version) + rows.tobytes())


def copies(root: Path, count: int, *, events: Path | None = None, summaries: bool = True) -> Path:
    """Make copies of a run below a root; return the root.

    Args:
        root: The root.
        count: Number of runs.
        events: Event file of each run; None keeps the short one.
        summaries: Whether they ended under this version.
    """
    rlnb.options.root = root
    one = rlnb.train("Echo", library="echo", max_iterations=20).wait()
    data = files.read_json(RunDir(one.path).manifest) or {}
    for number in range(count):
        copy = RunDir(one.path.with_name(f"{one.id[:-6]}{number:06}"))
        shutil.copytree(one.path, copy.path, copy_function=os.link)
        copy.manifest.unlink()
        files.write_once(copy.manifest, {**data, "run_id": copy.path.name, "seed": number})
        if events is not None:
            for path in copy.event_files():
                path.unlink()
            os.link(events, copy.logs / "events.out.tfevents.1000000000.host")
        (job,) = copy.jobs()
        job.last_points.unlink(missing_ok=True)
        if summaries:
            RunRecord(copy.path).write_last_points(job, LAST_POINTS_S)
    shutil.rmtree(one.path)
    return root


def kernel(python: str, code: str, *args: object) -> list[float]:
    """Return the numbers that code prints in a new process."""
    command = [python, "-P", "-c", code, *map(str, args)]  # without -P, this checkout would come first
    numbers: list[float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return numbers


def shell_s(root: Path) -> float:
    """Return the seconds that ``rlnb runs`` takes."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "rlnb", "runs", "--path", str(root)]
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - begun


def measure(what: str, root: Path, count: int, second_s: float) -> None:
    time.sleep(2 * SETTLED_S)
    first, second, memory = kernel(sys.executable, TABLE, root, count)
    shell = shell_s(root)
    record(
        f"table() of {count:,} {what}: first, second, memory; rlnb runs in a shell",
        f"{first:.1f} s, {second:.2f} s, {memory:.0f} MiB; {shell:.1f} s",
        f"<= 10 s, <= {second_s:g} s, <= 300 MiB; <= 10 s",
        first <= 10 and second <= second_s and memory <= 300 and shell <= 10,
    )


def compare(before: str, older: Path, short: Path) -> None:
    """Compare with the commit of another interpreter."""
    where = [
        subprocess.run([python, "-P", "-c", "import rlnb; print(rlnb.__file__)"], capture_output=True, text=True).stdout
        for python in (sys.executable, before)
    ]
    if where[0] == where[1]:
        sys.exit(f"{before} imports this checkout, too.")
    ours, theirs = (kernel(python, TABLE, older, OLDER)[0] for python in (sys.executable, before))
    record(
        f"table() of {OLDER} runs of {POINTS:,} points without summaries, and by the commit before",
        f"{ours:.2f} s and {theirs:.2f} s, {ours / theirs:.2f} times",
        "<= 0.2 times",
        ours <= 0.2 * theirs,
    )
    for run in sorted((short / "runs").iterdir())[LISTED:]:
        shutil.rmtree(run)
    pairs: list[dict[str, list[float]]] = []
    for number in range(ROUNDS):
        order = (sys.executable, before) if number % 2 else (before, sys.executable)
        pairs.append({python: kernel(python, LIST, short) + kernel(python, PANEL, short, LISTED) for python in order})
    parts = ("import", "list", "table of a notebook", "list of the panel", "metrics of the panel")
    intervals = [ratio_interval([(one[sys.executable][at], one[before][at]) for one in pairs]) for at in range(5)]
    named = zip(parts, intervals, strict=True)
    texts = (f"{name} {ratio:.2f} [{low:.2f}, {high:.2f}]" for name, (ratio, low, high) in named)
    record(
        f"{LISTED:,} runs in a fresh kernel, / the commit before",
        f"{'; '.join(texts)}, medians of {ROUNDS} pairs",
        "<= 1.05 times",
        max(ratio for ratio, _, _ in intervals) <= 1.05,
    )


def main(arguments: Sequence[str]) -> None:
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    events = base / "events"
    long_file(events)
    long = copies(base / "long", RUNS, events=events)
    measure(f"runs of {POINTS:,} points that ended under this version", long, RUNS, 1.0)
    short = copies(base / "short", SHORT)
    measure("short runs", short, SHORT, 3.0)
    if arguments[:1] == ["--before"]:
        compare(arguments[1], copies(base / "older", OLDER, events=events, summaries=False), short)
    shutil.rmtree(base)


if __name__ == "__main__":
    main(sys.argv[1:])
