"""Checks of a preview request, made before it is sent to the simulator."""

from __future__ import annotations

from collections.abc import Sequence

from rlnb.errors import CheckError, Problem, unknown, whole_number
from rlnb.spec import Task
from rlnb.tasks import overrides, runtime
from rlnb.tasks.aim import aim_of
from rlnb.tasks.card import CameraCard, TaskCard

MOST_GIB = 2.0
"""Largest size of one preview in memory, in GiB."""
BYTES_PER_VALUE = 4
"""Bytes per channel of a pixel. Normals have three channels; every other data type counts as one."""


def check_preview(
    task: Task,
    card: TaskCard,
    cameras: Sequence[str] | None,
    data_types: Sequence[str] | None,
    num_envs: int,
    envs: Sequence[int] | None,
    steps: int,
    every: int | None,
    actions: str,
    size: Sequence[int],
    eye: Sequence[float] | None = None,
    target: Sequence[float] | None = None,
) -> None:
    """Check the arguments of a preview, and say what rlnb has chosen for the task.

    Raises:
        CheckError: The arguments have problems. The error lists all of them.
    """
    problems = [*overrides.check(task, card), *runtime.problems(task, card)]
    problems += whole_number("num_envs", num_envs, example=4)
    problems += whole_number("steps", steps, least=0, example=30)
    problems += [] if every is None else whole_number("every", every, example=2)
    if envs is not None:
        outside = [env for env in envs if not isinstance(env, int) or not 0 <= env < num_envs]
        if outside or not envs:
            fault = f"{outside} is not in 0 to {num_envs - 1}" if envs else "the list is empty"
            what = f"envs={list(envs)!r}: {fault}."
            problems.append(Problem(what=what, fix="Choose envs from those that num_envs makes, or raise num_envs."))
    if actions not in ("random", "zero"):
        problems.append(Problem(what=f"actions={actions!r} is neither 'random' nor 'zero'.", fix='actions="random"'))
    problems += aim_of(eye, target, [*card.cameras])[1]
    cards = card.cameras or {"preview": CameraCard(width=size[0], height=size[1])}
    for name in cameras or ():
        if name not in cards:
            problems.append(Problem(what=str(unknown("camera", name, cards, has=f"{card.task} has"))))
    if not problems:
        moments = 2 + (steps // every if every else 0)
        values = 0
        for name in cameras or cards:
            types = data_types or cards[name].data_types or ["rgb"]
            channels = sum(3 if data_type == "normals" else 1 for data_type in types)
            values += cards[name].width * cards[name].height * channels
        size_gib = moments * (num_envs if envs is None else len(envs)) * values * BYTES_PER_VALUE / 2**30
        if size_gib > MOST_GIB:
            what = f"{moments} frames of these cameras and envs need {size_gib:.1f} GiB, more than {MOST_GIB:g} GiB."
            problems.append(Problem(what=what, fix="Show fewer envs (envs=range(4)) or fewer frames (every=10)."))
    if problems:
        raise CheckError(f"preview of {task.id}", problems)
    runtime.tell_chosen(card)
