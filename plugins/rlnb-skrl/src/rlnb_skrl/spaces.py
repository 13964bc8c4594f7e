"""Spaces of a task that the models of skrl's agent config cannot take or give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlnb.plugin import Problem, Space

KINDS = {
    "GaussianMixin": "box",
    "MultivariateGaussianMixin": "box",
    "DeterministicMixin": "box",
    "CategoricalMixin": "discrete",
    "MultiCategoricalMixin": "multi_discrete",
}
"""Kind of the actions of each policy of skrl."""
MODELS = "models."
POLICY = "models.policy.class"
OBSERVATIONS, STATES = "OBSERVATIONS", "STATES"


def problems(values: Mapping[str, object], observations: Mapping[str, Space], actions: Space) -> Iterator[Problem]:
    """Find the spaces that do not fit.

    Args:
        values: The agent config by dotted path.
        observations: Spaces of the observation groups, as far as they are known.
        actions: Space of the actions.
    """
    if (kind := KINDS.get(str(values.get(POLICY)))) is not None and kind != actions.kind:
        yield Problem(what=f"The actions are {actions}, but {POLICY} is {values[POLICY]}.")
    faults: dict[str, list[str]] = {}
    for path, network in values.items():
        if path.startswith(MODELS) and path.endswith(".network"):
            for container in network if isinstance(network, list) else []:
                if isinstance(container, Mapping) and (fault := _fault_of(container, observations)):
                    faults.setdefault(fault, []).append(path)
    for fault, paths in faults.items():
        fix = "Use input: OBSERVATIONS in the agent config." if STATES in fault else ""
        yield Problem(what=f"{' and '.join(paths)}: {fault}", fix=fix)


def _fault_of(container: Mapping[str, object], observations: Mapping[str, Space]) -> str:
    """Return what is wrong with the input of a container of layers: it is missing, or its layers cannot take it."""
    taken, space, layers = str(container.get("input")), observations.get("policy"), container.get("layers")
    name = container.get("name")
    if STATES in taken and "policy" in observations and "critic" not in observations:
        return f"{name!r} takes the env's state ({STATES}), but the task has none."
    if taken != OBSERVATIONS or space is None or not isinstance(layers, list) or not layers:
        return ""
    if space.kind in ("dict", "tuple"):
        return f"{name!r} takes one tensor, but the observation 'policy' is {space}."
    is_linear = isinstance(layers[0], int | float) or (isinstance(layers[0], Mapping) and "linear" in layers[0])
    return (
        f"{name!r} takes a vector, but the observation 'policy' is {space}." if space.is_picture and is_linear else ""
    )
