"""Two trainings that take turns: one is paused (SIGSTOP) while the other trains.

The speed of a shared machine drifts by tens of percent within minutes, which would hide a difference of one percent
between processes that run one after the other. Both sides are therefore started together and take turns of a few
seconds, so that both see the same conditions. Several pairs of rates come from the same two processes.

A side of rlnb includes everything that rlnb adds: its agent is paused together with its worker, and the kernel waits in
``run.wait()`` while they run. The times at which iterations end come from rlnb's event files, which are flushed at
once, and from stock's output, because stock's event files are minutes late. Rates are measured only between ends of
iterations: a rate between two arbitrary steps would miss some of the learning, during which there are no steps.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from against_isaaclab import Case, stock_command

import rlnb

ENDLESS = 100_000
LED_IN = 2
"""Number of iterations of each side before the first turn."""
MARKS = 3
"""Least number of ends of iterations in the turns of a pair."""
LATE_S = 120.0
"""Seconds after which a turn ends without them."""

Turn = tuple[float, float]
"""The times at which a turn began and ended."""
Mark = tuple[float, float]
"""A time, and the number of iterations finished by then."""

PRINTED = {
    "rsl_rl": (re.compile(rb"Learning iteration (\d+)/"), lambda horizon, num_envs: 1),
    "rl_games": (re.compile(rb"epoch: (\d+)/"), lambda horizon, num_envs: 1),
    "skrl": (re.compile(rb"\| (\d+)/\d+ \["), lambda horizon, num_envs: horizon),  # its progress bar counts timesteps
    "sb3": (re.compile(rb"total_timesteps\s*\|\s*(\d+)"), lambda horizon, num_envs: horizon * num_envs),
}
"""Pattern of the counter in stock's output, and the number of its counts per iteration."""
HORIZONS = {
    "rsl_rl": "num_steps_per_env",
    "rl_games": "params.config.horizon_length",
    "skrl": "agent.rollouts",
    "sb3": "n_steps",
}
"""Agent value with the env steps per iteration."""


class Side:
    """One side of a comparison.

    Args:
        processes: Returns its processes.
        marks: Returns the times at which its iterations ended.
        wait: Waits for so many seconds while it trains.
    """

    def __init__(
        self,
        processes: Callable[[], list[psutil.Process]],
        marks: Callable[[], list[Mark]],
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._processes, self.marks, self.wait = processes, marks, wait
        self.turns: list[Turn] = []

    def signal(self, number: int) -> None:
        """Send a signal to every process of this side."""
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def take(self, seconds: float, settle_s: float = 0.0) -> None:
        """Train for some time, and for longer if hardly an iteration has ended in the turns of this pair.

        Args:
            seconds: Length of the turn.
            settle_s: Time before the turn, in which the training adapts to the state of the machine.
        """
        self.signal(signal.SIGCONT)
        if settle_s:
            self.wait(settle_s)
        begin_s = time.time()
        self.turns.append((begin_s, begin_s + LATE_S))
        self.wait(seconds)
        while len(self._seen()) < MARKS and time.time() < begin_s + LATE_S:
            self.wait(seconds / 4)
        self.turns[-1] = begin_s, time.time()
        self.signal(signal.SIGSTOP)

    def rate(self) -> float:
        """Return the iterations per second of this side's turns, between the first and the last mark in them."""
        (first, before), *_, (last, after) = self._seen()
        active = sum(max(0.0, min(ended, last) - max(begun, first)) for begun, ended in self.turns)
        return (after - before) / active

    def _seen(self) -> list[Mark]:
        return [mark for mark in self.marks() if any(begun <= mark[0] <= ended for begun, ended in self.turns)]


@contextlib.contextmanager
def stock_side(
    case: Case, library: str, folder: Path, device: str, environment: Mapping[str, str] | None = None
) -> Iterator[Side]:
    """Start ``isaaclab train``, and record the times at which its output reports an iteration."""
    pattern, counts_of = PRINTED[library]
    horizon = horizon_of(case, library)
    per_iteration = counts_of(horizon, case.num_envs)
    printing = ["--log_interval", str(per_iteration)] if library == "sb3" else []  # a number of timesteps
    process = subprocess.Popen(
        [*stock_command(case, ENDLESS, library, device), *printing],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **(environment or {}), "PYTHONUNBUFFERED": "1"},
        start_new_session=True,  # as in a terminal of its own: Linux shares the cores between sessions
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
                done = counts[-1] // per_iteration if counts else 0
                if done > (marks[-1][1] if marks else 0):
                    marks.append((now, done))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield Side(lambda: tree(process.pid), lambda: list(marks))
    finally:
        for member in tree(process.pid):
            member.kill()
        process.wait()
        reader.join()
    # Not in the finally: an error of the comparison is the one to see.
    assert marks, f"isaaclab train has finished no iteration; its output is in {folder / 'stock.log'}"


def horizon_of(case: Case, library: str) -> int:
    """Return the env steps per iteration."""
    key = HORIZONS[library]
    horizon: int = case.agent.get(key) or case.selected.card().agents[library].fields[key].value
    return horizon


@contextlib.contextmanager
def our_side(
    case: Case, library: str, device: str, environment: Mapping[str, str] | None = None, **arguments: Any
) -> Iterator[tuple[Side, rlnb.Run]]:
    """Start the same training through rlnb, with environment variables of its own."""
    with _variables(environment or {}):
        run = rlnb.train(
            case.selected,
            library=library,
            num_envs=case.num_envs,
            max_iterations=ENDLESS,
            seed=7,
            device=device,
            agent=case.agent,
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

    def wait(seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            run.wait(timeout_s=seconds)

    side = Side(processes, marks, wait)
    try:
        yield side, run
    finally:
        side.signal(signal.SIGCONT)
        run.cancel()
        with contextlib.suppress(rlnb.RlnbError):
            run.wait()


@contextlib.contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and all its descendants."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def led_in(sides: Sequence[Side], until_s: float = float("inf")) -> None:
    """Wait until each side has finished a few iterations, and pause all.

    Args:
        sides: The sides.
        until_s: Time by which they have to have finished them (:func:`time.monotonic`).

    Raises:
        TimeoutError: They have not.
    """
    while not all((marks := side.marks()) and marks[-1][1] >= LED_IN for side in sides):
        if time.monotonic() > until_s:
            raise TimeoutError("the trainings have not finished their first iterations in time")
        time.sleep(0.5)
    for side in sides:
        side.signal(signal.SIGSTOP)


def pairs(one: Side, other: Side, turns: int, turn_s: float) -> Iterator[tuple[float, float]]:
    """Yield the iterations per second of two paused sides, again and again; the order changes from pair to pair."""
    for number in range(ENDLESS):
        order = (one, other) if number % 2 == 0 else (other, one)
        for side in order:
            side.turns = []
        for _ in range(turns):
            for side in order:
                side.take(turn_s)
        yield one.rate(), other.rate()  # rlnb's scalars are flushed as soon as they are logged
