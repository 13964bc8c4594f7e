"""A task as the kernel knows it: a name, a module on disk, selectors and overrides."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence

from rlnb.errors import CheckError, Problem, RlnbError, whole_number
from rlnb.settings import Root, options
from rlnb.spec import Json, Task
from rlnb.storage.serial import to_json
from rlnb.tasks.cell import local_files, module_path, sha256


def task(
    name: str,
    *,
    num_envs: int | None = None,
    overrides: Mapping[str, Json] | None = None,
    presets: Sequence[str] | str = (),
    physics: str | None = None,
    renderer: str | None = None,
    success: str | None = None,
) -> Task:
    """Describe a task. Quick: nothing of it is imported here.

    Args:
        name: The name given to ``%%task``; ``"package.module:EnvCfg"``; or a registered id, also of
            Isaac Lab 2.x.
        num_envs: Environments in total; None keeps the task's own number.
        overrides: Env config values by dotted path, e.g. ``{"sim.dt": 0.005}``.
        presets: Isaac Lab's global presets.
        physics: Isaac Lab's physics selector, e.g. ``"newton_mjwarp"``.
        renderer: Isaac Lab's renderer selector, e.g. ``"newton_renderer"``.
        success: ``"module:function"`` that says per env whether an ending episode succeeded.

    Raises:
        CheckError: ``num_envs`` is not positive, or an override is no JSON value.
    """
    problems = [] if num_envs is None else whole_number("num_envs", num_envs, example=64)
    if not isinstance(overrides, Mapping | None):
        problems.append(Problem(what=f"overrides={overrides!r} is no mapping.", fix='overrides={"sim.dt": 0.005}'))
        overrides = None
    for path, value in (overrides or {}).items():
        try:
            to_json(value)
        except RlnbError as exc:
            problems.append(Problem(what=f"override {path!r}: {exc}"))
    if problems:
        raise CheckError(f"task {name!r}", problems)
    return dataclasses.replace(
        _named(options.folders, name),
        num_envs=num_envs,
        presets=(presets,) if isinstance(presets, str) else tuple(presets),
        physics=physics,
        renderer=renderer,
        overrides=dict(overrides or {}),
        success=success,
    )


def _named(root: Root, name: str) -> Task:
    """Return the task of a name, with its module if a cell defines one."""
    module = module_path(root, name)
    if not os.path.isfile(module):  # also where the root cannot be entered
        return Task(id=name)
    return Task(id=name, source=str(module), source_sha256=sha256(module), files=local_files(module))


def as_task(value: Task | str | None, root: Root | None = None) -> Task:
    """Return a task that may be given by its name.

    Args:
        value: The task, or its name.
        root: Folder whose task modules are searched; None is that of ``rlnb.options``.

    Raises:
        RlnbError: It is neither a task nor a name.
    """
    if not isinstance(value, str | Task):
        raise RlnbError(f'{value!r} is neither a task nor the name of one. Use rlnb.task("Isaac-Cartpole-Direct").')
    return _named(root or options.folders, value) if isinstance(value, str) else value
