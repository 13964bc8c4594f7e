"""The argument ``alerts=`` of ``rlnb.train``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rlnb.diagnosis.rules import DIAGNOSIS, FAILED, FUNCTION

if TYPE_CHECKING:
    from rlnb.run.run import Run

Function = Callable[["Run"], "str | bool | None"]
"""A rule in Python: it takes the run, and returns the text of an alert, or True for its own name."""
AlertArgument = bool | str | Function | Sequence[str | Function]
"""One rule, or several; True stands for any symptom of the diagnosis and for a failure."""


def split(alerts: AlertArgument) -> tuple[tuple[str, ...], dict[str, Function]]:
    """Return all rules as text, and the functions among them by their text. Anything else becomes text that is no rule.

    The text of a function is its name, with a number if there are several of the same name.
    """
    if isinstance(alerts, bool):
        return ((DIAGNOSIS, FAILED) if alerts else ()), {}
    several = [alerts] if isinstance(alerts, str) or callable(alerts) or not isinstance(alerts, Sequence) else alerts
    texts: list[str] = []
    functions: dict[str, Function] = {}
    for rule in several:
        if callable(rule):
            name = f"{FUNCTION}{getattr(rule, '__name__', type(rule).__name__)}"
            count = sum(other == name or other.startswith(f"{name} #") for other in functions)
            functions[name := f"{name} #{count + 1}" if count else name] = rule
            texts.append(name)
        else:
            texts.append(str(rule))
    return tuple(texts), functions
