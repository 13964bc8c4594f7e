"""Compares the throughput and start-up time of this checkout with another one, in interleaved pairs.

    git worktree add /path/to/other 2fe4a19
    python benchmarks/not_worse.py --other /path/to/other --name 2fe4a19

A checkout runs in its own environment (``.venv``) if it has one, else in that of this interpreter, with its sources
and package metadata first on PYTHONPATH. Each training starts in a fresh kernel without a warm simulator. The start-
up time is measured from the call of ``rlnb.train`` to the first iteration in ``run.metrics``. The throughput is the
median over the iterations after the first. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import functools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
from results import ratio_interval, record

HERE = Path(__file__).parents[1]
NUM_ENVS, ITERATIONS = 512, 30
STUCK_S = 75
"""Seconds after which a process counts as stuck. A training takes about 20."""
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


@functools.cache
def metadata(checkout: Path) -> Path:
    """Return a folder with the package metadata of a checkout, because rlnb compares it with its sources."""
    folder = Path(tempfile.mkdtemp(prefix="rlnb-not-worse-metadata-"))
    atexit.register(shutil.rmtree, folder)
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--target", folder, checkout]
    subprocess.run(install, check=True)
    shutil.rmtree(folder / "rlnb")
    return folder


def interpreter(checkout: Path) -> str:
    """Return the interpreter of a checkout's own environment; empty if it has none."""
    path = checkout / ".venv" / "bin" / "python"
    return str(path) if path.exists() else ""


def environment(checkout: Path, folder: Path) -> dict[str, str]:
    """Return the environment that imports a checkout's own sources, with runs and a queue below ``folder``."""
    sources = [] if interpreter(checkout) else [metadata(checkout), checkout, *checkout.glob("plugins/*/src")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, sources)),
        "RLNB_ROOT": str(folder / "runs"),
        "RLNB_QUEUE": str(folder / "queue"),
    }


def output(code: str, checkout: Path, attempts: int = 3) -> list[float]:
    """Run code with a checkout and return the numbers in the last line of its output.

    Old commits can deadlock when Isaac Lab starts, so a process without an end is killed and started again.
    """
    with tempfile.TemporaryDirectory(prefix="rlnb-not-worse-") as folder:
        process = subprocess.Popen(
            [interpreter(checkout) or sys.executable, "-P", "-c", code],
            cwd=folder,
            env=environment(checkout, Path(folder)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            out, err = process.communicate(timeout=STUCK_S)
        except subprocess.TimeoutExpired:
            family = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            for child in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            if attempts == 1:
                raise
            print(f"{checkout} had no result after {STUCK_S} s; trying again", flush=True)
            return output(code, checkout, attempts - 1)
    if process.returncode:
        raise SystemExit(f"{checkout} failed:\n{out}\n{err}")
    return [float(number) for number in out.splitlines()[-1].split()]


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
