"""Where a sweep searches: names, ranges, and whether runs at their ends would start."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlnb.errors import CheckError, Problem, RlnbError, unknown
from rlnb.spec import Task
from rlnb.tasks.agent_config import agent_values
from rlnb.training import train
from rlnb.training.request import TrainRequest

if TYPE_CHECKING:
    import optuna

    from rlnb.contracts import Launcher

TRAIN_ARGUMENTS = ("num_envs", "max_iterations", "seed")
"""What a space may hold beside values of the agent config (``agent.<path>``) and overrides of the task (``<path>``)."""

Space = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """Values of one trial, by where they go."""

    arguments: Mapping[str, Any]
    agent: Mapping[str, Any]
    overrides: Mapping[str, Any]


def split(values: Mapping[str, Any]) -> Chosen:
    """Return values of a space by where they go."""
    agent = {name.removeprefix("agent."): value for name, value in values.items() if name.startswith("agent.")}
    arguments = {name: value for name, value in values.items() if name in TRAIN_ARGUMENTS}
    others = {n: v for n, v in values.items() if n not in arguments and not n.startswith("agent.")}
    return Chosen(arguments=arguments, agent=agent, overrides=others)


def distribution(name: str, wanted: Any) -> optuna.distributions.BaseDistribution:
    """Return Optuna's distribution for what stands in a space.

    Raises:
        RlnbError: It is none.
    """
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(wanted, BaseDistribution):
        return wanted
    if isinstance(wanted, list) and wanted:
        return CategoricalDistribution(wanted)
    bounds = wanted[:2] if isinstance(wanted, tuple) and wanted[2:] in ((), ("log",)) else ()
    if len(bounds) == 2 and all(isinstance(b, int | float) and not isinstance(b, bool) for b in bounds):
        kind = IntDistribution if all(isinstance(bound, int) for bound in bounds) else FloatDistribution
        try:
            return kind(*bounds, log=wanted[2:] == ("log",))
        except ValueError as exc:
            raise RlnbError(f"space[{name!r}]: {exc}") from exc
    raise RlnbError(
        f"space[{name!r}] = {wanted!r} is no range. Give (low, high), (low, high, 'log'), a list of choices, or one of "
        "Optuna's distributions."
    )


def check(
    task: Task, library: str, space: Space, n_trials: int, launcher: Launcher, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the distributions of a space, once runs at its ends would start, and with each of its choices.

    Raises:
        CheckError: They would not; with all problems.
    """
    problems, found = [], {}
    if n_trials < 1:
        problems.append(Problem(what=f"n_trials={n_trials!r} is not a positive whole number."))
    if not space:
        problems.append(
            Problem(what="space is empty: there is nothing to search.", fix="space={'agent.<path>': (low, high)}")
        )
    for name, wanted in space.items():
        try:
            found[name] = distribution(name, wanted)
        except RlnbError as exc:
            problems.append(Problem(what=str(exc)))
    known = {field.name for field in dataclasses.fields(TrainRequest)}
    for name in set(arguments) - known:
        problems.append(Problem(what=str(unknown("argument", name, known, has="rlnb.train takes"))))
    for chosen in map(split, _corners(found)):
        trial = dataclasses.replace(task, overrides={**task.overrides, **chosen.overrides})
        given = {name: value for name, value in arguments.items() if name in known}
        agent = {**agent_values(arguments.get("agent")), **chosen.agent}
        asked = {**given, **chosen.arguments, "library": library, "launcher": launcher, "agent": agent}
        problems += [problem for problem in train.check(trial, **asked) if problem not in problems]
    if problems:
        raise CheckError(f"sweep of {task.id}", problems)
    return found


def _corners(space: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield values such that each end of each range, and each choice, is among them once."""
    first = {name: _ends(one)[0] for name, one in space.items()}
    yield first
    for name, one in space.items():
        for value in _ends(one)[1:]:
            yield {**first, name: value}


def _ends(one: Any) -> Sequence[Any]:
    return one.choices if hasattr(one, "choices") else (one.low, one.high)
