"""Start several trainings as one array of a cluster's queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from rlnb.contracts.launchers import ArrayLauncher, Launcher
from rlnb.errors import CheckError, Problem
from rlnb.launch.local import LocalLauncher
from rlnb.run.alerts import follow
from rlnb.run.run import Run
from rlnb.training.alerts import split
from rlnb.training.create import create_array
from rlnb.training.plan import make_plan
from rlnb.training.request import TrainRequest


def has_arrays(launcher: Launcher) -> TypeGuard[ArrayLauncher]:
    """Return whether a launcher can start several jobs as one array."""
    return hasattr(launcher, "submit_array")


def array_problems(launcher: Launcher | None, count: int) -> Sequence[Problem]:
    """Return every reason why a launcher cannot start an array.

    Args:
        launcher: The launcher; None is this machine.
        count: Number of trainings.
    """
    launcher = launcher or LocalLauncher()
    if not has_arrays(launcher):
        fix = "Use a launcher with arrays, such as rlnb.slurm(...), or array=False."
        return [Problem(what=f"The launcher {launcher.name} has no arrays.", fix=fix)]
    return launcher.check_array(count)


def train_array(requests: Sequence[TrainRequest], *, at_once: int | None = None) -> list[Run]:
    """Start trainings as one array, and return their runs at once.

    Args:
        requests: The trainings, all with the same launcher.
        at_once: Largest number of trainings that run at once; None leaves it to the queue.

    Raises:
        CheckError: A training would fail. It lists the problems of all trainings; nothing was written.
        RlnbError: The array could not be started. Nothing is left of any run.
    """
    plans = [make_plan(request) for request in requests]
    launcher = plans[0].launcher
    problems = dict.fromkeys([*array_problems(launcher, len(plans)), *_further(requests)])
    problems |= dict.fromkeys(problem for plan in plans for problem in plan.problems)
    if problems or not has_arrays(launcher):
        raise CheckError(f"array of {plans[0].manifest.task.id} with {plans[0].manifest.library}", [*problems])
    runs = create_array(plans, launcher, at_once=at_once)
    for run, request in zip(runs, requests, strict=True):
        if request.alerts:
            follow(run, split(request.alerts)[1])
    return runs


def _further(requests: Sequence[TrainRequest]) -> Iterator[Problem]:
    """Yield a problem if a training has another launcher, whose job script would differ."""
    if any(request.launcher is not requests[0].launcher for request in requests):
        yield Problem(what="The trainings of an array have several launchers.", fix="Use the same launcher for all.")
