"""The errors that rlnb raises. Each message names the fault, the valid choices, and the fix."""

from __future__ import annotations

import difflib
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


class RlnbError(Exception):
    """Base of every error that rlnb raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows in place of a traceback (the name is IPython's): the message alone.

        The frames of rlnb, which ``%debug`` still enters, would only hide it.
        """
        return [f"{type(self).__name__}: {self}"]


class NotFoundError(RlnbError, LookupError):
    """Raised for a name (of a task, library, launcher, run, camera, ...) that does not exist."""


class ArgumentError(RlnbError, TypeError):
    """Raised for an argument that a call does not have. It names the closest argument that exists."""


class CheckError(RlnbError, ValueError):
    """Raised for a request that would fail, before any file is written. It lists all problems at once.

    Attributes:
        subject: Name of the request that would fail, e.g. a task or ``"preview of Isaac-Cartpole-Direct"``.
        problems: Every problem with its fix, in the order in which the problems were found.
    """

    def __init__(self, subject: str, problems: Sequence[Problem]) -> None:
        self.subject, self.problems = subject, tuple(problems)
        count = len(self.problems)
        lines = [f"{subject}: {count} problem{'s' if count != 1 else ''}, nothing was started."]
        super().__init__("\n".join([*lines, *_listed(self.problems)]))


class RunError(RlnbError, RuntimeError):
    """Raised for a run that failed, was lost, or cannot do the request. The message names the log and the next call."""


class NotFiniteError(RunError):
    """Raised for a weight, an action or a value of an env that is nan or infinite. The message names its place."""


class WorkerError(RlnbError, RuntimeError):
    """Raised when the worker answers with an error, or ends.

    The message of an error in the task's own code begins with the file, the line and the error. If the worker has
    ended, the message shows the end of its log.

    Attributes:
        detail: The whole traceback in the worker; empty if it has ended.
        fix: What removes the fault, as a sentence; empty if that is not known.
    """

    def __init__(self, message: str, *, detail: str = "", fix: str = "") -> None:
        self.detail, self.fix = detail, fix
        super().__init__(message)

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class InterruptedRequest(RlnbError):
    """Raised in a worker to end a request that the user has interrupted.

    Isaac Lab cleans up after an ``Exception`` only, so a ``KeyboardInterrupt`` would keep its simulation open.
    """


class FreshProcessError(RlnbError):
    """Raised by a worker that cannot serve a request with the modules that it has loaded. A fresh worker can."""


class TrainingStopped(Exception):
    """Raised in a worker to end a training that was told to stop and has saved a checkpoint. It is not a failure."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest of the names, else an empty string."""
    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def unknown(kind: str, name: str, names: Iterable[str], *, has: str = "Installed") -> NotFoundError:
    """Return the error for a name that does not exist. It lists the existing names and suggests the closest one."""
    choices = sorted(names)
    text = ", ".join(choices) if choices else "none"
    return NotFoundError(f"No {kind} named {name!r}. {has}: {text}.{did_you_mean(name, choices)}")


def linux_only(subject: str) -> list[Problem]:
    """Return one problem if this system is not Linux, else an empty list.

    The agent of a job relies on prctl, pidfd and ``/proc``, which no other system has.
    """
    if sys.platform == "linux":
        return []
    fix = "Use a Linux machine, or WSL 2 on Windows. Existing runs can be read, watched and reported here."
    return [Problem(what=f"{subject} needs Linux, and this is {platform.system()}.", fix=fix)]


def require_linux(subject: str) -> None:
    """Raise the problem of :func:`linux_only` as an error.

    Raises:
        RlnbError: This system is not Linux.
    """
    for problem in linux_only(subject):
        raise RlnbError(f"{problem.what} {problem.fix}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One reason why a request would fail."""

    what: str
    """The fault, where it is, and the valid choices."""
    fix: str = ""
    """The call, command or edit that removes the fault; empty if there is none."""
    note: bool = False
    """Whether it is right in some tasks, so that it keeps no training from starting."""


class Problems(list[Problem]):
    """A list of problems that a notebook shows as text."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the problems; the name is IPython's."""
        printer.text("\n".join(_listed(self)) or "No problems were found.")


def _listed(problems: Iterable[Problem]) -> Iterator[str]:
    """Return the lines about problems and their fixes."""
    for problem in problems:
        yield f"  - {'note: ' if problem.note else ''}{problem.what}"
        if problem.fix:
            yield f"    fix: {problem.fix}"


def refuse_other_than_text(name: str, value: object) -> None:
    """Refuse a value that is not text.

    Raises:
        NotFoundError: ``value`` is not a string.
    """
    if not isinstance(value, str):
        raise NotFoundError(f"{name}={value!r} is not text. Use a name.")


def whole_number(name: str, value: object, *, least: int = 1, example: int | None = None) -> list[Problem]:
    """Return one problem if a value is not a whole number or is too small, else an empty list.

    Args:
        name: Name of the argument.
        value: Value of the argument.
        least: Smallest valid number.
        example: A valid number for the fix; None leaves the fix out.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return []
    kind = "a positive whole number" if least == 1 else f"a whole number of at least {least}"
    return [Problem(what=f"{name}={value!r} is not {kind}.", fix="" if example is None else f"{name}={example}")]
