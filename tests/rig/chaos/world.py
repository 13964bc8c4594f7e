"""The runs of one episode, and the rules that must hold for them at any moment and in the end."""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import rlnb
from chaos.kernels import Kernel
from rlnb.launchers import Launcher, LocalLauncher
from rlnb.spec import ENDED
from rlnb.storage.clock import SILENT_AFTER_S

MARK = "RLNB_CHAOS"
"""Variable by which the processes of an episode are found, whatever they have become."""
DAEMONS = ("slurmctld", "slurmd")
"""Names of processes that a fault starts again, and that belong to no run."""
DISK = "size=80m"
"""Size of the disk of an episode that has its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """The trainings of an episode."""

    task: str = "Echo"
    library: str = "echo"
    arguments: dict[str, Any] = field(default_factory=dict)
    settle_s: float = 20.0
    """Seconds after which every run must have ended."""
    begin_s: float = 15.0
    """Seconds that a training may need to its first iteration."""
    length: int = 1
    """Factor of the number of iterations."""
    pause: float = 1.0
    """Factor of the time between two faults."""
    launchers: tuple[Launcher, ...] = ()
    """Launchers to choose from; by default local ones."""
    slurm: Any = None
    """The Slurm of ``tests/rig/slurm.py`` on which the trainings run."""


ECHO = Subject()
ISAACLAB = Subject(
    task="Isaac-Cartpole-Direct",
    library="rsl_rl",
    arguments={"num_envs": 16, "device": "cpu", "agent": {"num_steps_per_env": 8, "save_interval": 5}},
    pause=10.0,
    settle_s=90.0,
    begin_s=60.0,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """A rule that did not hold."""

    seed: int
    rule: str
    text: str
    faults: tuple[str, ...]


class World:
    """One episode: a root with a few runs, faults, and the rules."""

    def __init__(self, folder: Path, seed: int, subject: Subject = ECHO, *, disk: bool = False) -> None:
        """Make the root of an episode.

        Args:
            folder: Folder for the roots of episodes.
            seed: Seed of the episode's decisions.
            subject: The trainings.
            disk: Whether the root is a small disk of its own, which can be filled or made read-only.
        """
        self.seed, self.rng, self.subject, self.disk = seed, random.Random(seed), subject, disk
        self.root, self.queue = folder / f"root{seed}", folder / f"queue{seed}"
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        if disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", DISK, "none", str(self.root)], check=True)
        os.environ.update({"RLNB_ROOT": str(self.root), "RLNB_QUEUE": str(self.queue), MARK: str(self.root)})
        rlnb.options.root, rlnb.options.warm = self.root, False
        local = [LocalLauncher(max_running=number) for number in (1, 2, 3)]
        self.launcher = self.rng.choice(subject.launchers or local)
        self.kernels: list[Kernel] = []
        self.heals: list[Callable[[], object]] = []
        self.faults: list[str] = []
        self.violations: list[Violation] = []
        self.damage: dict[str, set[str]] = collections.defaultdict(set)
        """What the faults themselves have destroyed, by run; no rule holds for these parts."""
        self._ends: dict[tuple[str, int], str] = {}
        self.stuck = False

    # -- what there is

    def train(self, max_iterations: int, **arguments: Any) -> rlnb.Run:
        """Start a training of the episode."""
        subject = self.subject
        return rlnb.train(
            subject.task,
            library=subject.library,
            max_iterations=subject.length * max_iterations,
            launcher=self.launcher,
            **{**subject.arguments, **arguments},
        )

    def kernel(self, *, elsewhere: bool = False) -> Kernel:
        """Start another kernel."""
        self.kernels.append(Kernel(elsewhere=elsewhere))
        return self.kernels[-1]

    def runs(self) -> list[rlnb.Run]:
        """Return every run of the episode, archived or not."""
        return [*rlnb.runs(), *rlnb.runs(archived=True)]

    def folders(self) -> list[Path]:
        """Return the folders of the runs on disk, in order."""
        with contextlib.suppress(OSError):
            folders = [path for path in (self.root / "runs").iterdir() if not path.name.startswith(".")]
            return sorted(path for path in folders if path.is_dir() and not path.is_symlink())
        return []

    def folder(self) -> Path | None:
        """Return the folder of a run, by chance."""
        folders = self.folders()
        return self.rng.choice(folders) if folders else None

    def resumable(self) -> rlnb.Run | None:
        """Return a run that has ended with a checkpoint and that no fault has damaged, by chance."""
        ended = [run for run in rlnb.runs() if not self.damage[run.id] and run.state in ENDED and run.checkpoints]
        return self.rng.choice(ended) if ended else None

    def processes(self) -> list[psutil.Process]:
        """Return the episode's processes except its kernels."""
        others = {os.getpid(), *(kernel.process.pid for kernel in self.kernels)}
        return [process for process in psutil.process_iter() if process.pid not in others and self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            mine = process.environ().get(MARK) == str(self.root)
            other = process.name() in DAEMONS or "-c" in process.cmdline()[1:3]
            return mine and not other and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def agents(self, run: Path) -> list[psutil.Process]:
        """Return the node agents of a run's trainings."""
        agents = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                argv = process.cmdline()
                if "rlnb.node" in argv and any(
                    word.startswith(f"{run}/jobs/") and word.endswith("-train") for word in argv
                ):
                    agents.append(process)
        return agents

    def worker(self, run: Path) -> psutil.Process | None:
        """Return a process below a run's agent, by chance."""
        for agent in self.agents(run):
            with contextlib.suppress(psutil.Error):
                below = agent.children(recursive=True)
                return self.rng.choice(below) if below else None
        return None

    # -- rules

    def report(self, rule: str, text: str) -> None:
        """Note that a rule did not hold."""
        self.violations.append(Violation(seed=self.seed, rule=rule, text=text[-2000:], faults=tuple(self.faults)))

    def look(self) -> dict[str, str]:
        """Check what must hold at any moment; return the state of each run by its id."""
        states: dict[str, str] = {}
        try:
            runs = self.runs()
        except Exception:
            self.report("runs() raises", traceback.format_exc())
            return states
        for run in runs:
            try:
                states[run.id] = run.state
                self._check(run, states[run.id])
            except rlnb.RlnbError as exc:
                if run.path.exists() and not self.damage[run.id]:
                    self.report("a healthy run raises", f"{run.id}: {exc}")
            except Exception:
                self.report("an error is no RlnbError", f"{run.id}: {traceback.format_exc()}")
        return states

    def _check(self, run: rlnb.Run, state: str) -> None:
        repr(run)
        series = run.metrics["reward"].iterations if "reward" in run.metrics.names else []
        if any(later <= earlier for earlier, later in itertools.pairwise(series)):
            self.report("a curve goes back", f"{run.id}: {series}")
        if len(self._working(run.path)) > 1:
            time.sleep(1.0)  # one that was superseded ends within a poll
            if len(still := self._working(run.path)) > 1:
                self.report("two trainings of one run", f"{run.id}: {still}")
        job = run.record.training
        if job and state in ENDED and run.path.exists() and not self.damage[run.id]:
            key = run.id, job.folder.number
            before = self._ends.setdefault(key, state)
            if before != state and (before, state) != ("lost", "cancelled"):
                self.report("an end changed", f"{run.id}: {before} became {state}")
                self._ends[key] = state

    def _working(self, run: Path) -> set[str]:
        """Return the folders of the jobs that train; a job has an agent on each of its nodes."""
        folders = set()
        for agent in self.agents(run):
            with contextlib.suppress(psutil.Error):
                if self._trains(agent):
                    folders |= {word for word in agent.cmdline() if word.startswith(f"{run}/jobs/")}
        return folders

    def _trains(self, agent: psutil.Process) -> bool:
        try:
            return agent.status() != psutil.STATUS_STOPPED and any(
                child.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED) for child in agent.children()
            )
        except psutil.Error:
            return False

    def pass_a_minute(self) -> None:
        """Set the times of runs without a process back, as if a minute had passed."""
        then = time.time() - SILENT_AFTER_S - 1.0
        for run in self.folders():
            if not self.agents(run):
                patterns = ("jobs/*/*.alive", "jobs/*/command.json", "jobs/*", "manifest.json")
                for path in (path for pattern in patterns for path in run.glob(pattern)):
                    with contextlib.suppress(OSError):
                        os.utime(path, (then, then))

    def settle(self) -> None:
        """Wait until every run has ended and every process is gone; report what does not."""
        begin_s, minutes = time.monotonic(), 0
        while True:
            states = self.look()
            active = {id: state for id, state in states.items() if state not in ENDED}
            left = self.processes()
            if not active and not left:
                break
            waited_s = time.monotonic() - begin_s
            if (waited_s > 1.0 and minutes == 0) or (waited_s > self.subject.settle_s / 2 and minutes == 1):
                self.pass_a_minute()
                minutes += 1
            if waited_s > self.subject.settle_s:
                self._unsettled(active, left)
                break
            time.sleep(0.1)
        self._check_lists()

    def _unsettled(self, active: dict[str, str], left: list[psutil.Process]) -> None:
        if active:
            self.stuck = True
            damage = {id: sorted(self.damage[id]) for id in active}
            self.report("a run is stuck", f"{active}, processes {left}, damage {damage}")
        elif left:
            self.report(
                "a process is left over", str([process.as_dict(["pid", "cmdline", "status"]) for process in left])
            )

    def _check_lists(self) -> None:
        names = [run.id for run in self.runs()]
        if len(names) != len(set(names)):
            self.report("a run is listed twice", str(collections.Counter(names)))
        for run in self.folders():
            if run.name not in names and not self.damage[run.name]:
                self.report("a run is lost", f"{run.name}: {[path.name for path in run.iterdir()]}")

    def resume_all(self) -> None:
        """Resume every run; check that it reaches its end with one curve."""
        for run in self.runs():
            # The logs that a training still writes when its folder was removed look like a run of stock Isaac Lab.
            damage = self.damage[run.id] | self.damage[run.path.parent.name]
            try:
                state, total = run.state, max(run.progress[1], 20) + 10
                if state == "completed" and run.progress[0] != run.progress[1] and not damage:
                    self.report("a completed run is not whole", f"{run.id}: {run.progress}")
                run.resume(max_iterations=total)
                run.wait(timeout_s=self.subject.settle_s + self.subject.begin_s)
                if not damage and run.progress[0] != total:
                    self.report("a resumed run is not whole", f"{run.id}: {run.progress} of {total}")
            except rlnb.RlnbError as exc:
                if not damage and not re.search("has no checkpoint yet|ended before its first checkpoint", str(exc)):
                    self.report("a run cannot be resumed", f"{run.id}: {exc}")
            except TimeoutError as exc:
                self.report("a resumed run does not end", f"{exc} damage {sorted(damage)}")
            except Exception:
                self.report("an error is no RlnbError", f"resume of {run.id}: {traceback.format_exc()}")

    def heal(self) -> None:
        """Undo the faults that last."""
        for heal in self.heals:
            with contextlib.suppress(Exception):
                heal()
        self.heals.clear()

    def close(self) -> None:
        """End every process and remove the root."""
        self.heal()
        for kernel in self.kernels:
            kernel.kill()
        for _ in range(3):
            for process in self.processes():
                with contextlib.suppress(psutil.Error):
                    process.kill()
        for _ in range(50 if self.disk else 0):
            if subprocess.run(["umount", str(self.root)], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self.queue, ignore_errors=True)
        del os.environ[MARK]


def as_line(violation: Violation) -> str:
    """Return a violation as one line of JSON."""
    return json.dumps(
        {"seed": violation.seed, "rule": violation.rule, "text": violation.text, "faults": violation.faults}
    )
