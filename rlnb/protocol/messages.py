"""The lines of JSON on the pipes between a kernel, the node agent of its warm simulator, and the worker.

A kernel writes calls and adoptions. The worker writes that it is ready, then for each call any number of interim values
and one answer or failure. While it shows a 3D view, it also answers calls about that view. The node agent between the
two adds messages about the start, and answers controls, which do not reach the worker. After an adoption, the kernel
writes nothing until the agent has handed the worker back. The names of the fields are the wire format, and both ends
need the same version of rlnb.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from rlnb import errors
from rlnb.errors import CheckError, Problem, RlnbError, WorkerError
from rlnb.protocol.code_location import location_of_error, text_of_error
from rlnb.protocol.requests import BY_VERB, Request, answer_type, verb
from rlnb.spec import Json
from rlnb.storage.serial import from_json, to_json
from rlnb.version import __version__

A = TypeVar("A")


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A request of the kernel."""

    id: int
    """Number of the call, which its answer repeats."""
    verb: str
    """Name of the request."""
    payload: Mapping[str, Json]
    """Fields of the request, as JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Adoption:
    """The kernel hands the worker over to a run."""

    adopt: str
    """Folder of the job that the worker does next."""
    webhook: str = ""
    """Address that gets the alerts of the job's run; empty without one. A pipe keeps the secret."""
    hosted: bool = False
    """Whether the worker is in a job of a cluster, which says so itself. A signal then takes its node away."""
    ends_s: float | None = None
    """Time at which that job is ended, in seconds since the epoch; None if it has no walltime."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """A message of the kernel to the node agent, which may be on another machine."""

    control: Literal["interrupt", "kill", "pulse", "stacks", "usage"]
    """``"interrupt"`` interrupts the worker's call. ``"kill"`` ends the worker and the agent. The others ask for a
    :class:`Pulse`, the :class:`Stacks` or the :class:`Usage`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """The worker has started."""

    ready: bool = True
    """Always true; marks the message."""
    rlnb: str = ""
    """Version of the worker's rlnb; empty for a version that does not send it."""
    pid: int = 0
    """Process id of the worker, which a wrapper may have started; 0 for a version that does not send it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Meanwhile:
    """An interim value that the worker sends before its answer."""

    id: int
    """Number of the call."""
    meanwhile: Json
    """The value as JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The worker's answer to a call."""

    id: int
    """Number of the call."""
    value: Json
    """The answer as JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """The error that a call ended with."""

    id: int
    """Number of the call."""
    error: str
    """Message of the error, after the name of its class if the class is not from rlnb."""
    kind: str = ""
    """Name of the error's class in :mod:`rlnb.errors`; empty for any other error, e.g. one in the task's own code."""
    subject: str = ""
    """Subject of a :class:`rlnb.CheckError`."""
    problems: tuple[Problem, ...] = ()
    """Problems of a :class:`rlnb.CheckError`."""
    detail: str = ""
    """Traceback."""
    place: str = ""
    """Place in the task's own code where the error was raised; empty if it has no part in it."""
    fix: str = ""
    """What removes the fault, as the notes of the error say."""
    own: str = ""
    """Those lines of the traceback that are about the task's own code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Silent:
    """The node agent has seen no output of the starting worker for minutes."""

    silent: str
    """Path of the log, which ends with the stacks of the worker's threads."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hangs:
    """The node agent ended the worker, because it did not start."""

    hangs: str
    """The reason, as a sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Died:
    """The worker has ended by itself."""

    died: str
    """How, as a clause, e.g. ``"the worker ended with status 3"``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pulse:
    """A sign of life of the worker, if it differs from the one before."""

    log_bytes: int
    """Size of the worker's log."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stacks:
    """The stacks of the worker's threads."""

    stacks: str
    """Output of Python's faulthandler; empty for a worker that cannot be asked, or that did not answer in a second."""
    end_bytes: int = 0
    """Size of the worker's log after it has written them there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """The memory of the worker and its child processes."""

    memory_bytes: int = 0
    """Resident memory."""
    gpu_memory_bytes: int = 0
    """Memory of all GPUs, as far as the driver reports it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Connected:
    """A job on another machine has accepted the kernel, and starts the worker."""

    host: str
    """Name of the machine."""
    rlnb: str = ""
    """Version of rlnb there."""
    ends_s: float | None = None
    """Time at which the job is ended, in seconds since the epoch, by the clock of that machine; None if it has no
    walltime."""
    now_s: float | None = None
    """What that clock shows; None if the machine does not say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """The job on another machine has not started yet."""

    waits: str
    """The reason, in one line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The worker on another machine has ended."""

    ended: str
    """End of its log."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A file of another machine. Its bytes follow the line."""

    folder: str
    """Folder on the kernel's machine, which the request has named."""
    name: str
    """Name of the file in that folder."""
    bytes: int
    """Size of the file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """A file of a task, for a worker on another machine. Its bytes follow the line."""

    module: str
    """Path of the file, relative to its root."""
    root: str
    """Folder of the task's module on the kernel's machine."""
    bytes: int
    """Size of the file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Original:
    """A folder of a run that the worker's machine has too, at another path."""

    root: str
    """Folder on the kernel's machine."""
    original: str
    """Folder on the worker's machine; ``~`` is the home there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Adopted:
    """The node agent has handed the worker over to a run."""

    adopted: bool = True
    """Always true; marks the message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Returned:
    """The run has ended, and the worker serves the kernel again. The worker tells its agent, which tells the kernel."""

    returned: bool = True
    """Always true; marks the message."""
    rlnb: str = ""
    """Version of the worker's rlnb, as in :class:`Ready`."""
    pid: int = 0
    """Process id of the worker; 0 if the run has not used it."""


Message = (
    Ready
    | Meanwhile
    | Answer
    | Failure
    | Silent
    | Hangs
    | Died
    | Pulse
    | Stacks
    | Usage
    | Connected
    | Waiting
    | Ended
    | Sent
    | Adopted
    | Returned
)
_MARKS: Mapping[str, type[Message]] = {
    "meanwhile": Meanwhile,
    "value": Answer,
    "error": Failure,
    "ready": Ready,
    "silent": Silent,
    "hangs": Hangs,
    "died": Died,
    "log_bytes": Pulse,
    "stacks": Stacks,
    "memory_bytes": Usage,
    "host": Connected,
    "waits": Waiting,
    "ended": Ended,
    "folder": Sent,
    "adopted": Adopted,
    "returned": Returned,
}
"""Type of a message by the key that only messages of this type have."""


def line(message: Call | Adoption | Control | Module | Original | Message) -> bytes:
    """Return a message as a line for a pipe."""
    return json.dumps(to_json(message)).encode() + b"\n"


def message(text: bytes) -> Message | None:
    """Return the message in a line of the worker or its agent; None for a kind that this version does not know."""
    values = json.loads(text)
    kind = next((kind for mark, kind in _MARKS.items() if mark in values), None)
    return from_json(kind, values, ignore_unknown=True) if kind is not None else None


def call(number: int, request: Request[Any]) -> Call:
    """Return the call that carries a request."""
    return Call(id=number, verb=verb(type(request)), payload=to_json(request))


def request_of(call: Call) -> Request[Any]:
    """Return the request that a call carries.

    Raises:
        NotFoundError: The verb does not exist.
        RlnbError: A field of the request is missing, unknown or of another type.
    """
    if call.verb not in BY_VERB:
        raise errors.unknown("request", call.verb, BY_VERB, has="Requests are")
    return from_json(BY_VERB[call.verb], call.payload)


def value_of(request: Request[A], value: Any, worker: Ready) -> A:
    """Return the answer of a worker to a request.

    Args:
        request: The request.
        value: The answer as JSON.
        worker: First message of the worker, which holds its version.

    Raises:
        WorkerError: The answer does not fit, because the worker has another version of rlnb.
    """
    kind = answer_type(type(request))
    if kind is None:
        return None  # type: ignore[return-value]
    try:
        return from_json(kind, value)
    except RlnbError as exc:
        version = f"rlnb {worker.rlnb}" if worker.rlnb else "another version of rlnb"
        raise WorkerError(
            f"The worker has {version}, whose answer does not fit rlnb {__version__} in this process. {exc} "
            f"Install rlnb {__version__} in the worker's interpreter."
        ) from exc


def failure(number: int, exc: BaseException) -> Failure:
    """Return the message for the error that a call ended with. Call it in the ``except`` block."""
    if not isinstance(exc, RlnbError):
        detail = traceback.format_exc()
        place, own = location_of_error(exc)
        error = text_of_error(exc) if place else f"{type(exc).__name__}: {exc}"
        fix = " ".join(getattr(exc, "__notes__", ()))
        return Failure(id=number, error=error, detail=detail, place=place, fix=fix, own=own)
    check = exc if isinstance(exc, CheckError) else None
    return Failure(
        id=number,
        error=str(exc),
        kind=next(kind.__name__ for kind in type(exc).__mro__ if kind.__module__ == errors.__name__),
        subject=check.subject if check else "",
        problems=check.problems if check else (),
        detail=traceback.format_exc(),
    )


def error_of(failure: Failure) -> RlnbError:
    """Return the error of a failure, with the class that it had in the worker."""
    kind = getattr(errors, failure.kind, None) if failure.kind else None
    if kind is CheckError:
        return CheckError(failure.subject, failure.problems)
    if isinstance(kind, type) and issubclass(kind, RlnbError):
        return kind(failure.error)
    if not failure.place:
        return WorkerError(f"{failure.error}\n\n{failure.detail}", detail=failure.detail, fix=failure.fix)
    whole = "The attribute detail of this error holds the whole traceback."
    text = f"{failure.place}: {failure.error}\n{failure.own}{whole}"
    return WorkerError(text, detail=failure.detail, fix=failure.fix)
