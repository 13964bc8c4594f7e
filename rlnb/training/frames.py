"""Checks of ``max_frames``: frames can be counted only if the iterations of a training have a known length."""

from __future__ import annotations

from collections.abc import Iterator

from rlnb.contracts.libraries import Library
from rlnb.errors import Problem
from rlnb.spec import Manifest
from rlnb.tasks.agent_config import horizon_of
from rlnb.tasks.card import AgentCard, TaskCard

INSTEAD = "Use max_iterations."
"""Fix for a training whose frames cannot be counted."""


def check_frames(
    manifest: Manifest, library: Library | None, card: TaskCard | None, agent: AgentCard | None
) -> Iterator[Problem]:
    """Find reasons why a training cannot end after ``max_frames``.

    Args:
        manifest: The run.
        library: Library of the run; None if it does not exist.
        card: Task card; None without a simulator.
        agent: Agent config of the run; None if there is none.
    """
    if manifest.max_frames is None or library is None:
        return
    if manifest.max_iterations is not None:
        what = f"max_iterations={manifest.max_iterations!r} and max_frames={manifest.max_frames!r} exclude each other."
        yield Problem(what=what, fix="Use one of them.")
    if not library.simulator:
        yield Problem(what=f"{library.name} trains without a simulator, so it has no frames to count.", fix=INSTEAD)
    elif card is not None and agent is not None and not agent.error:
        defaults = {path: field.value for path, field in agent.fields.items()}
        if horizon_of({**defaults, **manifest.agent}, library) is None:
            yield Problem(what=_unknown(library), fix=INSTEAD)
    for name, value in manifest.agent.items():
        path = name.removeprefix("+")
        is_default = agent is not None and path in agent.fields and agent.fields[path].value == value
        if library.overruled.get(path) == "max_iterations" and not is_default:
            what = f"agent config of {library.name}: {name} is {value!r}, but rlnb.train has max_frames."
            yield Problem(what=what, fix="Leave it out here.")


def _unknown(library: Library) -> str:
    return f"the agent config of {library.name} has no {library.horizon_key!r}, so its frames cannot be counted."
