"""Checks of a preview request, made before the simulator is asked."""

from __future__ import annotations

from collections.abc import Sequence

from rlnb.errors import CheckError, Problem, unknown
from rlnb.spec import Task
from rlnb.tasks import overrides

MOST_GIB = 2.0
"""Camera frames that one preview may hold."""
BYTES_PER_VALUE = 4
"""Of a pixel of a data type; three for normals."""


def check_preview(
    task: Task,
    card: overrides.Card,
    cameras: Sequence[str] | None,
    data_types: Sequence[str] | None,
    num_envs: int,
    envs: Sequence[int] | None,
    steps: int,
    every: int | None,
    actions: str,
    size: Sequence[int],
) -> None:
    """Find everything that would make a preview fail.

    Raises:
        CheckError: With all problems.
    """
    problems = overrides.check(task, card)
    numbers = {"num_envs": (num_envs, 1), "steps": (steps, 0), "every": (1 if every is None else every, 1)}
    examples = {"num_envs": 4, "steps": 30, "every": 2}
    for name, (value, least) in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            what = f"{name}={value!r} is not a whole number from {least} on."
            problems.append(Problem(what=what, fix=f"{name}={examples[name]}"))
    if envs is not None:
        outside = [env for env in envs if not isinstance(env, int) or not 0 <= env < num_envs]
        if outside or not envs:
            what = f"envs={list(envs)!r}: {outside if envs else 'nothing'} is not in 0 to {num_envs - 1}."
            problems.append(Problem(what=what, fix="num_envs says how many there are, envs which of them to show."))
    if actions not in ("random", "zero"):
        problems.append(Problem(what=f"actions={actions!r} is neither 'random' nor 'zero'.", fix='actions="random"'))
    known = card["cameras"] or {"preview": {"width": size[0], "height": size[1]}}
    for name in cameras or ():
        if name not in known:
            problems.append(Problem(what=str(unknown("camera", name, known, has=f"{card['task']} has"))))
    if not problems:
        moments = 2 + (steps // every if every else 0)
        values = 0
        for name in cameras or known:
            types = data_types or known[name].get("data_types") or ["rgb"]
            channels = sum(3 if data_type == "normals" else 1 for data_type in types)
            values += known[name]["width"] * known[name]["height"] * channels
        size_gib = moments * (num_envs if envs is None else len(envs)) * values * BYTES_PER_VALUE / 2**30
        if size_gib > MOST_GIB:
            what = f"{moments} frames of these cameras and envs take about {size_gib:.1f} GiB, over {MOST_GIB:g}."
            problems.append(Problem(what=what, fix="Show fewer envs (envs=range(4)), or take every=10."))
    if problems:
        raise CheckError(f"preview of {task.id}", problems)
