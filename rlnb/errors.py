"""The errors rlnb raises. Each says what went wrong, what there is instead, and the fix."""

from __future__ import annotations

import difflib
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class RlnbError(Exception):
    """Base of every error that rlnb raises on purpose."""


class NotFoundError(RlnbError, LookupError):
    """A name (task, library, launcher, run, camera, ...) that does not exist."""


class CheckError(RlnbError, ValueError):
    """A request that would fail. Raised before any file is written, with all problems at once.

    Attributes:
        subject: What would fail: a task, a training, a preview.
        problems: Every problem with its fix, in the order in which they were found.
    """

    def __init__(self, subject: str, problems: Sequence[Problem]) -> None:
        self.subject, self.problems = subject, tuple(problems)
        count = len(self.problems)
        lines = [f"{subject}: {count} problem{'s' if count != 1 else ''}, nothing was started."]
        for problem in self.problems:
            lines.append(f"  - {problem.what}")
            if problem.fix:
                lines.append(f"    fix: {problem.fix}")
        super().__init__("\n".join(lines))


class RunError(RlnbError, RuntimeError):
    """A run that failed, was lost or cannot do what was asked. Names the log and the next call."""


class WorkerError(RlnbError, RuntimeError):
    """The worker process answered with an error or ended. Carries the end of its log."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest of the names, else an empty string."""
    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def unknown(kind: str, name: str, names: Iterable[str], *, has: str = "Installed") -> NotFoundError:
    """Return the error for a name that does not exist, with the names that do and the closest of them."""
    choices = sorted(names)
    text = ", ".join(choices) if choices else "none"
    return NotFoundError(f"No {kind} named {name!r}. {has}: {text}.{did_you_mean(name, choices)}")


def linux_only(subject: str) -> list[Problem]:
    """Return the problem that something needs Linux, or nothing on Linux.

    The agent of a job relies on prctl, pidfd and ``/proc``, which no other system has.
    """
    if sys.platform == "linux":
        return []
    fix = "Use a Linux machine, or WSL 2 on Windows. Existing runs can be read, watched and reported here."
    return [Problem(what=f"{subject} needs Linux, and this is {platform.system()}.", fix=fix)]


def require_linux(subject: str) -> None:
    """Raise the problem of :func:`linux_only` as an error.

    Raises:
        RlnbError: This is another system.
    """
    for problem in linux_only(subject):
        raise RlnbError(f"{problem.what} {problem.fix}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One reason why a request would fail."""

    what: str
    """The fault, its place, and the valid alternatives."""
    fix: str = ""
    """The call, command or edit that fixes it."""


def whole_number(name: str, value: object, *, least: int = 1, example: int | None = None) -> list[Problem]:
    """Return one problem for a value that is not a whole number, or is too small; an empty list for one that fits.

    Args:
        name: Name of the argument.
        value: Its value.
        least: Smallest number that fits.
        example: A number for the fix; None leaves the fix out.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return []
    kind = "a positive whole number" if least == 1 else f"a whole number from {least} on"
    return [Problem(what=f"{name}={value!r} is not {kind}.", fix="" if example is None else f"{name}={example}")]
