"""Times the goodput of 1,000 runs, each interrupted once and resumed, and its table.

python benchmarks/goodput.py [--runs 1000]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from results import record

import rlnb
from rlnb.records.layout import RunDir
from rlnb.storage import files

BOUND_S, ROUNDS = 2.0, 5
TIMES = """
import json, sys, time
import rlnb
rlnb.options.root = sys.argv[1]
runs = rlnb.runs()

def timed(work):
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result

account, goodput = timed(lambda: rlnb.Runs(runs).goodput())
table, frame = timed(goodput.table)
print(json.dumps([account, table, len(frame), len(goodput.interruptions)]))
"""


def copies(root: Path, count: int) -> None:
    """Train one run that crashes once, resume it, and copy it until there are ``count`` runs."""
    rlnb.options.root = root
    one = rlnb.train("Echo", library="echo", max_iterations=20, agent={"crash_at": 12, "iteration_s": 0.25})
    with contextlib.suppress(rlnb.RunError):
        one.wait()
    one.resume(max_iterations=12).wait()  # ends before the iteration that crashes
    manifest = files.read_json(RunDir(one.path).manifest) or {}
    for number in range(1, count):
        copy = RunDir(one.path.with_name(f"{one.id[:-4]}{number:04}"))
        shutil.copytree(one.path, copy.path)
        copy.manifest.write_text(json.dumps({**manifest, "run_id": copy.path.name}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    count = parser.parse_args().runs
    root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    copies(root, count)
    rounds = []
    for _ in range(ROUNDS):
        kernel = [sys.executable, "-c", TIMES, str(root)]
        rounds.append(json.loads(subprocess.run(kernel, capture_output=True, text=True, check=True).stdout))
    shutil.rmtree(root.parent)
    accounts, tables, rows, interruptions = (max(column) for column in zip(*rounds, strict=True))
    assert (rows, interruptions) == (count, count)
    record(
        f"goodput of {count:,} runs with an interruption each, and its table with the load and the size on the disk",
        f"{accounts:.2f} s and {tables:.2f} s (worst of {ROUNDS})",
        f"goodput < {BOUND_S:g} s",
        accounts < BOUND_S,
    )


if __name__ == "__main__":
    main()
