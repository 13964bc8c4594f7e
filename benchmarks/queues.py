"""Queues and pods under faults, without a simulator: a real Slurm, a real Grid Engine, and pods by ``unshare``.

    python benchmarks/queues.py
    python benchmarks/queues.py --parts ends pods

- ``ends``: the time until a job that ends at once is named with its last line, on Slurm and on Grid Engine.
- ``array``: 40 trials as one array job of Slurm, the most that run at once, and the time of a cancellation.
- ``pods``: the time until the refusal of a pod is in the notebook, and until a training runs again after a pod was
  killed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from results import record

import rlnb
from rlnb.results import Sweep

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rig"))
import sge as grid_engine_rig
import slurm as slurm_rig

ROUNDS = 5
NAMED_S, CANCEL_S, REFUSED_S, AGAIN_S = 30.0, 5.0, 5.0, 60.0
TRIALS, AT_ONCE = 40, 4
WALLTIME = "00:20:00"
PARTS = ("ends", "array", "pods")


def until(fact: Callable[[], object], limit_s: float = 240.0) -> float:
    """Wait until a condition holds; return the seconds that this took."""
    begun = time.perf_counter()
    while not fact():
        if time.perf_counter() - begun > limit_s:
            raise TimeoutError(f"the condition was not met within {limit_s} s")
        time.sleep(0.05)
    return time.perf_counter() - begun


def echo(launcher: Any, iterations: int = 3000) -> rlnb.Run:
    """Start a training with ten iterations a second."""
    return rlnb.train("Echo", library="echo", max_iterations=iterations, agent={"iteration_s": 0.1}, launcher=launcher)


def seconds(values: list[float]) -> str:
    """Return the median and the largest of some times."""
    return f"median {statistics.median(values):.1f} s, at most {max(values):.1f} s, n={len(values)}"


# -- a job that ends at once


def ends_at_once(title: str, factory: Any, last_line: str) -> None:
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        run = echo(factory(walltime=WALLTIME, python="/nowhere/python"))
        until(lambda run=run: run.state == "failed")
        times.append(time.perf_counter() - begun)
        assert last_line in run.result.error, run.result.error
    record(
        f"a job of {title} that ends at once: from `train()` to an error with its last line",
        seconds(times),
        f"{NAMED_S:.0f} s",
        max(times) <= NAMED_S,
    )


# -- an array


def sweep_of(name: str, iterations: int) -> Sweep:
    import optuna

    return rlnb.sweep(
        "Echo",
        "echo",
        space={"agent.goal": (0.5, 2.0)},
        n_trials=TRIALS,
        name=name,
        parallel=AT_ONCE,
        max_iterations=iterations,
        agent={"iteration_s": 0.1},
        pruner=optuna.pruners.NopPruner(),
        launcher=rlnb.slurm(walltime=WALLTIME),
        array=True,
    )


def most_at_once(sweep: Sweep) -> int:
    """Return the largest number of trainings that ran at once, by their own records."""
    events = []
    for run in sweep.runs:
        begin_s = run.jobs[0].folder.running().stat().st_mtime
        events += [(begin_s, 1), (datetime.fromisoformat(run.result.ended).timestamp(), -1)]
    count = most = 0
    for _, change in sorted(events):
        count += change
        most = max(most, count)
    return most


def array() -> None:
    sweep = sweep_of("forty", 3).wait()
    names = {name.partition("_")[0] for run in sweep.runs for job in run.jobs for name in job.submission.jobs}
    states, most = {run.state for run in sweep.runs}, most_at_once(sweep)
    record(
        f"{TRIALS} trials with parallel={AT_ONCE} on Slurm: jobs of the queue, and most at once",
        f"{len(names)} array job, {most} at once",
        f"1 job, at most {AT_ONCE}",
        len(names) == 1 and most <= AT_ONCE and states == {"completed"},
    )
    sweep = sweep_of("cancelled", 3000)
    until(lambda: [run.state for run in sweep.runs].count("running") == AT_ONCE and len(sweep.runs) == TRIALS)
    begun = time.perf_counter()
    sweep.cancel()
    until(lambda: {run.state for run in sweep.runs} == {"cancelled"})
    took_s = time.perf_counter() - begun
    record(f"{TRIALS} trials, cancelled", f"{took_s:.1f} s", f"{CANCEL_S:.0f} s", took_s <= CANCEL_S)


# -- pods


class Pods:
    """The two pods of a run on this machine."""

    def __init__(self, run: rlnb.Run) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        self._run = run
        self._env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}

    def start(self, node: int, **variables: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-P", "-m", "rlnb.pods", str(self._run.path)]
        named = ["unshare", "--uts", "sh", "-c", f'hostname pod-{node}; exec "$@"', "sh", *argv]
        env = {**os.environ, **self._env, "RANK": str(node), **variables}
        return subprocess.Popen(named, env=env, stderr=subprocess.DEVNULL)


def kill(pod: subprocess.Popen[bytes]) -> None:
    """End all processes of a pod at once."""
    if pod.poll() is None:
        for process in [*psutil.Process(pod.pid).children(recursive=True), psutil.Process(pod.pid)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    pod.wait()


def pods() -> None:
    launcher = rlnb.injected(nodes=2)
    refused = []
    for _ in range(ROUNDS):
        run = echo(launcher)
        begun = time.perf_counter()
        pod = Pods(run).start(0, WORLD_SIZE="4")
        until(lambda run=run: run.state == "failed")
        refused.append(time.perf_counter() - begun)
        assert "WORLD_SIZE" in run.result.error, run.result.error
        kill(pod)
    record(
        "a pod that refuses its variables: from its start to the notebook",
        seconds(refused),
        f"{REFUSED_S:.0f} s",
        max(refused) <= REFUSED_S,
    )
    again = []
    for killed in (0, 1) * 2:
        run = echo(launcher)
        pair = Pods(run)
        both = [pair.start(0), pair.start(1)]
        until(lambda run=run: run.progress[0] >= 15)
        kill(both[killed])
        begun = time.perf_counter()
        time.sleep(2.0)  # a cluster needs a moment to start a pod again
        both[killed] = pair.start(killed)
        until(lambda run=run: len(run.jobs) == 2 and run.state == "running" and run.jobs[-1].started is not None)
        again.append(time.perf_counter() - begun)
        run.cancel()
        for pod in both:
            kill(pod)
    record(
        "a pod is killed and started again after 2 s: until the training runs again from its checkpoint",
        seconds(again),
        f"{AGAIN_S:.0f} s",
        max(again) <= AGAIN_S,
    )


@contextlib.contextmanager
def with_slurm() -> Iterator[None]:
    cluster = slurm_rig.Slurm(Path(f"/tmp/rlnb-slurm-{os.getpid()}"), 4)
    try:
        cluster.up()
        yield
    finally:
        cluster.down()


@contextlib.contextmanager
def with_grid_engine() -> Iterator[None]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    cluster = grid_engine_rig.GridEngine(Path(f"/tmp/rlnb-sge-{os.getpid()}"), port=port)
    os.environ.update(cluster.env)
    try:
        cluster.up()
        yield
    finally:
        cluster.down()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parts = parser.parse_args().parts
    with tempfile.TemporaryDirectory(prefix="rlnb-queues-") as folder:
        rlnb.options.root = folder
        if "pods" in parts:
            pods()
        if {"ends", "array"} & {*parts}:
            with with_slurm():
                if "ends" in parts:
                    ends_at_once("Slurm", rlnb.slurm, "/nowhere/python")
                if "array" in parts:
                    array()
        if "ends" in parts:
            with with_grid_engine():
                ends_at_once("Grid Engine", rlnb.sge, "/nowhere/python")


if __name__ == "__main__":
    main()
