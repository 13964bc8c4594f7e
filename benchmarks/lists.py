"""Times a list of 1,000 runs: in a fresh kernel, as a table, and filtered by an agent config value.

    python benchmarks/lists.py

The runs are copies of one run of the echo library, with different seeds and agent config values.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from results import record

import rlnb
from rlnb.records.layout import RunDir
from rlnb.storage import files

RUNS, ROUNDS, BOUND_S = 1000, 10, 0.5
LIST = """
import json, time
import rlnb
rlnb.runs

def timed(work):
    begun = time.perf_counter()
    found = work()
    return time.perf_counter() - begun, found

listed, runs = timed(rlnb.runs)
table, html = timed(runs._repr_html_)
chosen, some = timed(lambda: rlnb.runs(where={"agent.note": lambda note: note == "odd"}))
assert (len(runs), len(some)) == (1000, 500)
print(json.dumps([listed, table, chosen]))
"""


def copies(root: Path) -> None:
    """Train one run and copy it until there are ``RUNS`` runs."""
    rlnb.options.root = root
    one = rlnb.train("Echo", library="echo", max_iterations=20, agent={"+note": "even"}).wait()
    for number in range(1, RUNS):
        copy = RunDir(one.path.with_name(f"{one.id[:-4]}{number:04}"))
        shutil.copytree(one.path, copy.path)
        manifest = files.read_json(copy.manifest) or {}
        manifest.update(run_id=copy.path.name, seed=number, agent={"+note": "odd" if number % 2 else "even"})
        copy.manifest.write_text(json.dumps(manifest))


def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    copies(root)
    rounds = []
    for _ in range(ROUNDS):
        kernel = [sys.executable, "-c", f"import rlnb; rlnb.options.root = {str(root)!r}\n{LIST}"]
        rounds.append(json.loads(subprocess.run(kernel, capture_output=True, text=True, check=True).stdout))
    listed, table, chosen = ([times[part] for times in rounds] for part in range(3))
    record(
        f"{RUNS:,} runs: listed in a fresh kernel, as a table, filtered by an agent value",
        ", ".join(f"{statistics.median(times):.2f} s (worst {max(times):.2f})" for times in (listed, table, chosen)),
        f"list < {BOUND_S} s",
        max(listed) < BOUND_S,
    )


if __name__ == "__main__":
    main()
