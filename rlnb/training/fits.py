"""Whether the agent config of a training fits its task: the sizes in it, and the inputs and outputs of its networks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from rlnb.contracts.libraries import Library, Space, Spaces
from rlnb.errors import Problem
from rlnb.hooks import plugins
from rlnb.hooks.plugin import HookError
from rlnb.spec import Json, Manifest
from rlnb.tasks.card import GENERIC, AgentCard, TaskCard
from rlnb.training.lookup import Lookup

SPACES: Mapping[str, str] = {"observation_space": "policy", "state_space": "critic", "action_space": ""}
"""Values of a direct env's config that are spaces, each with its observation group; empty for the actions."""

MOST = 3
"""Most configs that a fix names."""


def problems_of_fit(manifest: Manifest, lookup: Lookup) -> Iterator[Problem]:
    """Find what would make the library fail late, or learn nothing."""
    library, card, agent = lookup.library, lookup.card, lookup.agent
    if library is None or card is None or agent is None or agent.error:
        return
    usual = {path: field.value for path, field in agent.fields.items()}
    values = {**usual, **{path.removeprefix("+"): value for path, value in manifest.agent.items()}}
    resources, num_envs = manifest.resources, manifest.task.num_envs or card.num_envs
    ranks = resources.nodes * resources.nproc_per_node
    try:
        if all(isinstance(count, int) and count > 0 for count in (num_envs, ranks)) and num_envs >= ranks:
            yield from plugins.size_problems(library, values, usual, num_envs // ranks)
        yield from _of_spaces(manifest, library, card, values)
    except HookError as exc:
        yield Problem(what=f"{exc.what}.", fix=exc.fix)


def _of_spaces(manifest: Manifest, library: Library, card: TaskCard, values: Mapping[str, Json]) -> Iterator[Problem]:
    """Find spaces of the task that the networks of the agent config do not fit, and name the configs that do."""
    observations, actions = _overridden(manifest, card)
    if actions is None:
        return  # several agents, or an override that only Isaac Lab can read
    found = plugins.space_problems(library, values, observations, actions)
    fitting = itertools.islice(_fitting(library, card, observations, actions), MOST) if found else ()
    others = " or ".join(fitting)
    for problem in found:
        other = f"{'Or use' if problem.fix else 'Use'} {others}." if others else ""
        yield Problem(what=problem.what, fix=" ".join(filter(None, (problem.fix, other))))


def _overridden(manifest: Manifest, card: TaskCard) -> tuple[Spaces, Space | None]:
    """Return the spaces of a task with its overrides; those that an override changes to anything else are unknown."""
    observations, actions = dict(card.observations), card.actions
    for path, group in SPACES.items():
        if path not in manifest.task.overrides:
            continue
        space = _of_value(manifest.task.overrides[path])
        if not group:
            actions = space
        elif space is None:
            observations.pop(group, None)
        else:
            observations[group] = space
    return observations, actions


def _of_value(value: Json) -> Space | None:
    """Return the Box that Isaac Lab makes of a number, or of a list of numbers."""
    sizes = value if isinstance(value, list) else [value]
    if all(isinstance(size, int) and size > 0 for size in sizes):
        return Space(kind="box", shape=tuple(size for size in sizes if isinstance(size, int)))
    return None


def _fitting(library: Library, card: TaskCard, observations: Spaces, actions: Space) -> Iterator[str]:
    """Yield the arguments of a training whose agent config fits the spaces: the library's generic one, or another's."""
    own = card.generic_agents.get(library.name)
    if own is not None and own.usable and not _misfits(library, own, observations, actions):
        yield f"agent={GENERIC!r}"
    for name, other in plugins.libraries().items():
        agent = card.agents.get(name)
        if name == library.name or agent is None or not agent.usable or agent.trained_by(other) != name:
            continue
        if not _misfits(other, agent, observations, actions):
            yield f"library={name!r}" + (f", agent={GENERIC!r}" if agent.needs_choice else "")


def _misfits(library: Library, agent: AgentCard, observations: Spaces, actions: Space) -> list[Problem]:
    values = {path: field.value for path, field in agent.fields.items()}
    return plugins.space_problems(library, values, observations, actions)
