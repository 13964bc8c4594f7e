"""A kernel is killed before each of its changes to the files of a run, for every verb that changes something."""

from __future__ import annotations

from pathlib import Path

from chaos.kernels import Call, Kernel
from chaos.world import Violation, World

VERBS = ("train", "resume", "evaluate", "prune", "delete", "tag", "archive", "cancel")
MOST = 80
"""Largest credible number of changes of a verb."""
FIRST_SEED = 900_000


def points(folder: Path, verbs: tuple[str, ...] = VERBS) -> tuple[int, list[Violation]]:
    """Kill a kernel before each change of each verb; return the number of kills, and the violations."""
    count, violations = 0, []
    for verb in verbs:
        for at in range(1, MOST):
            world = World(folder, FIRST_SEED + 1000 * VERBS.index(verb) + at)
            try:
                through = _point(world, verb, at)
                count += not through
                violations += world.violations
            finally:
                world.close()
            if through:
                break
    return count, violations


def _point(world: World, verb: str, at: int) -> bool:
    """Return whether the kernel made its call with fewer changes than ``at``."""
    run = None
    if verb != "train":
        arguments = {"agent": {"iteration_s": 0.02}} if verb == "cancel" else {}
        run = world.train(150 if verb == "cancel" else 12, **arguments)
        if verb != "cancel":
            run.wait(timeout_s=world.subject.settle_s)
    kernel = Kernel(dies_at=at)
    world.kernels.append(kernel)
    world.faults.append(f"{verb} is killed before change {at}")
    values: dict[str, object] = {"max_iterations": 30} if verb in ("train", "resume") else {}
    kernel.begin(Call(verb=verb, run=run.path if run else None, arguments=values))
    answer = kernel.answer()
    if answer.startswith("foreign"):
        world.report("an error is no RlnbError", answer)
    if verb == "cancel" and run:  # what was not cancelled goes on
        run.cancel()
    world.settle()
    if not world.stuck:
        world.resume_all()
        world.settle()
    return bool(answer)
