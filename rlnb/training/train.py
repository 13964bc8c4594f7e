"""The verbs. Each reads top to bottom as one straight line."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rlnb.contracts import Launcher
from rlnb.errors import CheckError, Problem, RlnbError
from rlnb.run.run import Run
from rlnb.spec import Task
from rlnb.training.checks import check_run
from rlnb.training.create import start
from rlnb.training.plan import plan


def train(
    task: Task | str | None = None,
    *,
    script: str | Path | None = None,
    args: Sequence[str] = (),
    library: str = "rsl_rl",
    max_iterations: int | None = None,
    seed: int = 42,
    num_envs: int | None = None,
    agent: Mapping[str, Any] | str | Path | None = None,
    device: str = "auto",
    nproc_per_node: int | Literal["auto"] | None = None,
    init_from: Run | str | Path | None = None,
    trust: bool = False,
    keep: int | None = None,
    launcher: Launcher | None = None,
    python: str | None = None,
    asset_root: str | None = None,
    tags: Sequence[str] = (),
    warm: bool | None = None,
) -> Run:
    """Start a training and return at once. The run goes on without this process.

    Args:
        task: A task, or its name (see :func:`rlnb.task`).
        script: Instead of a task, any training script that Python or torchrun can start, such as Isaac Lab's
            ``scripts/reinforcement_learning/rsl_rl/train.py``. It runs in the run's ``logs`` folder; metrics come from
            the event files that it writes there. Of the arguments below only ``args``, ``nproc_per_node`` (a number),
            ``launcher``, ``python`` and ``tags`` go with it; others are refused, ``warm`` says nothing to it.
        args: Arguments of the script.
        library: Name of the RL library.
        max_iterations: Learning iterations, whatever the agent config says; None keeps its number.
        seed: Seed of env and policy, whatever the agent config says.
        num_envs: Environments in total; None keeps the task's own number.
        agent: Agent config values, by dotted path as in ``{"algorithm.learning_rate": 3e-4}`` or nested, or the path
            of a YAML file that holds them. A + before a path adds what the config leaves out:
            ``{"+normalize_input": True}``; those of RSL-RL are classes and take no more. What another argument sets,
            such as the seed, is refused here if it differs.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` is a GPU where there is one.
        nproc_per_node: Worker processes (ranks) on each machine, which share the envs. None is one, on a cluster one
            for each GPU that was asked for. ``"auto"`` is that too on a cluster; on this machine one on each of its
            GPUs, without any what trains this task fastest, which is measured once (about a minute per candidate).
        init_from: A run or its id, whose last checkpoint, or a checkpoint, whose weights to start from. Optimiser and
            counters begin anew; to go on with them, ``run.resume()``.
        trust: Whether ``init_from`` may hold more than weights.
        keep: Checkpoints to keep while it trains, the newest, beside the best by reward; None keeps all.
        launcher: Where to run; None is this machine.
        python: Command of the worker's interpreter; None is ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.
        tags: Words to find the run by.
        warm: Whether the warm worker may become the run's own process; None is ``rlnb.options.warm``.

    Raises:
        CheckError: The run would fail; all problems at once, nothing was written.
    """
    planned = plan(
        task,
        script=script,
        args=args,
        library=library,
        max_iterations=max_iterations,
        seed=seed,
        num_envs=num_envs,
        agent=agent,
        device=device,
        nproc_per_node=nproc_per_node,
        init_from=init_from,
        trust=trust,
        keep=keep,
        launcher=launcher,
        python=python,
        asset_root=asset_root,
        tags=tags,
    )
    manifest = planned.manifest
    if planned.measure_ranks:
        from rlnb.training.auto_ranks import resources

        check_run(manifest, planned.launcher)
        manifest = dataclasses.replace(manifest, resources=resources(manifest))
    return start(manifest, planned.launcher, planned.options, warm=warm)


def check(task: Task | str | None = None, **arguments: Any) -> list[Problem]:
    """Return everything for which :func:`train` would refuse these arguments; starts and writes nothing.

    Args:
        task: As of :func:`train`.
        arguments: As of :func:`train`.
    """
    asked = inspect.signature(train).bind(task, **arguments)
    asked.apply_defaults()
    asked.arguments.pop("warm")
    try:
        planned = plan(**asked.arguments)
        check_run(planned.manifest, planned.launcher)
    except CheckError as exc:
        return list(exc.problems)
    except RlnbError as exc:
        return [Problem(what=str(exc))]
    return []
