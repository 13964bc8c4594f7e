"""The lines of JSON on the pipes between a kernel, the node agent of its living simulator, and the worker.

A kernel writes calls, and in the end perhaps an adoption. The worker writes that it is ready, then for each call any
number of interim values and one answer or failure. The agent between the two adds its own view of the start.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from rlnb import errors
from rlnb.errors import CheckError, Problem, RlnbError, WorkerError
from rlnb.spec import Json
from rlnb.storage.serial import from_json, to_json
from rlnb.tasks.requests import BY_VERB, Request, answer_type, verb
from rlnb.version import __version__

A = TypeVar("A")


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A request of the kernel."""

    id: int
    """Number of the call; its answer bears the same."""
    verb: str
    payload: Mapping[str, Json]
    """Fields of the request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Adoption:
    """The kernel hands the worker over to a run; nothing follows."""

    adopt: str
    """Folder of the job that the worker does from now on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """The worker has started."""

    ready: bool = True
    rlnb: str = ""
    """Version of the worker's rlnb; empty for one that does not say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Meanwhile:
    """Something that the worker tells before its answer."""

    id: int
    meanwhile: Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The worker has done what it was called for."""

    id: int
    value: Json
    settled: bool = True
    """Whether the worker has nothing left to load."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """The worker could not do what it was called for."""

    id: int
    error: str
    """Message of the error; of an error that is not rlnb's own, with its class before it."""
    kind: str = ""
    """Class of :mod:`rlnb.errors`; empty for any other error, such as one of the task's own code."""
    subject: str = ""
    """Subject of a :class:`rlnb.CheckError`."""
    problems: tuple[Problem, ...] = ()
    """Problems of a :class:`rlnb.CheckError`."""
    detail: str = ""
    """Traceback."""
    settled: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Silent:
    """The agent has seen no output of the worker for minutes while it starts."""

    silent: str
    """The log that ends with the stacks of the worker's threads."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hangs:
    """The agent ended the worker, since it did not start."""

    hangs: str
    """The reason, as a sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Adopted:
    """The agent has taken the worker over for a run."""

    adopted: bool = True


Message = Ready | Meanwhile | Answer | Failure | Silent | Hangs | Adopted
_MARKS: Mapping[str, type[Message]] = {
    "meanwhile": Meanwhile,
    "value": Answer,
    "error": Failure,
    "ready": Ready,
    "silent": Silent,
    "hangs": Hangs,
    "adopted": Adopted,
}
"""The key that only messages of a type have, to that type."""


def line(message: Call | Adoption | Message) -> bytes:
    """Return a message as it goes over a pipe."""
    return json.dumps(to_json(message)).encode() + b"\n"


def message(text: bytes) -> Message | None:
    """Return a line of the worker or of its agent; None for one of a kind that this rlnb does not know."""
    values = json.loads(text)
    kind = next((kind for mark, kind in _MARKS.items() if mark in values), None)
    return from_json(kind, values, ignore_unknown=True) if kind is not None else None


def call(number: int, request: Request[Any]) -> Call:
    """Return the call that carries a request."""
    return Call(id=number, verb=verb(type(request)), payload=to_json(request))


def request_of(call: Call) -> Request[Any]:
    """Return the request that a call carries.

    Raises:
        NotFoundError: There is no such verb.
        RlnbError: A field of the request is missing, unknown or of another type.
    """
    if call.verb not in BY_VERB:
        raise errors.unknown("request", call.verb, BY_VERB, has="Requests are")
    return from_json(BY_VERB[call.verb], call.payload)


def value_of(request: Request[A], value: Any, worker: Ready) -> A:
    """Return what a worker answers to a request.

    Args:
        request: The request.
        value: The answer as JSON.
        worker: The worker's first line.

    Raises:
        WorkerError: The worker answers as another version of rlnb does.
    """
    kind = answer_type(type(request))
    if kind is None:
        return None  # type: ignore[return-value]
    try:
        return from_json(kind, value)
    except RlnbError as exc:
        version = f"rlnb {worker.rlnb}" if worker.rlnb else "another version of rlnb"
        raise WorkerError(
            f"The worker has {version}, whose answer does not fit rlnb {__version__}, which runs here. {exc} "
            f"Install rlnb {__version__} in the worker's interpreter."
        ) from exc


def failure(number: int, exc: BaseException, *, settled: bool = True) -> Failure:
    """Return the message about an error that a call ended with, from within its ``except``."""
    if not isinstance(exc, RlnbError):
        error, detail = f"{type(exc).__name__}: {exc}", traceback.format_exc()
        return Failure(id=number, error=error, detail=detail, settled=settled)
    check = exc if isinstance(exc, CheckError) else None
    return Failure(
        id=number,
        error=str(exc),
        kind=next(kind.__name__ for kind in type(exc).__mro__ if kind.__module__ == errors.__name__),
        subject=check.subject if check else "",
        problems=check.problems if check else (),
        detail=traceback.format_exc(),
        settled=settled,
    )


def error_of(failure: Failure) -> RlnbError:
    """Return the error that a failure tells of, of the class that it had in the worker."""
    kind = getattr(errors, failure.kind, None) if failure.kind else None
    if kind is CheckError:
        return CheckError(failure.subject, failure.problems)
    if isinstance(kind, type) and issubclass(kind, RlnbError):
        return kind(failure.error)
    return WorkerError(f"{failure.error}\n\n{failure.detail}")
