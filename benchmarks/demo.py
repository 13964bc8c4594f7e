"""``make demo`` after installation: its duration, the policy's success rate, and the size of the report.

python benchmarks/demo.py
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from results import record

import rlnb

REPO = Path(__file__).parents[1]


def main() -> None:
    out = Path(tempfile.mkdtemp(prefix="rlnb-demo-"))
    begun = time.monotonic()
    subprocess.run(["make", "demo", f"OUT={out}"], cwd=REPO, check=True)
    took = time.monotonic() - begun
    (run,) = rlnb.runs(out / "rlnb-runs")
    evaluation = run.evaluations[-1]
    assert evaluation.success_rate is not None
    low, high = evaluation.success_interval or (0.0, 0.0)
    size = (out / "quickstart.html").stat().st_size
    record("make demo: time", f"{took / 60:.1f} min", "< 6 min", took < 360)
    rate = f"{evaluation.success_rate:.3f} ({low:.3f} to {high:.3f})"
    success = f"{rate} over {evaluation.episodes} episodes, checkpoint of the best reward"
    record("make demo: success from reset", success, ">= 0.95 over >= 100", evaluation.success_rate >= 0.95)
    record("make demo: HTML report", f"{size / 1e6:.2f} MB", "< 1.5 MB", size < 1.5e6)


if __name__ == "__main__":
    main()
