"""The rules of alerts: a symptom of the diagnosis, the end of a training, or a condition on its metrics."""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlnb.diagnosis.diagnosis import diagnose
from rlnb.diagnosis.symptoms import NAMES
from rlnb.errors import Problem, did_you_mean
from rlnb.hooks import plugins

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts

DIAGNOSIS, ENDED, FAILED = "diagnosis", "ended", "failed"
"""Rules for any symptom, for the end of the training, and for its failure."""
FUNCTION = "function "
"""Begin of the text of a rule in Python, which only the notebook that started the training can call."""
ITERATION = "iteration"
"""Name of the learning iteration in a condition."""
EXAMPLES = 'alerts=["diagnosis", "failed", "iteration > 100 and reward < 5"]'
_OPERATORS: Mapping[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class _UnknownError(Exception):
    """A metric of a condition has no value yet."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of an alert."""

    text: str
    """Its text, as it was passed to :func:`rlnb.train`."""

    def problems(self) -> Iterator[Problem]:
        """Yield the reasons why this is no rule."""
        if self.text in (DIAGNOSIS, ENDED, FAILED, *NAMES) or self.text.startswith(FUNCTION):
            return
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
            _refuse_numbers(tree)
            names = {*_names(tree)}
        except (SyntaxError, ValueError, RecursionError):
            hint = did_you_mean(self.text, (DIAGNOSIS, ENDED, FAILED, *NAMES))
            yield Problem(what=f"alert {self.text!r} is neither a symptom nor a condition.{hint}", fix=EXAMPLES)
            return
        choices = (ITERATION, *plugins.metrics())
        for name in sorted(names):
            if name.isidentifier() and name not in choices:
                hint = did_you_mean(name, choices)
                yield Problem(
                    what=f"alert {self.text!r}: {name!r} is not a metric.{hint}",
                    fix="Use a metric's name, or a raw tag in quotes, as in \"'Episode_Reward/alive' > 3\".",
                )

    def finding(self, run: RunFacts) -> str | None:
        """Return what the rule finds in a training that has not ended; None if it finds nothing."""
        if self.text in (ENDED, FAILED) or self.text.startswith(FUNCTION):
            return None
        if self.text == DIAGNOSIS or self.text in NAMES:
            symptoms = (symptom for symptom in diagnose(run).symptoms if self.text in (DIAGNOSIS, symptom.name))
            symptom = next(symptoms, None)
            return f"{symptom.name}: {symptom.what} {symptom.fix}" if symptom else None
        tree = ast.parse(self.text.strip(), mode="eval").body
        values = _newest(run, {*_names(tree)})
        try:
            if not _value(tree, values):
                return None
        except (_UnknownError, ZeroDivisionError, OverflowError):
            return None
        return f"{self.text}: " + ", ".join(f"{name} is {value:.5g}" for name, value in values.items())

    def finding_at_end(self, outcome: str, error: str) -> str | None:
        """Return what the rule finds in the result of a training; None if it finds nothing.

        Args:
            outcome: Outcome of the training.
            error: Its error; empty if there is none.
        """
        if self.text == ENDED or (self.text == FAILED and outcome not in ("completed", "cancelled")):
            return f"{outcome}: {error}" if error and error != outcome else outcome
        return None


def _newest(run: RunFacts, names: set[str]) -> dict[str, float]:
    """Return the newest values that the run's newest training has logged; those of an earlier one are left out."""
    metrics, started = run.metrics, run.started
    since_s = started.time_s if started is not None else 0.0
    logged = {*metrics.names, *metrics.tags}
    values: dict[str, float] = {}
    for name in sorted(names - {ITERATION}):
        if name in logged and metrics[name].wall_time_s[-1:] and metrics[name].wall_time_s[-1] >= since_s:
            values[name] = metrics.last(name)
    if ITERATION in names and any(metrics[name].wall_time_s[-1:] >= [since_s] for name in metrics.names[:1]):
        values[ITERATION] = float(metrics.iteration)
    return values


def _refuse_numbers(tree: ast.AST) -> None:
    """Refuse a text whose value is a number, not true or false.

    Raises:
        SyntaxError: A part of it is no comparison.
    """
    if isinstance(tree, ast.BoolOp):
        for part in tree.values:
            _refuse_numbers(part)
    elif isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        _refuse_numbers(tree.operand)
    elif not isinstance(tree, ast.Compare):
        raise SyntaxError


def _names(tree: ast.AST) -> Iterator[str]:
    """Yield the metrics of a condition.

    Raises:
        SyntaxError: It has something else than metrics, numbers, comparisons and arithmetic.
    """
    if isinstance(tree, ast.Name):
        yield tree.id
    elif isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.value
    elif isinstance(tree, ast.Constant) and isinstance(tree.value, int | float) and not isinstance(tree.value, bool):
        return
    elif isinstance(tree, ast.Compare | ast.BoolOp | ast.BinOp | ast.UnaryOp):
        operators = tree.ops if isinstance(tree, ast.Compare) else [tree.op]
        if not all(type(op) in (*_OPERATORS, ast.And, ast.Or, ast.Not, ast.USub) for op in operators):
            raise SyntaxError
        for below in ast.iter_child_nodes(tree):
            if isinstance(below, ast.expr):
                yield from _names(below)
    else:
        raise SyntaxError


def _is_true(tree: ast.AST, values: Mapping[str, float]) -> bool:
    """Return whether a condition is true; False if a metric in it has no value yet."""
    try:
        return bool(_value(tree, values))
    except _UnknownError:
        return False


def _value(tree: ast.AST, values: Mapping[str, float]) -> float:
    """Return the value of a condition.

    Raises:
        _UnknownError: A metric has no value yet.
    """
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int | float):
        return tree.value
    if isinstance(tree, ast.Name | ast.Constant):
        name = str(tree.id if isinstance(tree, ast.Name) else tree.value)
        if name not in values:
            raise _UnknownError
        return values[name]
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        return all(_value(part, values) for part in tree.values)
    if isinstance(tree, ast.BoolOp):
        return any(_is_true(part, values) for part in tree.values)
    if isinstance(tree, ast.UnaryOp):
        value = _value(tree.operand, values)
        return not value if isinstance(tree.op, ast.Not) else -value
    if isinstance(tree, ast.BinOp):
        return _OPERATORS[type(tree.op)](_value(tree.left, values), _value(tree.right, values))
    assert isinstance(tree, ast.Compare)
    parts = [_value(part, values) for part in (tree.left, *tree.comparators)]
    return all(_OPERATORS[type(op)](*pair) for op, pair in zip(tree.ops, itertools.pairwise(parts), strict=True))
