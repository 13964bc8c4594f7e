"""Where a sweep searches: names, ranges, and whether runs at their ends would start."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rlnb.errors import CheckError, Problem, RlnbError, unknown, whole_number
from rlnb.run.run import Run
from rlnb.spec import Task
from rlnb.tasks.agent_config import agent_values
from rlnb.training import train
from rlnb.training.request import TrainRequest

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

    from rlnb.contracts import Launcher
    from rlnb.spec import Json

    Domain: TypeAlias = BaseDistribution | Sequence[Json]
    Space: TypeAlias = Mapping[str, Domain]

TRAIN_ARGUMENTS = ("num_envs", "max_iterations", "seed")
"""Names of a space beside values of the agent config (``agent.<path>``) and overrides of the task (``<path>``)."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """Values of one trial, by where they go."""

    arguments: Mapping[str, Json]
    agent: Mapping[str, Json]
    overrides: Mapping[str, Json]


def split(values: Mapping[str, Json]) -> Parameters:
    """Return values of a space by where they go."""
    agent = {name.removeprefix("agent."): value for name, value in values.items() if name.startswith("agent.")}
    arguments = {name: value for name, value in values.items() if name in TRAIN_ARGUMENTS}
    others = {n: v for n, v in values.items() if n not in arguments and not n.startswith("agent.")}
    return Parameters(arguments=arguments, agent=agent, overrides=others)


class Trainings:
    """The trainings of a sweep: alike but for the values of its space.

    Args:
        task: The task.
        library: Name of the RL library.
        launcher: Where they run.
        arguments: The other arguments of :func:`rlnb.train`.
    """

    def __init__(self, task: Task, library: str, launcher: Launcher, **arguments: Any) -> None:
        self.task, self.launcher = task, launcher
        self._arguments = {**arguments, "library": library, "launcher": launcher}

    def start(self, values: Mapping[str, Json], *, tags: Sequence[str]) -> Run:
        """Start the training with these values, and these tags beside those of all.

        Raises:
            CheckError: It would fail.
        """
        tags = [*(self._arguments.get("tags") or ()), *tags]
        return train.train(self._task(values), **{"warm": False, **self._with(values), "tags": tags})

    def unknown_arguments(self) -> list[Problem]:
        """Return a problem for each argument that ``rlnb.train`` does not have."""
        names = {field.name for field in dataclasses.fields(TrainRequest)}
        others = set(self._arguments) - names
        return [Problem(what=str(unknown("argument", name, names, has="rlnb.train takes"))) for name in others]

    def check(self, values: Mapping[str, Json]) -> list[Problem]:
        """Return everything for which the training with these values would be refused."""
        names = {field.name for field in dataclasses.fields(TrainRequest)}
        arguments = {name: value for name, value in self._with(values).items() if name in names}
        return train.check(self._task(values), **arguments)

    def _task(self, values: Mapping[str, Json]) -> Task:
        return dataclasses.replace(self.task, overrides={**self.task.overrides, **split(values).overrides})

    def _with(self, values: Mapping[str, Json]) -> Mapping[str, Any]:
        """Return the keyword arguments of ``rlnb.train``, whose types are as many as the arguments."""
        parameters = split(values)
        agent = {**agent_values(self._arguments.get("agent")), **parameters.agent}
        return {**self._arguments, **parameters.arguments, "agent": agent}


def distribution(name: str, domain: Domain) -> BaseDistribution:
    """Return Optuna's distribution for one entry of a space.

    Raises:
        RlnbError: The entry is no range, no list of choices and no distribution.
    """
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(domain, BaseDistribution):
        return domain
    if isinstance(domain, list) and domain:
        return CategoricalDistribution(domain)
    bounds = domain[:2] if isinstance(domain, tuple) and domain[2:] in ((), ("log",)) else ()
    if len(bounds) == 2 and all(isinstance(b, int | float) and not isinstance(b, bool) for b in bounds):
        kind = IntDistribution if all(isinstance(bound, int) for bound in bounds) else FloatDistribution
        try:
            return kind(*bounds, log=domain[2:] == ("log",))
        except ValueError as exc:
            raise RlnbError(f"space[{name!r}]: {exc}") from exc
    raise RlnbError(
        f"space[{name!r}] = {domain!r} is no range. Give (low, high), (low, high, 'log'), a list of choices, or one of "
        "Optuna's distributions."
    )


def check(trainings: Trainings, space: Space, n_trials: int) -> dict[str, BaseDistribution]:
    """Return the distributions of a space, once runs at its ends would start, and with each of its choices.

    Raises:
        CheckError: They would not; with all problems.
    """
    problems, distributions = whole_number("n_trials", n_trials, example=20), {}
    if not space:
        problems.append(
            Problem(what="space is empty: there is nothing to search.", fix="space={'agent.<path>': (low, high)}")
        )
    for name, domain in space.items():
        try:
            distributions[name] = distribution(name, domain)
        except RlnbError as exc:
            problems.append(Problem(what=str(exc)))
    problems += trainings.unknown_arguments()
    for values in _corners(distributions):
        problems += [problem for problem in trainings.check(values) if problem not in problems]
    if problems:
        raise CheckError(f"sweep of {trainings.task.id}", problems)
    return distributions


def _corners(space: Mapping[str, BaseDistribution]) -> Iterator[dict[str, Json]]:
    """Yield values such that each end of each range, and each choice, is among them once."""
    first = {name: _ends(one)[0] for name, one in space.items()}
    yield first
    for name, one in space.items():
        for value in _ends(one)[1:]:
            yield {**first, name: value}


def _ends(one: Any) -> Sequence[Json]:
    return one.choices if hasattr(one, "choices") else (one.low, one.high)
