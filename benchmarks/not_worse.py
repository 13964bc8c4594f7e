"""Compares the throughput and start-up time of this checkout with another one, in interleaved pairs.

    git worktree add /path/to/other 2fe4a19
    python benchmarks/not_worse.py --other /path/to/other --name 2fe4a19

Both checkouts run in the environment of this interpreter, each with its own sources first on PYTHONPATH. Each training
starts in a fresh kernel without a living simulator. The start-up time is measured from the call of ``rlnb.train`` to
the first iteration in ``run.metrics``. The throughput is the median over the iterations after the first. Nothing else
should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from results import ratio_interval, record

HERE = Path(__file__).parents[1]
NUM_ENVS, ITERATIONS = 512, 30
TRAINING = f"""
import itertools, statistics, time, rlnb
rlnb.options.warm = False
begin_s = time.perf_counter()
run = rlnb.train("Isaac-Cartpole-Direct", num_envs={NUM_ENVS}, max_iterations={ITERATIONS}, device="cpu")
while "fps" not in run.metrics:
    assert run.state not in ("failed", "lost"), run.logs()
    time.sleep(0.02)
start_s = time.perf_counter() - begin_s
run.wait()
times_s = run.metrics["fps"].wall_time_s
iteration_s = statistics.median(later - earlier for earlier, later in itertools.pairwise(times_s[1:]))
print(start_s, run.started.horizon * run.started.num_envs / iteration_s)
"""
IMPORT = "import time; begin_s = time.perf_counter(); import rlnb; print(time.perf_counter() - begin_s)"


def environment(checkout: Path, folder: Path) -> dict[str, str]:
    """Return the environment that imports a checkout's own sources, with runs and a queue below ``folder``."""
    sources = [checkout, *checkout.glob("plugins/*/src")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, sources)),
        "RLNB_ROOT": str(folder / "runs"),
        "RLNB_QUEUE": str(folder / "queue"),
    }


def output(code: str, checkout: Path) -> list[float]:
    """Run code with a checkout and return the numbers in the last line of its output."""
    with tempfile.TemporaryDirectory(prefix="rlnb-not-worse-") as folder:
        process = subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env=environment(checkout, Path(folder)),
            capture_output=True,
            text=True,
            check=False,
        )
    if process.returncode:
        raise SystemExit(f"{checkout} failed:\n{process.stdout}\n{process.stderr}")
    return [float(number) for number in process.stdout.splitlines()[-1].split()]


def trainings(other: Path, name: str, rounds: int) -> None:
    """Measure the start-up time and throughput of a training with one process."""
    starts: list[tuple[float, float]] = []
    rates: list[tuple[float, float]] = []
    for number in range(rounds):
        order = (HERE, other) if number % 2 else (other, HERE)
        numbers = {checkout: output(TRAINING, checkout) for checkout in order}
        (start_s, rate), (other_start_s, other_rate) = numbers[HERE], numbers[other]
        starts.append((other_start_s, start_s))
        rates.append((rate, other_rate))
        print(
            f"{number}: here {start_s:.2f} s, {rate:,.0f}/s; there {other_start_s:.2f} s, {other_rate:,.0f}/s",
            flush=True,
        )
    task = f"rsl_rl, Isaac-Cartpole-Direct, {NUM_ENVS} envs"
    note(f"{task}: steps/s, now / {name}", rates, f"{statistics.median(rate for rate, _ in rates):,.0f} steps/s")
    note(
        f"{task}: time to the first iteration, {name} / now", starts, f"{statistics.median(s for _, s in starts):.1f} s"
    )


def imports(rounds: int) -> None:
    """Measure ``import rlnb`` in fresh interpreters."""
    worst = max(output(IMPORT, HERE)[0] for _ in range(rounds))
    record("import rlnb, idle machine", f"worst of {rounds}: {worst:.3f} s", "<= 0.03 s", worst <= 0.03)


def note(what: str, pairs: list[tuple[float, float]], value: str) -> None:
    ratio, low, high = ratio_interval(pairs)
    text = f"{ratio:.3f} ({low:.3f} to {high:.3f}), {len(pairs)} pairs; {value} now"
    record(what, text, "median >= 0.98, low >= 0.95", ratio >= 0.98 and low >= 0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path, required=True, help="checkout to compare with")
    parser.add_argument("--name", default="the other", help="commit of the other checkout, for RESULTS.md")
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    imports(arguments.rounds)
    trainings(arguments.other, arguments.name, arguments.rounds)


if __name__ == "__main__":
    main()
