"""Trainings on a cluster: a real Slurm with four nodes on this machine, and real Isaac Lab where it matters.

    python benchmarks/cluster.py
    python benchmarks/cluster.py --parts end overhead

- ``end``: the time until a cancelled training has no process left on any node, and until a killed rank is reported.
- ``preflight``: the duration of the checks of three nodes.
- ``overhead``: the time from ``rlnb.train()`` to the first iteration, compared with the same ranks started by hand with
  srun and torchrun.
- ``walltime``: the iterations lost by a training that the queue's walltime ends several times.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from against_isaaclab import asset_root
from results import ratio_interval, record

import rlnb
from rlnb.launchers import LocalLauncher
from rlnb.metrics.events import EventReader
from rlnb.plugin import Manifest, Problem

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rig"))
import slurm as rig

TASK, NUM_ENVS, ITERATIONS = "Isaac-Cartpole-Direct", 64, 3
ROUNDS = 10
WALLTIME = "00:20:00"
PARTS = ("end", "preflight", "overhead", "walltime")
SAVED_EVERY, INTERRUPTIONS = 10, 3
"""Iterations between checkpoints, and the number of walltimes after which the training resumes."""


def echo(nodes: int, **agent: Any) -> rlnb.Run:
    """Start a training without a simulator, and wait until it runs."""
    launcher = rlnb.slurm(nodes=nodes, walltime=WALLTIME)
    run = rlnb.train(
        "Echo", library="echo", max_iterations=5000, launcher=launcher, agent={"iteration_s": 0.1, **agent}
    )
    until(lambda: run.state not in ("queued", "starting"))
    until(lambda: run.state != "running" or run.progress[0] > 2)
    return run


def processes(run: rlnb.Run) -> list[psutil.Process]:
    """Return all processes of a run on all nodes."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE and run.id in " ".join(process.info["cmdline"] or ())
    ]


def until(fact: Callable[[], object], poll_s: float = 0.02) -> float:
    """Wait until a condition holds; return the seconds this took."""
    begun = time.perf_counter()
    while not fact():
        time.sleep(poll_s)
    return time.perf_counter() - begun


def gone(run: rlnb.Run) -> float:
    """Wait until no process of a run is left on any node; return the seconds this took."""
    return until(lambda: not processes(run))


def end() -> None:
    cancelled, crashed, hosts = [], [], []
    for _ in range(ROUNDS):
        run = echo(2)
        run.cancel()
        cancelled.append(gone(run))
        run = echo(2)
        victim = next(p for p in processes(run) if p.environ().get("RANK") == "1" and "rlnb.worker" in p.cmdline())
        begun = time.perf_counter()
        victim.kill()
        with contextlib.suppress(rlnb.RunError):
            run.wait()
        result = run.jobs[-1].result
        assert result is not None
        assert "rank 1 on node 1" in result.error
        crashed.append(time.perf_counter() - begun)
        gone(run)
        run = echo(2)
        psutil.Process(run.jobs[-1].handle["pid"]).send_signal(signal.SIGKILL)
        hosts.append(gone(run))
        while run.state != "lost":
            time.sleep(0.1)
        assert len(run.jobs) == 1
    record(
        "2 Slurm nodes: from cancel() until no process is left",
        f"worst of {ROUNDS}: {max(cancelled):.2f} s, median {statistics.median(cancelled):.2f} s",
        "<= 5 s",
        max(cancelled) <= 5.0,
    )
    record(
        "2 Slurm nodes: from the kill of a rank until the kernel names it",
        f"worst of {ROUNDS}: {max(crashed):.2f} s, median {statistics.median(crashed):.2f} s",
        "<= 10 s",
        max(crashed) <= 10.0,
    )
    record(
        "2 Slurm nodes: from the kill of the host until no process is left; the run is lost and not resumed",
        f"worst of {ROUNDS}: {max(hosts):.2f} s",
        "no process left; either lost or resumed, never both",
        True,
    )


def preflight() -> None:
    took = []
    for _ in range(ROUNDS):
        run = echo(3)
        log = (run.jobs[-1].folder.path / "host.log").read_text()
        took.append(float(re.findall(r"passed the checks \(([\d.]+) s\)", log)[0]))
        run.cancel()
        gone(run)
    record(
        "preflight on 3 Slurm nodes",
        f"worst of {ROUNDS}: {max(took):.1f} s",
        "<= 20 s beyond process start",
        max(took) <= 20.0,
    )


def by_hand(folder: Path, number: int) -> float:
    """Return the seconds until the first iteration of ranks started by hand with srun and torchrun."""
    manifest = rlnb.train(  # writes the run's folder, so that the ranks do the same work as rlnb's
        TASK, num_envs=NUM_ENVS, max_iterations=ITERATIONS, nproc_per_node=1, device="cpu", launcher=Shelf(), warm=False
    )
    job = manifest.jobs[-1].folder
    command = (
        f"{sys.executable} -m torch.distributed.run --nnodes=2 --nproc_per_node=1 --node_rank=$SLURM_PROCID "
        f"--master_addr=127.0.0.1 --master_port={29500 + number} -m rlnb.worker train {manifest.path} {job.path}"
    )
    begun = time.time()
    with open(folder / f"srun-{number}.log", "wb") as log:
        srun = subprocess.Popen(["srun", "-N2", "-n2", "bash", "-c", command], stdout=log, stderr=log)
    took = first_iteration(manifest) - begun
    srun.wait()
    return took


def first_iteration(run: rlnb.Run) -> float:
    """Wait for the first iteration; return the time of its log entry, in seconds since the epoch."""
    until(lambda: len(run.metrics["fps"].values) > 0, poll_s=0.2)
    return run.metrics["fps"].points[0][1]


class Shelf(LocalLauncher):
    """Starts nothing, so that ``rlnb.train`` only writes the run's folder."""

    nodes = 2

    def check(self, manifest: Manifest) -> list[Problem]:
        return []

    def submit(self, command: object, job_dir: Path) -> dict[str, Any]:
        return {"host": "", "pid": 0, "created_s": 0.0}


def overhead() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.task(TASK).card()
    rlnb.simulator().close()
    pairs = []
    for number in range(ROUNDS):
        pair = {}
        for side in ("hand", "rlnb") if number % 2 else ("rlnb", "hand"):
            if side == "hand":
                pair[side] = by_hand(folder, number)
                continue
            begun = time.time()
            run = rlnb.train(
                TASK,
                num_envs=NUM_ENVS,
                max_iterations=ITERATIONS,
                device="cpu",
                launcher=rlnb.slurm(nodes=2, walltime=WALLTIME),
                warm=False,
            )
            pair[side] = first_iteration(run) - begun
            run.wait()
            gone(run)
        print(pair, flush=True)
        pairs.append((pair["rlnb"], pair["hand"]))
    more = sorted(ours - theirs for ours, theirs in pairs)
    ratio, low, high = ratio_interval(pairs)
    record(
        f"{TASK}, 2 Slurm nodes: start to first iteration, rlnb - srun torchrun by hand",
        f"median {statistics.median(more):+.1f} s, worst {max(more):+.1f} s (by hand "
        f"{statistics.median(hand for _, hand in pairs):.1f} s; {ratio:.2f}, {low:.2f} to {high:.2f}), {ROUNDS} pairs",
        "<= +3 s",
        statistics.median(more) <= 3.0,
    )


def walltime() -> None:
    run = rlnb.train(
        TASK,
        num_envs=NUM_ENVS,
        max_iterations=100_000,
        device="cpu",
        agent={"save_interval": SAVED_EVERY},
        launcher=rlnb.slurm(nodes=2, walltime="00:01:15", grace_s=15, max_restarts=INTERRUPTIONS),
        warm=False,
    )
    until(lambda: len(run.jobs) > INTERRUPTIONS and run.state == "running", poll_s=1.0)
    time.sleep(20.0)
    run.cancel()
    gone(run)
    ran = EventReader(run.path / "logs", without="system")
    ran.refresh()
    logged = Counter(step for step, _, _ in ran.scalars["Perf/total_fps"])
    lost = []
    for job in run.jobs[1:]:
        first = job.started.first_iteration
        again = [step for step, times in logged.items() if times > 1 and first <= step < first + 2 * SAVED_EVERY]
        lost.append(len(again))
    curve = list(run.metrics["reward"].iterations)
    whole = curve == list(range(len(curve)))
    frames = NUM_ENVS * run.started.horizon
    record(
        f"{TASK}, 2 Slurm nodes, ended by the walltime {len(lost)} times: lost iterations, and the curve",
        f"{', '.join(str(count) for count in lost)} iterations of {frames} frames, checkpoints every {SAVED_EVERY}; "
        f"{len(curve)} points, {'each once' if whole else 'WITH GAPS OR DUPLICATES'}",
        "<= one checkpoint interval, curve continuous",
        bool(lost) and max(lost) <= SAVED_EVERY and whole,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parts = parser.parse_args().parts
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    os.environ["OMP_NUM_THREADS"] = "1"
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    slurm = rig.Slurm(Path(tempfile.mkdtemp(prefix="rlnb-slurm-")), 4, port=26817)
    slurm.up()
    try:
        for part in parts:
            {"end": end, "preflight": preflight, "overhead": overhead, "walltime": walltime}[part]()
    finally:
        slurm.down()


if __name__ == "__main__":
    main()
