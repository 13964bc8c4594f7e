"""One straight line from the arguments of ``rlnb.train`` to the folder of a run, and the checks of ``rlnb.check``."""

from __future__ import annotations

from typing import Any

from rlnb.display.status import status
from rlnb.errors import CheckError, Problem, Problems, RlnbError
from rlnb.protocol.requests import Examine
from rlnb.records.facts import RunFacts
from rlnb.simulation.pool import pool
from rlnb.spec import Manifest, Task
from rlnb.tasks.card_cache import keep_term_sizes
from rlnb.training.auto_ranks import with_fastest_ranks
from rlnb.training.create import create_run
from rlnb.training.plan import Plan, make_plan
from rlnb.training.repeat import requests_of, say_versions


def start(plan: Plan, *, warm: bool | None) -> RunFacts:
    """Start the training of a plan without problems, and return its run at once.

    Args:
        plan: The plan.
        warm: As in :func:`rlnb.train`.
    """
    if plan.like is not None:
        say_versions(plan.like, plan.manifest, plan.card)
    if plan.measure_ranks:
        plan = with_fastest_ranks(plan)
    return create_run(
        plan.root,
        plan.manifest,
        plan.launcher,
        plan.options,
        inputs=plan.inputs,
        like=plan.like.record if plan.like else None,
        warm=warm,
    )


def check(task: Task | str | None = None, *, deep: bool = False, **arguments: Any) -> list[Problem]:
    """Return every problem for which :func:`rlnb.train` would refuse the arguments. No run is made.

    Args:
        task: A task, or its name, as for :func:`rlnb.train`.
        deep: Whether to make the task's env, step it 200 times with random actions, and look for mistakes in what it
            returns: shapes that differ from the spaces, values that are not finite, observations that never change,
            episodes that end at once, endless loops, growing memory. This takes some seconds.
        arguments: All other arguments of :func:`rlnb.train`.

    Returns:
        The problems; an empty list if the training can start. A deep check also returns notes, whose ``note`` is True,
        on what is right in some tasks, such as a reward term that was always 0.
    """
    try:
        requests = requests_of(task, arguments)
        plans = [make_plan(request) for request in requests]
    except CheckError as exc:
        return Problems(exc.problems)
    except RlnbError as exc:
        return Problems([Problem(what=str(exc))])
    problems = Problems(dict.fromkeys(problem for plan in plans for problem in plan.problems))
    if problems or not deep or plans[0].card is None:
        return problems
    return Problems(examine(plans[0].manifest, warm=requests[0].warm))


# -- examine ---------------------------------------------------------------------------------------------------------


EXAMINED_ENVS, EXAMINED_STEPS = 16, 200
"""Largest number of envs, and number of steps, of a deep check."""


def examine(manifest: Manifest, *, warm: bool | None) -> list[Problem]:
    """Return the mistakes of a task that show when its env is stepped with random actions.

    Args:
        manifest: Request of a training, whose task, device and interpreter are used.
        warm: Whether the warm simulator steps the env; None takes ``rlnb.options.warm``.
    """
    request = Examine(
        task=manifest.task,
        num_envs=min(manifest.task.num_envs or EXAMINED_ENVS, EXAMINED_ENVS),
        steps=EXAMINED_STEPS,
        seed=manifest.seed,
        device=manifest.resources.device,
    )
    try:
        with status(f"Stepping {manifest.task.id} {EXAMINED_STEPS} times"):
            examination = pool.request(request, manifest.python, manifest.asset_root, warm=warm)
    except RlnbError as exc:  # an error in the task's own code is what the check is for
        return [Problem(what=str(exc))]
    keep_term_sizes(manifest.task, manifest.python, manifest.asset_root, examination.term_sizes)
    return [
        Problem(what=finding.what, fix=finding.fix, note=finding.level == "note") for finding in examination.findings
    ]
