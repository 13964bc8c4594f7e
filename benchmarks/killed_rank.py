"""Kills one rank of a training under torchrun, again and again: the run must name that rank and the signal.

    python benchmarks/killed_rank.py --tries 20

The trainings are of the echo library, with 2 and 4 ranks on this machine; the rank is chosen by chance.
"""

from __future__ import annotations

import argparse
import random
import signal
import tempfile
import time
from pathlib import Path

import psutil
from results import record

import rlnb

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


def error_after_kill(ranks: int, rank: int) -> str:
    """Return the error of a training after one of its ranks was killed."""
    run = rlnb.train(
        "Echo", library="echo", nproc_per_node=ranks, max_iterations=2000, agent={"iteration_s": 0.05}, warm=False
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
    tries = parser.parse_args().tries
    rng, named, others = random.Random(0), 0, []
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    for number in range(tries):
        ranks = (2, 4)[number % 2]
        rank = rng.randrange(ranks)
        error = error_after_kill(ranks, rank)
        if f"rank {rank} on node 0" in error and "SIGKILL" in error:
            named += 1
        else:
            others.append(f"rank {rank} of {ranks}: {error}")
    print(*others, sep="\n")
    record(
        "killed rank, torchrun with 2 and 4 ranks on one node, echo",
        f"named with signal and node after {named} of {tries} kills",
        "all",
        named == tries,
    )


if __name__ == "__main__":
    main()
