"""Compares the steps/s of rlnb with stock ``isaaclab train``, with both running and taking turns.

    python benchmarks/steps_per_s.py --library rsl_rl
    python benchmarks/steps_per_s.py --auto                # rlnb's side with nproc_per_node="auto"
    python benchmarks/steps_per_s.py --case 0 --device cuda:0 --num-envs 4096

The speed of a shared machine drifts by tens of percent within minutes, which would hide a difference of one percent
between processes that run one after the other. Both sides are therefore started together. Then one side is paused
(SIGSTOP) while the other trains, for a few seconds each, many times, so that both see the same conditions. Several
pairs of rates come from the same two processes; then both are restarted. rlnb's side includes everything that rlnb
adds: its agent is paused together with its worker, and the kernel waits in ``run.wait()`` while they run.

A pair's ratio is rlnb's iterations per second in its own turns divided by stock's; the order of the turns changes from
pair to pair. The times at which iterations end come from rlnb's event files, which are flushed at once, and from
stock's output, because stock's event files are minutes late. Rates are measured only between ends of iterations: a rate
between two arbitrary steps would miss some of the learning, during which there are no steps.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from against_isaaclab import CASES, Case, asset_root, stock_command
from results import ratio_interval, record

import rlnb

ENDLESS = 100_000
LED_IN = 2
"""Number of iterations of each side before the first turn."""

Turn = tuple[float, float]
Mark = tuple[float, float]
"""A time, and the number of iterations finished by then."""

PRINTED = {
    "rsl_rl": (re.compile(rb"Learning iteration (\d+)/"), lambda horizon: 1),
    "rl_games": (re.compile(rb"epoch: (\d+)/"), lambda horizon: 1),
    "skrl": (re.compile(rb"\| (\d+)/\d+ \["), lambda horizon: horizon),  # its progress bar counts timesteps
}
"""Pattern of the counter in stock's output, and the number of its counts per iteration."""


AUTO = (
    (Case("Isaac-Cartpole-Camera-Direct", 32, 0), 1.25),
    (Case("Isaac-Ant-Direct", 1024, 0), 1.0),
    (Case("Isaac-Cartpole-Direct", 512, 0), 0.97),
)
"""Tasks, each with the lower bound of its ratio with ``nproc_per_node="auto"``."""


class Side:
    """One side of the comparison: its processes, and the times at which its iterations ended."""

    def __init__(self, processes: Callable[[], list[psutil.Process]], marks: Callable[[], list[Mark]]) -> None:
        self._processes, self.marks = processes, marks
        self.turns: list[Turn] = []

    def signal(self, number: int) -> None:
        """Send a signal to every process of this side."""
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def rate(self) -> float:
        """Return the iterations per second of this side's turns, between the first and the last mark in them."""
        within = [mark for mark in self.marks() if any(begun <= mark[0] <= ended for begun, ended in self.turns)]
        (first, before), (last, after) = within[0], within[-1]
        active = sum(max(0.0, min(ended, last) - max(begun, first)) for begun, ended in self.turns)
        return (after - before) / active


@contextlib.contextmanager
def stock_side(case: Case, library: str, folder: Path, device: str) -> Iterator[Side]:
    """Start ``isaaclab train``, and record the times at which its output reports an iteration."""
    pattern, per_iteration = PRINTED[library]
    process = subprocess.Popen(
        stock_command(case, ENDLESS, library, device),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    output = process.stdout.fileno()
    marks: list[Mark] = []

    def read() -> None:
        with open(folder / "stock.log", "wb") as log:
            pending = b""
            while data := os.read(output, 1 << 16):
                now = time.time()
                log.write(data)
                *parts, pending = re.split(rb"[\r\n]", pending + data)
                counts = [int(match.group(1)) for part in parts if (match := pattern.search(part))]
                done = counts[-1] // per_iteration(horizon) if counts else 0
                if done > (marks[-1][1] if marks else 0):
                    marks.append((now, done))

    horizon = horizon_of(case, library)
    reader = threading.Thread(target=read)
    reader.start()
    yield Side(lambda: tree(process.pid), lambda: list(marks))
    for member in tree(process.pid):
        member.kill()
    process.wait()
    reader.join()


def horizon_of(case: Case, library: str) -> int:
    """Return the env steps per iteration from the task's agent config."""
    key = {"rsl_rl": "num_steps_per_env", "rl_games": "params.config.horizon_length", "skrl": "agent.rollouts"}[library]
    horizon: int = rlnb.task_card(case.selected).agents[library].fields[key].value
    return horizon


@contextlib.contextmanager
def our_side(case: Case, library: str, device: str, **arguments: Any) -> Iterator[tuple[Side, rlnb.Run]]:
    """Start the same training through rlnb."""
    run = rlnb.train(
        case.selected,
        library=library,
        num_envs=case.num_envs,
        max_iterations=ENDLESS,
        seed=7,
        device=device,
        warm=False,
        **arguments,
    )

    def processes() -> list[psutil.Process]:
        living = (p for p in psutil.Process().children() if p.status() != psutil.STATUS_ZOMBIE)
        agents = [p for p in living if str(run.path) in " ".join(p.cmdline())]
        return [member for agent in agents for member in tree(agent.pid)]

    def marks() -> list[Mark]:
        fps = run.metrics.get("fps")
        return list(zip(fps.wall_time_s, fps.iterations, strict=True)) if fps else []

    side = Side(processes, marks)
    yield side, run
    side.signal(signal.SIGCONT)
    run.cancel()
    with contextlib.suppress(rlnb.RlnbError):
        run.wait()


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and all its descendants."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def pairs_of(
    case: Case, library: str, folder: Path, pairs: int, turns: int, turn_s: float, device: str, **arguments: Any
) -> Iterator[tuple[float, float]]:
    """Start both sides; yield rlnb's and stock's iterations per second ``pairs`` times."""
    folder.mkdir()
    with (
        stock_side(case, library, folder, device) as stock,
        our_side(case, library, device, **arguments) as (ours, run),
    ):
        while not all((marks := side.marks()) and marks[-1][1] >= LED_IN for side in (stock, ours)):
            time.sleep(1)
        for side in (stock, ours):
            side.signal(signal.SIGSTOP)
        for pair in range(pairs):
            order: Sequence[Side] = (ours, stock) if pair % 2 == 0 else (stock, ours)
            for side in order:
                side.turns = []
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
            yield ours.rate(), stock.rate()  # rlnb's scalars are flushed as soon as they are logged


def ratios(
    case: Case, library: str, starts: int, pairs: int, turns: int, turn_s: float, device: str, **arguments: Any
) -> list[tuple[float, float]]:
    """Measure one case; return rlnb's and stock's iterations per second of each pair."""
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.root = base / "rlnb"
    rlnb.task_card(case.selected)
    from rlnb.simulation import simulator

    simulator.shut_down()
    if arguments:  # the number that "auto" stands for is measured once, on the idle machine
        rlnb.train(
            case.selected, library=library, num_envs=case.num_envs, device=device, max_iterations=1, **arguments
        ).wait()
    found = []
    for start in range(starts):
        for ours, stock in pairs_of(case, library, base / str(start), pairs, turns, turn_s, device, **arguments):
            found.append((ours, stock))
            text = f"{ours:.4f} and {stock:.4f} iterations/s, {ours / stock:.3f}"
            print(f"{library}, {case.task} start {start}: {text}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=sorted(PRINTED), default="rsl_rl")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=4, help="pairs per start of both sides")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--turn-s", type=float, default=8.0)
    parser.add_argument("--auto", action="store_true", help='rlnb with nproc_per_node="auto"')
    parser.add_argument("--case", type=int, choices=range(len(AUTO)), help="run only this case")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--num-envs", type=int, help="number of envs in place of the case's")
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    cases = AUTO if arguments.auto else tuple((case, 0.98) for case in CASES)
    for index, (case, least) in enumerate(cases):
        if arguments.case not in (None, index):
            continue
        case = replace(case, num_envs=arguments.num_envs or case.num_envs)
        options = {"nproc_per_node": "auto"} if arguments.auto else {}
        how_often = arguments.starts, arguments.pairs, arguments.turns, arguments.turn_s
        pairs = ratios(case, arguments.library, *how_often, arguments.device, **options)
        median, low, high = ratio_interval(pairs)
        how = 'nproc_per_node="auto" / stock' if arguments.auto else "rlnb / stock"
        frames = statistics.median(ours for ours, _ in pairs) * case.num_envs * horizon_of(case, arguments.library)
        gpu = "" if arguments.device == "cpu" else "GPU, "
        holds = median >= least if arguments.auto else median >= least and low >= 0.95
        record(
            f"{gpu}{arguments.library}, {case.task}, {case.num_envs} envs: steps/s, {how}",
            f"{median:.3f} ({low:.3f} to {high:.3f}), {len(pairs)} pairs in {arguments.starts} starts, "
            f"{arguments.turns} turns of {arguments.turn_s:g} s each; {frames:,.0f} steps/s",
            f"median >= {least}" + ("" if arguments.auto else ", low >= 0.95"),
            holds,
        )


if __name__ == "__main__":
    main()
