"""What would be started: from the arguments of ``train()`` to a manifest and where it would run."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rlnb import plugins
from rlnb.contracts import Launcher
from rlnb.errors import Problem, RlnbError
from rlnb.launch.local import LocalLauncher
from rlnb.run.run import Run
from rlnb.spec import Manifest, Task
from rlnb.tasks.agent_config import agent_values
from rlnb.tasks.script import script_task
from rlnb.training.checks import check_run
from rlnb.training.manifest import describe, origin_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A training that could be started."""

    manifest: Manifest
    launcher: Launcher
    options: Mapping[str, Any]
    """Of its first job."""
    measure_ranks: bool
    """Whether the number of ranks is still to be found by trying."""


def plan(
    task: Task | str | None,
    *,
    script: str | Path | None,
    args: Sequence[str],
    library: str,
    max_iterations: int | None,
    seed: int,
    num_envs: int | None,
    agent: Mapping[str, Any] | str | Path | None,
    device: str,
    nproc_per_node: int | Literal["auto"] | None,
    init_from: Run | str | Path | None,
    trust: bool,
    keep: int | None,
    launcher: Launcher | None,
    python: str | None,
    asset_root: str | None,
    tags: Sequence[str],
) -> Plan:
    """Return what :func:`rlnb.train` was asked for, in its own words; what fits into a manifest is not checked yet.

    Raises:
        CheckError: Something does not fit into a manifest; with what else is wrong, for which the task may be resolved.
    """
    problems: list[Problem] = []
    if isinstance(launcher, str):
        known = ", ".join(f"rlnb.{name}(...)" for name in sorted(plugins.launchers()))
        raise RlnbError(f"launcher={launcher!r} is a name; a launcher is made by one of {known}.")
    launcher = launcher or LocalLauncher()
    if nproc_per_node == "auto" and not isinstance(launcher, LocalLauncher):
        nproc_per_node = None  # what is measured here says nothing of machines elsewhere
    words: tuple[str, ...] = ()
    if script is not None:
        asked: dict[str, Any] = {
            "task": task,
            "library": None if library == "rsl_rl" else library,
            "max_iterations": max_iterations,
            "seed": None if seed == 42 else seed,
            "num_envs": num_envs,
            "agent": agent,
            "device": None if device == "auto" else device,
            "nproc_per_node": "auto" if nproc_per_node == "auto" else None,
            "init_from": init_from,
            "keep": keep,
            "trust": trust or None,
            "asset_root": asset_root,
        }
        task, library = script_task(script, args, asked), plugins.SCRIPT.name
        words = (str(task.source), *args)
    elif task is None:
        raise RlnbError('rlnb.train() needs a task, such as rlnb.train("Isaac-Cartpole-Direct"), or a script.')
    elif not isinstance(task, str | Task):
        raise RlnbError(f'{task!r} is no task, nor the name of one: rlnb.train("Isaac-Cartpole-Direct").')
    elif args:
        what = f"args={args!r}, but there is no script to give them to."
        fix = 'script="train.py"; what a task takes is agent={...} and rlnb.task(..., overrides={...}).'
        problems.append(Problem(what=what, fix=fix))
    if isinstance(tags, str):
        problems.append(Problem(what=f"tags={tags!r} is one word, and not several.", fix=f"tags=[{tags!r}]"))
        tags = ()
    origin: tuple[str | None, str | None] = (None, None)
    values: dict[str, Any] = {}
    with _into(problems):
        origin = origin_of(init_from, library)
    with _into(problems):
        values = agent_values(agent)
    checkpoint, parent = origin
    ranks = (
        launcher.nproc_per_node or 1 if nproc_per_node is None else 1 if nproc_per_node == "auto" else nproc_per_node
    )
    manifest = describe(
        task, library, max_iterations, seed, num_envs, values, device, ranks, launcher, python, asset_root, tags
    )
    manifest = dataclasses.replace(manifest, keep=keep, parent=parent, script=words)
    if problems:
        check_run(manifest, launcher, problems)  # raises these, and what else there is
    return Plan(
        manifest=manifest,
        launcher=launcher,
        options={"init_from": checkpoint, "trust": trust} if checkpoint else {},
        measure_ranks=nproc_per_node == "auto",
    )


@contextlib.contextmanager
def _into(problems: list[Problem]) -> Iterator[None]:
    """Add what is raised inside to the problems, so that it is said with the others."""
    try:
        yield
    except RlnbError as exc:
        problems.append(Problem(what=str(exc)))
