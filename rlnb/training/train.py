"""``rlnb.train``: one straight line from the arguments to a run. Its signature is in ``train.pyi``."""

from __future__ import annotations

from typing import Any

from rlnb.errors import CheckError, Problem, RlnbError
from rlnb.run.run import Run
from rlnb.spec import Task
from rlnb.training.auto_ranks import with_fastest_ranks
from rlnb.training.create import create_run, refuse
from rlnb.training.plan import make_plan
from rlnb.training.request import TrainRequest, signature


def train(task: Task | str | None = None, **arguments: Any) -> Run:  # noqa: D417 - the arguments are TrainRequest's
    """Start a training and return at once. The run goes on without this process.

    Args:
        task: A task, or its name (see :func:`rlnb.task`).
        script: Instead of a task, any training script that Python or torchrun can start, such as Isaac Lab's
            ``scripts/reinforcement_learning/rsl_rl/train.py``. It runs in the run's ``logs`` folder; metrics come from
            the event files that it writes there. Of the arguments below only ``args``, ``nproc_per_node`` (a number),
            ``launcher``, ``python`` and ``tags`` go with it; all other arguments are refused, except ``warm``,
            which has no effect.
        args: Arguments of the script.
        library: Name of the RL library.
        max_iterations: Learning iterations, whatever the agent config says; None keeps its number.
        seed: Seed of env and policy, whatever the agent config says.
        num_envs: Environments in total; None keeps the task's own number.
        agent: Agent config values, by dotted path as in ``{"algorithm.learning_rate": 3e-4}`` or nested, or the path
            of a YAML file that holds them. A + before a path adds what the config leaves out:
            ``{"+normalize_input": True}``; those of RSL-RL are classes and take no more. A value
            that another argument sets, such as the seed, is refused here if it differs.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` is a GPU where there is one.
        nproc_per_node: Worker processes (ranks) on each machine, which share the envs. None is one, on a cluster one
            for each requested GPU. ``"auto"`` is the same on a cluster; on this machine it is one on each of its GPUs,
            or without a GPU the number that trains this task fastest, which is measured once (about a minute per
            candidate).
        init_from: A run or its id, whose last checkpoint, or a checkpoint, whose weights to start from. Optimiser and
            counters begin anew; to go on with them, ``run.resume()``.
        trust: Whether ``init_from`` may hold more than weights.
        keep: Checkpoints to keep while it trains, the newest, beside the best by reward; None keeps all.
        launcher: Where to run; None is this machine.
        python: Command of the worker's interpreter; None is ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.
        tags: Words to find the run by.
        warm: Whether the living simulator may become the run's own process; None is ``rlnb.options.warm``.

    Raises:
        CheckError: The run would fail; all problems at once, nothing was written.
    """
    request = TrainRequest.of(task, arguments)
    plan = make_plan(request)
    refuse(plan)
    if plan.measure_ranks:
        plan = with_fastest_ranks(plan)
    return create_run(plan.root, plan.manifest, plan.launcher, plan.options, warm=request.warm)


def check(task: Task | str | None = None, **arguments: Any) -> list[Problem]:
    """Return everything for which :func:`train` would refuse these arguments; starts and writes nothing.

    Args:
        task: As of :func:`train`.
        arguments: As of :func:`train`.
    """
    try:
        return list(make_plan(TrainRequest.of(task, arguments)).problems)
    except CheckError as exc:
        return list(exc.problems)
    except RlnbError as exc:
        return [Problem(what=str(exc))]


train.__signature__ = signature()  # type: ignore[attr-defined]
