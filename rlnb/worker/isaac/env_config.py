"""The env config of a task: as its training has it, or as Isaac Lab's ``play_mode()`` leaves it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlnb.configs import tree
from rlnb.errors import RlnbError
from rlnb.protocol import messages
from rlnb.spec import EnvMode, Task
from rlnb.worker.isaac import isaaclab, kitless, release

PLAY = "play_mode"
"""Name of Isaac Lab's method, and of the argument of ``resolve_task_config`` that calls it."""
FIX = 'use mode="train" for the env of the training'


def resolve(task: Task, registered: isaaclab.Registered, mode: EnvMode = "train") -> Any:
    """Return the env config, with presets resolved and overrides not yet applied, as this interpreter can run it.

    Raises:
        RlnbError: As in :func:`written`.
    """
    env_cfg = written(task, registered, mode)
    kitless.fill(env_cfg)
    return env_cfg


def written(task: Task, registered: isaaclab.Registered, mode: EnvMode = "train") -> Any:
    """Return the env config, with presets resolved and overrides not yet applied, as its author wrote it.

    Isaac Lab itself calls ``play_mode()``, between presets and overrides. A config without this method stays as it is.

    Raises:
        RlnbError: ``play_mode()`` fails, or this release of Isaac Lab does not know it.
    """
    from isaaclab_tasks.utils import resolve_task_config

    play = {PLAY: True} if mode == "play" else {}
    if play:
        release.require_argument(resolve_task_config, PLAY, 'mode="play"')
    try:
        return resolve_task_config(registered.gym_id, None, overrides=isaaclab.selectors(task), **play)[0]
    except Exception as exc:
        if mode == "train" or not any(frame.name == PLAY for frame in traceback.extract_tb(exc.__traceback__)):
            raise
        where = messages.place_of_error(exc)[0]
        error = f"{where}: {type(exc).__name__}: {exc}".removeprefix(": ")
        raise RlnbError(f"{PLAY}() of the env config of {task.id} fails. Correct it, or {FIX}. {error}") from exc


def overridden(task: Task, registered: isaaclab.Registered, mode: EnvMode = "train") -> Any:
    """Return the env config with the task's overrides, which come after ``play_mode()``, as in Isaac Lab.

    An override of a value that ``play_mode()`` removes has no effect.

    Raises:
        RlnbError: The env config of the training has no such value.
    """
    env_cfg = resolve(task, registered, mode)
    for path, value in task.overrides.items():
        try:
            tree.set_value(env_cfg, path, value)
        except RlnbError:
            if mode == "train":
                raise
            tree.set_value(resolve(task, registered), path, value)
    return env_cfg


def play_notes(task: Task, module: Path | None, mode: EnvMode) -> tuple[str, ...]:
    """Return a sentence for each way in which the env of a mode is not what its name promises.

    These are overrides of values that ``play_mode()`` sets or removes, and a config without ``play_mode()``.

    Args:
        task: The task.
        module: The task's module, if it is not at ``task.source``.
        mode: The mode.
    """
    if mode == "train":
        return ()
    registered = isaaclab.register(task, module)
    play_cfg = resolve(task, registered, "play")
    if not hasattr(play_cfg, PLAY):
        kind = type(play_cfg).__name__
        return (
            f"{kind} has no {PLAY}(), so the env is that of the training. Write one in {kind} if it should differ.",
        )
    return tuple(_clashes(task, resolve(task, registered), play_cfg) if task.overrides else ())


def _clashes(task: Task, train_cfg: Any, play_cfg: Any) -> Iterator[str]:
    """Find the overrides of values that ``play_mode()`` sets or removes, given the configs without and with it."""
    for path, value in task.overrides.items():
        name = path.removeprefix("+")
        values = [tree.value_at(cfg, name) for cfg in (train_cfg, play_cfg)]
        try:
            tree.set_value(play_cfg, path, value)
        except RlnbError:
            yield f"{PLAY}() removes {name}, so the override {name}={value!r} of the training has no effect."
            continue
        if values[0] != values[1] != tree.value_at(play_cfg, name):
            yield f"{PLAY}() sets {name}={values[1]!r}, but the override {name}={value!r} of the training is stronger."
