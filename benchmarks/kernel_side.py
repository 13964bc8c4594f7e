"""Times on the kernel's side: import, train(), metrics, cancel.

python benchmarks/kernel_side.py
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from results import record

import rlnb
from rlnb.simulation.pool import pool
from rlnb.worker.assets.packs import build

REPEATS = 10
TASK = "Isaac-Cartpole-Direct"
HEAVY = ("torch", "isaaclab", "plotly", "dask", "papermill")


def until(condition: Callable[[], object], timeout_s: float = 120.0) -> float:
    """Return the seconds until a condition holds."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < timeout_s, "the condition never held"
        time.sleep(0.01)
    return time.monotonic() - begun


def importing() -> None:
    """Measure ``import rlnb`` in fresh interpreters."""
    code = (
        "import sys, time; t = time.perf_counter(); import rlnb; "
        f"print(time.perf_counter() - t, *[m for m in {HEAVY} if m in sys.modules])"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(REPEATS)
    ]
    outputs = [run.stdout.split() for run in runs]
    worst, extra = max(float(output[0]) for output in outputs), {name for output in outputs for name in output[1:]}
    measured = f"worst of {REPEATS}: {worst:.3f} s, heavy modules: {', '.join(extra) or 'none'}"
    record("import rlnb", measured, "< 0.15 s, none", worst < 0.15 and not extra)


def training() -> None:
    """Measure ``rlnb.train`` with a task card, and the task card itself, in a fresh process and a warm simulator."""
    begun = time.monotonic()
    rlnb.task(TASK).card()
    cold = time.monotonic() - begun
    record("task card, cold", f"{cold:.1f} s", "<= 15 s", cold <= 15)
    took = []
    for path in sorted((Path(rlnb.options.root) / "cards").iterdir()):
        path.unlink()
    for _ in range(REPEATS):
        begun = time.monotonic()
        rlnb.task(TASK).card()
        took.append(time.monotonic() - begun)
        for path in (Path(rlnb.options.root) / "cards").iterdir():
            path.unlink()
    warm_s = statistics.median(took[1:])
    record("task card, from a warm simulator", f"median of {len(took) - 1}: {warm_s:.2f} s", "<= 1 s", warm_s <= 1)
    rlnb.task(TASK).card()
    took = []
    for _ in range(REPEATS):
        begun = time.monotonic()
        run = rlnb.train(TASK, num_envs=16, max_iterations=1, warm=False)
        took.append(time.monotonic() - begun)
        run.cancel()
        until(lambda run=run: run.state == "cancelled")
    record("rlnb.train() with a task card", f"worst of {REPEATS}: {max(took):.2f} s", "< 0.5 s", max(took) < 0.5)


def latency() -> None:
    """Measure the time from a scalar's own time stamp until it is read, for RSL-RL on Isaac Lab."""
    run = rlnb.train(TASK, num_envs=16, max_iterations=400, device="cpu", warm=False)
    until(lambda: run.state == "running")
    delays: list[float] = []
    seen = 0
    while len(delays) < 100:
        points = run.metrics["fps"].points
        if len(points) > seen:
            delays += [time.time() - points[index][1] for index in range(max(seen, 1), len(points))]
            seen = len(points)
        time.sleep(0.02)
    record(
        "logged scalar to run.metrics, rsl_rl",
        f"worst of {len(delays)}: {max(delays):.2f} s",
        "<= 1 s",
        max(delays) <= 1,
    )
    processes = below(run)
    run.cancel()
    gone = until(lambda: not alive(processes))
    record("from cancel() until no process is left, Isaac Lab", f"{gone:.2f} s", "< 5 s", gone < 5)


def cancelling() -> None:
    """Measure cancel() with processes that ignore SIGTERM or have left their session."""
    took = []
    for _ in range(REPEATS):
        run = rlnb.train(
            "Echo",
            library="echo",
            max_iterations=1000,
            agent={"iteration_s": 0.05, "ignore_sigterm": True, "fork": True},
        )
        until(lambda run=run: run.state == "running")
        processes = below(run)
        run.cancel()
        took.append(until(lambda processes=processes: not alive(processes)))
    record(
        "from cancel() until no process is left, SIGTERM ignored",
        f"worst of {REPEATS}: {max(took):.2f} s",
        "< 5 s",
        max(took) < 5,
    )


def below(run: rlnb.Run) -> list[psutil.Process]:
    handle = run.jobs[-1].handle
    assert handle is not None
    agent = psutil.Process(handle["pid"])
    return [agent, *agent.children(recursive=True)]


def alive(processes: list[psutil.Process]) -> bool:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                return True
    return False


def main() -> None:
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", str(build().folder))
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    importing()
    cancelling()
    training()
    pool.shut_down()
    latency()


if __name__ == "__main__":
    main()
