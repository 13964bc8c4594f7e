"""Steps/s of rlnb beside stock ``isaaclab train``, both alive at once and taking turns.

    python benchmarks/steps_per_s.py --rounds 10

A shared machine drifts by tens of percent within minutes, which drowns a difference of one percent between
processes that run one after the other. So each round starts both sides, and then pauses (SIGSTOP) one while the
other trains, a few seconds each, many times: both meet the same weather. rlnb's side is all that rlnb adds: its
agent is paused together with its worker, and the kernel waits in ``run.wait()`` while they run.

An iteration counts where it lies whole within a turn of its side. A round's ratio is rlnb's frames per second over
all its turns by stock's; the order of the turns changes from round to round.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
from against_isaaclab import CASES, Case, asset_root, stock_command
from results import ratio_interval, record

import rlnb
from rlnb.records.events import EventReader

ENDLESS = 100_000
LED_IN = 1
"""Iterations of each side before the first turn counts."""

Turn = tuple[float, float]


class Side:
    """One of the two: its processes, and where its event files are."""

    def __init__(self, processes: Callable[[], list[psutil.Process]], logs: Callable[[], Path]) -> None:
        self._processes, self._logs = processes, logs
        self.turns: list[Turn] = []

    def signal(self, number: int) -> None:
        """Send a signal to every process of this side."""
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def iterations(self) -> list[tuple[float, float]]:
        """Return the start of each iteration and its seconds, as the library logged them."""
        reader = EventReader(self._logs())
        reader.refresh()
        collection, learning = (reader.scalars.get(f"Perf/{part}", []) for part in ("collection_time", "learning_time"))
        return [(a[1] - a[2] - b[2], a[2] + b[2]) for a, b in zip(collection, learning, strict=False)]

    def seconds_per_iteration(self) -> float:
        """Return the mean duration of the iterations that lie whole within a turn."""
        inside = [
            seconds
            for start, seconds in self.iterations()
            if any(begun <= start and start + seconds <= ended for begun, ended in self.turns)
        ]
        return sum(inside) / len(inside)


@contextlib.contextmanager
def stock_side(case: Case, folder: Path) -> Iterator[Side]:
    """Start ``isaaclab train``."""
    with open(folder / "stock.log", "wb") as log:
        process = subprocess.Popen(stock_command(case, ENDLESS), cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    yield Side(lambda: tree(process.pid), lambda: folder / "logs")
    for member in tree(process.pid):
        member.kill()
    process.wait()


@contextlib.contextmanager
def our_side(case: Case) -> Iterator[tuple[Side, rlnb.Run]]:
    """Start the same through rlnb."""
    run = rlnb.train(case.task, num_envs=case.num_envs, max_iterations=ENDLESS, seed=7, device="cpu", warm=False)

    def processes() -> list[psutil.Process]:
        agents = [p for p in psutil.Process().children() if str(run.path) in " ".join(p.cmdline())]
        return [member for agent in agents for member in tree(agent.pid)]

    side = Side(processes, lambda: run.path / "logs")
    yield side, run
    side.signal(signal.SIGCONT)
    run.cancel()
    with contextlib.suppress(rlnb.RlnbError):
        run.wait()


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and all below it."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def round_of(case: Case, folder: Path, turns: int, turn_s: float, *, ours_first: bool) -> tuple[float, float]:
    """Return rlnb's and stock's iterations per second."""
    folder.mkdir()
    with stock_side(case, folder) as stock, our_side(case) as (ours, run):
        while min(len(side.iterations()) for side in (stock, ours)) < LED_IN:
            time.sleep(1)
        order: Sequence[Side] = (ours, stock) if ours_first else (stock, ours)
        stock.signal(signal.SIGSTOP)
        ours.signal(signal.SIGSTOP)
        for _ in range(turns):
            for side in order:
                side.signal(signal.SIGCONT)
                begun = time.time()
                if side is ours:
                    with contextlib.suppress(TimeoutError):
                        run.wait(timeout_s=turn_s)
                else:
                    time.sleep(turn_s)
                side.turns.append((begun, time.time()))
                side.signal(signal.SIGSTOP)
        for side in order:  # the last scalars of both reach the disk
            side.signal(signal.SIGCONT)
        time.sleep(2)
        return 1 / ours.seconds_per_iteration(), 1 / stock.seconds_per_iteration()


def compare(case: Case, rounds: int, turns: int, turn_s: float) -> None:
    """Run the rounds of one case and write the row."""
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.root = base / "rlnb"
    rlnb.task_card(case.task)
    from rlnb import warm

    warm.shut_down()
    pairs = []
    for index in range(rounds):
        ours, stock = round_of(case, base / str(index), turns, turn_s, ours_first=index % 2 == 0)
        pairs.append((ours, stock))
        print(f"{case.task} round {index}: {ours:.4f} and {stock:.4f} iterations/s, {ours / stock:.3f}", flush=True)
    median, low, high = ratio_interval(pairs)
    record(
        f"{case.task}, {case.num_envs} envs: steps/s, rlnb / stock",
        f"{median:.3f} ({low:.3f} to {high:.3f}), {rounds} rounds of {turns} turns of {turn_s:g} s",
        "median >= 0.98, low >= 0.95",
        median >= 0.98 and low >= 0.95,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--turn-s", type=float, default=8.0)
    parser.add_argument("--case", type=int, choices=range(len(CASES)), help="only this one")
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    for index, case in enumerate(CASES):
        if arguments.case in (None, index):
            compare(case, arguments.rounds, arguments.turns, arguments.turn_s)


if __name__ == "__main__":
    main()
