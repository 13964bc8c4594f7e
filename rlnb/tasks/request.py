"""What all requests to the living simulator have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args

from rlnb.spec import EnvMode, Task

A = TypeVar("A")
Actions = Literal["random", "zero"]
"""Actions without a policy, either uniform in -1 to 1 or zeros."""


class Request(Generic[A]):
    """A request with an answer of type ``A``. Interim values have the same type."""

    __slots__ = ()
    limit_s: ClassVar[float] = 3600.0
    """Seconds without a sign of life of the simulator after which the request ends with an error."""


def verb(request: type[Request[Any]]) -> str:
    """Return the name of a request on the pipe, e.g. ``"preview"`` for :class:`Preview`."""
    return request.__name__.lower()


def answer_type(request: type[Request[A]]) -> type[A] | None:
    """Return the dataclass of a request's answer; None for a request without one."""
    base = next(base for base in request.__orig_bases__ if get_args(base))  # type: ignore[attr-defined]
    (answer,) = get_args(base)
    return None if answer is type(None) else answer


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRequest(Request[A]):
    """A request about one task."""

    task: Task
    """The task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """The trained policy that acts in an env."""

    run: str
    """Folder of the policy's run."""
    checkpoint: str
    """Path of the checkpoint, relative to the run's folder."""
    trust: bool
    """Whether a checkpoint that holds more than weights may be loaded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActingRequest(TaskRequest[A]):
    """A request that steps an env with actions or with a policy."""

    num_envs: int
    """Number of envs to make."""
    actions: Actions = "random"
    """Actions to use without a policy."""
    policy: Policy | None = None
    """Policy to use; None uses :attr:`actions`."""
    mode: EnvMode = "train"
    """Env to make."""
    seed: int = 42
    """Seed of the env."""
    device: str = "auto"
    """As in :class:`rlnb.spec.Resources`."""
