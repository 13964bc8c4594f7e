"""Measures trainings on the CPU beside other work: stock ``isaaclab train``, rlnb, and rlnb of another checkout.

    git worktree add /path/to/other 4e8e2ae1
    python benchmarks/busy.py beside --case 0 --other /path/to/other --name 4e8e2ae1
    python benchmarks/busy.py beside --ranks 2 --other /path/to/other --name 4e8e2ae1
    python benchmarks/busy.py settings --case 0    # stock with each number of threads, and each way of waiting
    python benchmarks/busy.py living               # beside two busy processes and a warm simulator at work
    python benchmarks/busy.py two                  # two trainings at once
    python benchmarks/busy.py quota                # a quota of one core; needs root
    python benchmarks/busy.py scalars --case 0     # those of 10 iterations, equal to stock's, busy or not

All sides are started first and take turns (``turns.py``), each of them in each state of the machine in every round. A
ratio is that of two turns of the same round. A busy process is an endless loop of Python.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from against_isaaclab import Case, asset_root, stock_command
from not_worse import environment as environment_of
from results import ratio_interval, record
from turns import ENDLESS, Side, horizon_of, led_in, stock_side, tree

import rlnb
from rlnb.metrics.events import EventReader
from rlnb.spec import ENDED

CARTPOLE = "Isaac-Cartpole-Direct"
CASES = (
    (Case(CARTPOLE, 512, 0), "rsl_rl"),
    (Case(CARTPOLE, 64, 0), "rsl_rl"),
    (Case(CARTPOLE, 4096, 0), "rsl_rl"),
    (Case("Isaac-Ant-Direct", 512, 0), "rsl_rl"),
    (Case("Isaac-Cartpole-Camera-Direct", 32, 0, agent={"num_steps_per_env": 8}), "rsl_rl"),
    (Case(CARTPOLE, 512, 0), "skrl"),
    (Case(CARTPOLE, 512, 0), "rl_games"),
    (Case(CARTPOLE, 512, 0), "sb3"),
)
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "stock": {},
    "one thread": {"OMP_NUM_THREADS": "1"},
    "passive": {"OMP_WAIT_POLICY": "PASSIVE"},
    "100 spins": {"GOMP_SPINCOUNT": "100"},
    "1,000 spins": {"GOMP_SPINCOUNT": "1000"},
    "3,000 spins": {"GOMP_SPINCOUNT": "3000"},
    "10,000 spins": {"GOMP_SPINCOUNT": "10000"},
}
"""Variables of stock's trainings."""
GROUP = Path("/sys/fs/cgroup/cpu/rlnb-busy")
"""Group of the first version of cgroups with a quota of one core."""
KERNEL = """
import contextlib, os, sys, threading
import rlnb

def wait():
    with contextlib.suppress(rlnb.RlnbError):
        run.wait()

rlnb.options.warm = False
run = rlnb.train(
    {task!r}, library={library!r}, num_envs={num_envs}, max_iterations={endless}, seed=7, device="cpu", agent={agent!r},
    nproc_per_node={ranks}, launcher=rlnb.local(max_running={at_once}) if {at_once} > 1 else None,
)
print(run.path, flush=True)
sys.stdout = open(os.devnull, "w")  # for the lines of the wait
waiting = threading.Thread(target=wait)
waiting.start()
sys.stdin.read()
run.cancel()
waiting.join()
"""
HERE = Path(__file__).resolve().parents[1]
"""This checkout."""
SETTLE_S = 2.0
"""Time before the first turn of each side in a state. rlnb needs 0.5 s to see that a machine is busy, and 1 s to see
that it is idle."""
ITERATIONS = 10
"""Iterations whose scalars are compared."""
ON_AND_OFF_S = 4.0
"""Seconds for which the machine is busy, and then idle, while they are computed."""
TIMED = ("Perf/", "performance/", "time/")
"""Beginnings of the tags of times."""
OWN = "Metrics/success_rate"
"""Tag that rlnb measures in its own way: over the last whole episodes."""
State = contextlib.AbstractContextManager[object]
Rates = dict[tuple[str, str], list[float]]
"""Iterations per second of each round, by state and side."""


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep so many processes busy, each in a session of its own, between which Linux shares the cores."""
    argv = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(argv, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def busy_and_living() -> Iterator[None]:
    """Keep two processes busy, and the warm simulator with previews."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            rlnb.preview("Isaac-Cartpole-Camera-Direct", num_envs=4)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        with busy(2):
            yield
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def ours(
    case: Case, library: str, folder: Path, *, checkout: Path = HERE, ranks: int = 1, at_once: int = 1
) -> Iterator[Side]:
    """Start a training with rlnb, in a kernel of its own that waits for it, and is paused with it.

    Args:
        case: What to train.
        library: RL library.
        folder: Folder of its queue and its runs.
        checkout: Sources of rlnb.
        ranks: Worker processes of the training.
        at_once: Trainings that may run in its queue at the same time.
    """
    folder.mkdir(exist_ok=True)
    arguments = {
        "task": case.task,
        "library": library,
        "num_envs": case.num_envs,
        "endless": ENDLESS,
        "agent": dict(case.agent),
        "ranks": ranks,
        "at_once": at_once,
    }
    with open(folder / f"kernel-{time.time_ns()}.log", "wb") as log:
        kernel = subprocess.Popen(
            [sys.executable, "-P", "-c", KERNEL.format(**arguments)],
            cwd=folder,
            env=environment_of(checkout, folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # as a kernel of Jupyter
        )
    assert kernel.stdout is not None
    run = rlnb.get_run(Path(kernel.stdout.readline().strip()))

    def marks() -> list[tuple[float, float]]:
        fps = run.metrics.get("fps")
        return list(zip(fps.wall_time_s, fps.iterations, strict=True)) if fps else []

    side = Side(lambda: tree(kernel.pid), marks)
    try:
        led_in([side])
        assert run.started is not None
        if checkout == HERE:
            print(f"threads of rlnb: {run.started.threads}, {run.started.threads_why}", flush=True)
        yield side
    finally:
        side.signal(signal.SIGCONT)
        kernel.communicate()


def rates(
    sides: Mapping[str, Side],
    states: Mapping[str, int],
    arguments: argparse.Namespace,
    only_idle: Sequence[str] = (),
) -> Rates:
    """Let each side train in each state, again and again.

    Args:
        sides: The sides by name.
        states: The number of busy processes of each state; a negative number adds a simulator.
        arguments: Number of rounds, turns of each side in each state of a round, and their length.
        only_idle: Sides that do not train beside busy processes.
    """
    found: Rates = {}
    for number in range(arguments.rounds):
        for state, count in states.items():
            names = list(sides)[number % len(sides) :] + list(sides)[: number % len(sides)]
            names = [name for name in names if not count or name not in only_idle]
            with busy_and_living() if count < 0 else busy(count):
                for name in names:
                    sides[name].turns = []
                for name in names * arguments.turns:
                    sides[name].take(arguments.turn_s, SETTLE_S if not sides[name].turns else 0.0)
                for name in names:
                    found.setdefault((state, name), []).append(sides[name].rate())
            text = ", ".join(f"{name} {found[state, name][-1]:.3f}" for name in names)
            print(f"{number}, {state}: {text} iterations/s", flush=True)
    return found


def pairs(found: Rates, one: tuple[str, str], other: tuple[str, str]) -> list[tuple[float, float]]:
    """Return the pairs of rates of two sides or states."""
    return list(zip(found[one], found[other], strict=True))


def note(what: str, found: Sequence[tuple[float, float]], least: float, low_least: float = 0.0) -> None:
    """Record a ratio."""
    median, low, high = ratio_interval(found)
    bound = f"median >= {least:g}" + (f", low >= {low_least:g}" if low_least else "")
    record(
        what, f"{median:.3f} ({low:.3f} to {high:.3f}), {len(found)} pairs", bound, median >= least and low >= low_least
    )


@contextlib.contextmanager
def started(sides: Mapping[str, contextlib.AbstractContextManager[Side]]) -> Iterator[dict[str, Side]]:
    """Start sides one after the other, and pause each once it trains."""
    with contextlib.ExitStack() as stack:
        living = {}
        for name, manager in sides.items():
            living[name] = stack.enter_context(manager)
            led_in([living[name]])
        yield living


def beside(case: Case, library: str, base: Path, arguments: argparse.Namespace) -> None:
    """Compare rlnb with stock and with another checkout on an idle machine, and beside busy processes.

    Stock has no ranks on a CPU.
    """
    (base / "stock").mkdir()
    ranks = arguments.ranks
    managers = {"now": ours(case, library, base / "now", ranks=ranks)}
    if ranks == 1:
        managers["stock"] = stock_side(case, library, base / "stock", "cpu")
    if arguments.other:
        managers["before"] = ours(case, library, base / "before", checkout=arguments.other, ranks=ranks)
    states = {"idle machine": 0, "beside one busy process": 1, "beside two busy processes": 2}
    states = dict(list(states.items())[: arguments.busy + 1])
    with started(managers) as sides:
        alone = [name for name in sides if arguments.alone and name != "now"]
        found = rates(sides, states, arguments, alone)
    what = f"{library}, {case.task}, {case.num_envs} envs" + (f", {ranks} ranks" if ranks > 1 else "")
    frames = statistics.median(found["idle machine", "now"]) * case.num_envs * horizon_of(case, library)
    print(f"{what}: {frames:,.0f} steps/s on an idle machine")
    for state in states:
        idle = state == "idle machine"
        if not idle:
            least = 0.85 if state == "beside one busy process" else 0.0
            note(f"{what}: steps/s {state}, / idle", pairs(found, (state, "now"), ("idle machine", "now")), least)
        for name, other in (("stock", "stock"), ("before", arguments.name)):
            if (state, name) in found:
                first = (case, library, name) == (*CASES[0], "stock") and state == "beside one busy process"
                least = 1.6 if first else 0.98
                note(
                    f"{what}: steps/s, {state}, rlnb / {other}",
                    pairs(found, (state, "now"), (state, name)),
                    least,
                    0.95 if idle else 0.0,
                )


def settings(case: Case, library: str, base: Path, arguments: argparse.Namespace) -> None:
    """Print what stock reaches with each setting of threads, relative to stock as it is on an idle machine."""
    managers = {}
    for number, (name, variables) in enumerate(SETTINGS.items()):
        (folder := base / str(number)).mkdir()
        managers[name] = stock_side(case, library, folder, "cpu", variables)
    states = {"idle": 0, "one busy process": 1, "two busy processes": 2}
    with started(managers) as sides:
        found = rates(sides, states, arguments)
    for state, name in itertools.product(states, SETTINGS):
        median, low, high = ratio_interval(pairs(found, (state, name), ("idle", "stock")))
        print(f"{library}, {case.task}, {case.num_envs} envs, {state}, {name}: {median:.3f} ({low:.3f} to {high:.3f})")


def living(case: Case, library: str, base: Path, arguments: argparse.Namespace) -> None:
    """Compare rlnb with stock beside two busy processes and a warm simulator at work."""
    rlnb.preview("Isaac-Cartpole-Camera-Direct", num_envs=4)  # so that it lives
    (base / "stock").mkdir()
    with started(
        {"stock": stock_side(case, library, base / "stock", "cpu"), "now": ours(case, library, base / "now")}
    ) as sides:
        found = rates(sides, {"idle": 0, "full": -1}, arguments)
    beside = "beside two busy processes and a warm simulator at work"
    what = f"{library}, {case.task}, {case.num_envs} envs: steps/s {beside}"
    note(f"{what}, rlnb / stock", pairs(found, ("full", "now"), ("full", "stock")), 3.0)
    note(f"{what}, / idle", pairs(found, ("full", "now"), ("idle", "now")), 0.0)


def two(case: Case, library: str, base: Path, arguments: argparse.Namespace) -> None:
    """Compare each of two trainings at once with itself alone: those of one queue, and those of two users."""
    _at_once(case, library, [base / "both"] * 2, arguments, "one queue", at_once=2)
    _at_once(case, library, [base / "one", base / "two"], arguments, "two users", at_once=1)


def _at_once(
    case: Case, library: str, folders: Sequence[Path], arguments: argparse.Namespace, whose: str, *, at_once: int
) -> None:
    sides_of = {str(n): ours(case, library, folder, at_once=at_once) for n, folder in enumerate(folders, 1)}
    with started(sides_of) as sides:
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for number in range(arguments.rounds):
            alone = {}
            for name, side in sides.items():
                side.turns = []
                side.take(arguments.turn_s)
                alone[name] = side.rate()
            begin_s = time.time()
            for side in sides.values():
                side.turns = []
                side.signal(signal.SIGCONT)
            time.sleep(2 * arguments.turn_s)
            for side in sides.values():
                side.signal(signal.SIGSTOP)
                side.turns = [(begin_s, time.time())]
            for name, side in sides.items():
                found[name].append((side.rate(), alone[name]))
            print(number, {name: f"{pair[-1][0]:.2f} of {pair[-1][1]:.2f}" for name, pair in found.items()}, flush=True)
    for name, pair in found.items():
        note(
            f"{library}, {case.task}, {case.num_envs} envs: training {name} of two at once ({whose}), / alone",
            pair,
            0.4,
        )


@contextlib.contextmanager
def quota_of_one() -> Iterator[None]:
    """Put this process, and those that it starts meanwhile, into a group with a quota of one core."""
    GROUP.mkdir(exist_ok=True)
    for name, text in (
        ("cpu.cfs_period_us", "100000"),
        ("cpu.cfs_quota_us", "100000"),
        ("cgroup.procs", str(os.getpid())),
    ):
        (GROUP / name).write_text(text)
    try:
        yield
    finally:
        (GROUP.parent / "cgroup.procs").write_text(str(os.getpid()))


@contextlib.contextmanager
def bound_to_one() -> Iterator[None]:
    """Bind this process, and those that it starts meanwhile, to one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@contextlib.contextmanager
def within(limit: State, side: contextlib.AbstractContextManager[Side]) -> Iterator[Side]:
    """Start a side while a limit holds for this process."""
    with contextlib.ExitStack() as stack:
        with limit:
            living = stack.enter_context(side)
        yield living


def quota(case: Case, library: str, base: Path, arguments: argparse.Namespace) -> None:
    """Compare a training with a quota of one core with one that is bound to a core."""
    (base / "stock").mkdir()
    managers = {
        "bound": within(bound_to_one(), ours(case, library, base / "one")),
        "quota": within(quota_of_one(), ours(case, library, base / "two")),
        "stock": within(quota_of_one(), stock_side(case, library, base / "stock", "cpu")),
    }
    with started(managers) as sides:
        found = rates(sides, {"idle": 0}, arguments)
    what = f"{library}, {case.task}, {case.num_envs} envs: steps/s with a quota of one core"
    note(f"{what}, / bound to one core", pairs(found, ("idle", "quota"), ("idle", "bound")), 0.9)
    note(f"{what}, / stock with the quota", pairs(found, ("idle", "quota"), ("idle", "stock")), 0.98)


def scalars(case: Case, library: str, base: Path, arguments: argparse.Namespace) -> None:
    """Compare the scalars of stock on an idle machine with rlnb's on one that is busy from time to time."""
    (folder := base / "stock").mkdir()
    with open(folder / "stock.log", "wb") as log:
        command = stock_command(case, ITERATIONS, library)
        subprocess.run(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=True)
    run = rlnb.train(
        case.selected,
        library=library,
        num_envs=case.num_envs,
        max_iterations=ITERATIONS,
        seed=7,
        device="cpu",
        agent=case.agent,
    )
    while run.state not in ENDED:
        with busy(2):
            time.sleep(ON_AND_OFF_S)
        time.sleep(ON_AND_OFF_S)
    run.wait()
    theirs, mine = _scalars(folder / "logs"), _scalars(run.path / "logs")
    equal = sum(mine.get(tag) == values for tag, values in theirs.items())
    assert run.started is not None
    record(
        f"{library}, {case.task}, {case.num_envs} envs: scalars of {ITERATIONS} iterations on a machine that is "
        "busy from time to time, and stock's on an idle one",
        f"{equal} of {len(theirs)} tags, {run.started.threads} threads",
        "bit-equal",
        equal == len(theirs) > 0,
    )


def _scalars(folder: Path) -> dict[str, list[float]]:
    reader = EventReader(folder, without="system")
    reader.refresh()
    return {
        tag: [value for _, _, value in points]
        for tag, points in reader.scalars.items()
        if not tag.startswith(TIMED) and not tag.endswith(("/time", "fps", OWN))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {
        "beside": beside,
        "settings": settings,
        "living": living,
        "two": two,
        "quota": quota,
        "scalars": scalars,
    }
    parser.add_argument("part", choices=parts)
    parser.add_argument("--case", type=int, choices=range(len(CASES)), default=0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--turns", type=int, default=1, help="turns of each side in each state of a round")
    parser.add_argument("--turn-s", type=float, default=5.0)
    parser.add_argument("--ranks", type=int, default=1, help="worker processes of the part beside")
    parser.add_argument("--busy", type=int, choices=(0, 1, 2), default=2, help="most busy processes of the part beside")
    parser.add_argument("--alone", action="store_true", help="let rlnb alone train beside busy processes")
    parser.add_argument("--other", type=Path, help="another checkout of rlnb")
    parser.add_argument("--name", default="another checkout")
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    with tempfile.TemporaryDirectory(prefix="rlnb-busy-") as folder:
        base = Path(folder)
        rlnb.options.root = base / "runs"
        rlnb.options.warm = arguments.part == "living"
        case, library = CASES[arguments.case]
        parts[arguments.part](case, library, base, arguments)


if __name__ == "__main__":
    main()
