"""Kills one rank of a training under torchrun, again and again: the run must name that rank and the signal.

    python benchmarks/killed_rank.py --tries 20            # on this machine
    python benchmarks/killed_rank.py --tries 20 --nodes 2  # on two nodes of a Slurm that the script starts

The trainings are of the echo library, with 2 and 4 ranks; the rank is chosen by chance.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil
from results import record

import rlnb

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rig"))

from slurm import Slurm

START_S = 120.0


def rank_process(run: rlnb.Run, rank: int) -> psutil.Process:
    """Return the process of a rank."""
    for process in psutil.process_iter():
        try:
            if str(run.path) in process.cmdline() and process.environ().get("RANK") == str(rank):
                return process
        except psutil.Error:
            continue
    raise RuntimeError(f"rank {rank} of {run.id} has no process")


def error_after_kill(ranks: int, nodes: int, rank: int) -> str:
    """Return the error of a training after one of its ranks was killed."""
    run = rlnb.train(
        "Echo",
        library="echo",
        nproc_per_node=ranks // nodes,
        max_iterations=2000,
        agent={"iteration_s": 0.05},
        launcher=rlnb.slurm(nodes=nodes, walltime="00:10:00") if nodes > 1 else None,
        warm=False,
    )
    deadline = time.monotonic() + START_S
    while run.state != "running":
        if time.monotonic() > deadline:
            raise RuntimeError(f"{run.id} is {run.state} after {START_S:.0f} s")
        time.sleep(0.1)
    rank_process(run, rank).send_signal(signal.SIGKILL)
    try:
        run.wait(timeout_s=START_S)
    except rlnb.RunError as exc:
        return str(exc).splitlines()[0]
    return ""


def main() -> None:
    """Kill ranks and record the share of kills after which the run names them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=1)
    asked = parser.parse_args()
    tries, nodes = asked.tries, asked.nodes
    rng, named, others = random.Random(0), 0, []
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    cluster = Slurm(Path(tempfile.mkdtemp(prefix="rlnb-slurm-")), nodes)
    if nodes > 1:
        cluster.up()
    try:
        for number in range(tries):
            ranks = (2, 4)[number % 2]
            rank = rng.randrange(ranks)
            error = error_after_kill(ranks, nodes, rank)
            if f"rank {rank} on node {rank * nodes // ranks}" in error and "SIGKILL" in error:
                named += 1
            else:
                others.append(f"rank {rank} of {ranks}: {error}")
    finally:
        if nodes > 1:
            cluster.down()
    print(*others, sep="\n")
    record(
        f"killed rank, torchrun with 2 and 4 ranks on {'one node' if nodes == 1 else f'{nodes} nodes'}, echo",
        f"named with signal and node after {named} of {tries} kills",
        "all",
        named == tries,
    )


if __name__ == "__main__":
    main()
