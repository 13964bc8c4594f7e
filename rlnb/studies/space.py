"""The search space of a sweep: names and ranges, and the check that runs at the ends of the ranges would start."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rlnb.configs.agent import agent_choice
from rlnb.errors import CheckError, Problem, RlnbError, unknown, whole_number
from rlnb.run import train
from rlnb.run.run import Run, start_runs
from rlnb.spec import Task
from rlnb.training import create
from rlnb.training.arguments import TrainArguments
from rlnb.training.repeat import request_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

    from rlnb.contracts.launchers import Launcher
    from rlnb.spec import Json

    Domain: TypeAlias = BaseDistribution | Sequence[Json]
    Space: TypeAlias = Mapping[str, Domain]

REWARD = "reward"
"""The metric that the weights of a task's rewards change."""
_OF_REWARD = re.compile(r"(?:^|[._])rew(?:ards?)?(?:[._]|$)")
"""The names of weights of rewards, such as ``rewards.reach.weight``, ``rew_scale_alive`` and ``cfg.reward_scale``."""
TRAIN_ARGUMENTS = ("num_envs", "max_iterations", "seed")
"""Arguments of ``rlnb.train`` that a space may contain. Other names are ``agent.<path>`` for values of the agent config
and ``<path>`` for overrides of the task."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """The values of one trial, sorted by their kind."""

    arguments: Mapping[str, Json]
    """Arguments of ``rlnb.train``."""
    agent: Mapping[str, Json]
    """Agent config values by dotted path."""
    overrides: Mapping[str, Json]
    """Overrides of the task by dotted path."""


def split(values: Mapping[str, Json]) -> Parameters:
    """Return the values of a trial sorted by their kind."""
    agent = {name.removeprefix("agent."): value for name, value in values.items() if name.startswith("agent.")}
    arguments = {name: value for name, value in values.items() if name in TRAIN_ARGUMENTS}
    others = {n: v for n, v in values.items() if n not in arguments and not n.startswith("agent.")}
    return Parameters(arguments=arguments, agent=agent, overrides=others)


class Trainings:
    """The trainings of a sweep, which differ only in the values of its space.

    Args:
        task: The task.
        library: Name of the RL library.
        launcher: Where the trainings run.
        arguments: The other arguments of :func:`rlnb.train`.
    """

    def __init__(self, task: Task, library: str, launcher: Launcher, **arguments: Any) -> None:
        self.task, self.launcher = task, launcher
        self._arguments = {**arguments, "library": library, "launcher": launcher}

    def start(self, values: Mapping[str, Json], *, tags: Sequence[str]) -> Run:
        """Start the training with these values.

        Args:
            values: Values of the trial, by their names in the space.
            tags: Tags of this trial, in addition to those of all trials.

        Raises:
            CheckError: The training would fail.
        """
        tags = [*(self._arguments.get("tags") or ()), *tags]
        return train.train(self._task(values), **{"warm": False, **self._with(values), "tags": tags})

    def start_array(
        self, values: Sequence[Mapping[str, Json]], *, tags: Sequence[Sequence[str]], at_once: int | None
    ) -> list[Run]:
        """Start the trainings with these values as one array.

        Args:
            values: Values of each trial, by their names in the space.
            tags: Tags of each trial, in addition to those of all trials.
            at_once: Largest number of trainings that run at once; None leaves it to the queue.

        Raises:
            CheckError: A training would fail. It lists all problems; nothing was started.
        """
        common = self._arguments.get("tags") or ()
        requests = [
            request_of(self._task(one), {**self._with(one), "tags": [*common, *more]})
            for one, more in zip(values, tags, strict=True)
        ]
        return start_runs(requests, at_once=at_once)

    def array_problems(self, count: int) -> Sequence[Problem]:
        """Return every reason why the launcher cannot start this number of trainings as one array."""
        return create.array_problems(self.launcher, count)

    def odd_arguments(self) -> list[Problem]:
        """Return a problem for each argument that ``rlnb.train`` does not have, and for several seeds."""
        names = {field.name for field in dataclasses.fields(TrainArguments)}
        others = set(self._arguments) - names
        problems = [Problem(what=str(unknown("argument", name, names, has="rlnb.train takes"))) for name in others]
        if isinstance(seeds := self._arguments.get("seed"), list | tuple | range):
            what = f"seed={seeds!r} starts several runs, and a trial is one."
            problems.append(Problem(what=what, fix=f'space={{"seed": {[*seeds]}, ...}}'))
        return problems

    def check(self, values: Mapping[str, Json]) -> list[Problem]:
        """Return every problem for which ``rlnb.train`` would refuse the training with these values."""
        names = {field.name for field in dataclasses.fields(TrainArguments)}
        arguments = {name: value for name, value in self._with(values).items() if name in names}
        return train.check(self._task(values), **arguments)

    def _task(self, values: Mapping[str, Json]) -> Task:
        return dataclasses.replace(self.task, overrides={**self.task.overrides, **split(values).overrides})

    def _with(self, values: Mapping[str, Json]) -> Mapping[str, Any]:
        """Return the keyword arguments of ``rlnb.train`` for these values."""
        parameters = split(values)
        agent = agent_choice([self._arguments.get("agent") or {}, parameters.agent])
        return {**self._arguments, **parameters.arguments, "agent": agent}


def distribution(name: str, domain: Domain) -> BaseDistribution:
    """Return Optuna's distribution for one entry of a space.

    Raises:
        RlnbError: The entry is neither a range, nor a list of choices, nor a distribution.
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
        f"space[{name!r}] = {domain!r} is not a range. Use (low, high), (low, high, 'log'), a list of choices, or an "
        "Optuna distribution."
    )


def check(
    trainings: Trainings, space: Space, n_trials: int | None, *, value: str = "", is_array: bool = False
) -> dict[str, BaseDistribution]:
    """Return the distributions of a space, after checking its trainings.

    The check covers both ends of each range and every choice.

    Args:
        trainings: The trainings.
        space: The space.
        n_trials: Number of trials; None is one for each combination of choices.
        value: Metric that is the value of a trial; empty for an objective.
        is_array: Whether the trainings start as one array.

    Raises:
        CheckError: A training would fail. It lists all problems.
    """
    problems = [] if n_trials is None else [*whole_number("n_trials", n_trials, example=20)]
    distributions: dict[str, BaseDistribution] = {}
    if not space:
        problems.append(Problem(what="space is empty.", fix="space={'agent.<path>': (low, high)}"))
    for name, domain in space.items():
        try:
            distributions[name] = distribution(name, domain)
        except RlnbError as exc:
            problems.append(Problem(what=str(exc)))
    problems += trainings.odd_arguments()
    if n_trials is None and (ranges := [name for name, one in distributions.items() if not hasattr(one, "choices")]):
        what = f"{', '.join(ranges)} {'is a range' if len(ranges) == 1 else 'are ranges'}, which has no last trial."
        problems.append(Problem(what=what, fix="n_trials=20, or a list of choices for each name"))
    if value == REWARD and (terms := [name for name in space if _OF_REWARD.search(name)]):
        what = f"The space changes the reward ({', '.join(terms)}), and the reward is the value of a trial: the sweep"
        what += " would choose the values that give the largest reward, not the best policy."
        fix = 'metric="success_rate", another metric that the values do not change, or objective= with an evaluation'
        problems.append(Problem(what=what, fix=fix))
    if is_array and not problems:
        problems += trainings.array_problems(n_trials or grid_size(distributions))
    for values in _corners(distributions):
        problems += [problem for problem in trainings.check(values) if problem not in problems]
    if problems:
        raise CheckError(f"sweep of {trainings.task.id}", problems)
    return distributions


def grid_size(space: Mapping[str, BaseDistribution]) -> int:
    """Return the number of combinations of the choices of a space."""
    return math.prod(len(_ends(one)) for one in space.values())


def _corners(space: Mapping[str, BaseDistribution]) -> Iterator[dict[str, Json]]:
    """Yield sets of values that together cover both ends of each range and every choice."""
    first = {name: _ends(one)[0] for name, one in space.items()}
    yield first
    for name, one in space.items():
        for value in _ends(one)[1:]:
            yield {**first, name: value}


def _ends(one: Any) -> Sequence[Json]:
    return one.choices if hasattr(one, "choices") else (one.low, one.high)
