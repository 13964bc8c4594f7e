"""The argument ``alerts=`` of ``rlnb.train``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rlnb.diagnosis.rules import DIAGNOSIS, FAILED

if TYPE_CHECKING:
    from rlnb.run.run import Run

Function = Callable[["Run"], "str | bool | None"]
"""A rule in Python: it takes the run, and returns the text of an alert, or True for its own name."""
AlertArgument = bool | str | Function | Sequence[str | Function]
"""One rule, or several; True stands for any symptom of the diagnosis and for a failure."""


def split(alerts: AlertArgument) -> tuple[tuple[str, ...], tuple[Function, ...]]:
    """Return the rules that are text, and those that are functions. Anything else becomes text, which is no rule."""
    if isinstance(alerts, bool):
        return ((DIAGNOSIS, FAILED) if alerts else ()), ()
    several = [alerts] if isinstance(alerts, str) or callable(alerts) or not isinstance(alerts, Sequence) else alerts
    functions = tuple(rule for rule in several if callable(rule))
    return tuple(str(rule) for rule in several if not callable(rule)), functions
