"""Errors of the terms of manager-based tasks: which term has returned a wrong shape, and where its function is."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from rlnb.errors import RlnbError
from rlnb.worker.isaac import release

MANAGERS = {
    "reward_manager.py": "reward",
    "termination_manager.py": "termination",
    "observation_manager.py": "observation",
}
"""Files of Isaac Lab's managers, with the kind of their terms. In another release, errors stay as they are."""

SUBJECT = "the error of a term"


def explained(exc: BaseException) -> BaseException:
    """Return an error that names the term whose value a manager could not use; any other exception as it is."""
    frames = [frame for frame, _ in traceback.walk_tb(exc.__traceback__)]
    if isinstance(exc, RlnbError) or not frames:
        return exc
    path = Path(frames[-1].f_code.co_filename)
    kind = MANAGERS.get(path.name, "") if path.parent.name == "managers" else ""
    try:
        text = _of_observations(frames[-1]) if kind == "observation" else _of_values(frames[-1], kind) if kind else ""
    except (AttributeError, KeyError, IndexError, TypeError, RlnbError):  # another release has other variables
        text = ""
    if not text:
        return exc
    error = RlnbError(text)
    for note in getattr(exc, "__notes__", ()):
        error.add_note(note)
    return error.with_traceback(exc.__traceback__)


def _of_values(frame: FrameType, kind: str) -> str:
    """Return what is wrong with the value of a reward or termination term."""
    values = frame.f_locals
    manager, cfg, value = values["self"], values["term_cfg"], values["value"]
    number = values["term_idx"] if "term_idx" in values else values["i"]
    name = release.required(manager, "_term_names", SUBJECT)[number]
    # Not manager.num_envs, since the env may be closed by now.
    of_step = values["step_reward"] if kind == "reward" else release.required(manager, "_terminated_buf", SUBJECT)
    expected = tuple(of_step.shape)
    shape = tuple(getattr(value, "shape", ()))
    what = f"a value of the shape {shape}" if shape else f"{type(value).__name__} {value!r}"
    fix = "Return one value per env."
    if shape == expected:
        if (device := value.device) != of_step.device:
            what, fix = f"values on {device}", f"Create its tensors with device=env.device, {of_step.device} here."
        elif kind == "termination" and value.dtype != of_step.dtype:
            what, fix = f"values of {value.dtype}", "Compare them with a limit, as in value > 0.5."
        else:  # neither the shape nor the type is wrong, so the error's own words are better
            return ""
    elif shape == (*expected, 1):
        fix = "Use .squeeze(-1) to drop the last axis."
    wanted = "one bool" if kind == "termination" else "one number"
    return (
        f"{_place(cfg.func)}: the {kind} term {name!r} returned {what}, and has to return {wanted} per env, of the "
        f"shape {expected}. {fix}"
    )


def _of_observations(frame: FrameType) -> str:
    """Return which observation terms of a group cannot be joined."""
    values = frame.f_locals
    manager, group = values["self"], values["group_name"]
    names = release.required(manager, "_group_obs_term_names", SUBJECT)[group]
    shapes = [tuple(dims) for dims in release.required(manager, "_group_obs_term_dim", SUBJECT)[group]]
    cfgs = release.required(manager, "_group_obs_term_cfgs", SUBJECT)[group]
    usual = max({len(shape) for shape in shapes}, key=lambda rank: sum(len(shape) == rank for shape in shapes))
    odd = [number for number, shape in enumerate(shapes) if len(shape) != (usual or 1)]
    if not odd:
        return ""
    count, first = manager.num_envs, odd[0]
    others = [f"{names[number]!r} {(count, *shapes[number])}" for number in range(len(names)) if number != first]
    fix = (
        "Use concatenate_terms=False for the group, or the same number of axes in all terms."
        if shapes[first]
        else "Use .unsqueeze(-1) to add an axis for the value."
    )
    return (
        f"{_place(cfgs[first].func)}: the observation term {names[first]!r} returned values of the shape "
        f"{(count, *shapes[first])}, which cannot be joined with the others of the group {group!r}: "
        f"{', '.join(others)}. {fix}"
    )


def _place(function: Callable[..., Any]) -> str:
    """Return where a term's function is, such as ``"/home/me/lift.py, line 18, in reach"``."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    return f"{code.co_filename}, line {code.co_firstlineno}, in {name}" if code else name
