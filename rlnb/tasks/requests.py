"""Requests to the living simulator and their answers: one request class per verb, with the type of its answer.

The kernel builds a request and gets the answer (:func:`rlnb.simulation.simulator.request`). The worker has a handler
for each class (``rlnb.worker.requests.serve``). :mod:`rlnb.tasks.messages` is how both go over a pipe.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, get_args

from rlnb.spec import JobKind, Task
from rlnb.tasks.card import TaskCard

A = TypeVar("A")
Actions = Literal["random", "zero"]
"""Actions where no policy acts: uniform in -1 to 1, or zeros."""


class Request(Generic[A]):
    """A request with an answer of type ``A``. Interim values before the answer are of that type too."""

    __slots__ = ()


def verb(request: type[Request[Any]]) -> str:
    """Return the name of a request on the pipe: ``"preview"`` of :class:`Preview`."""
    return request.__name__.lower()


def answer_type(request: type[Request[A]]) -> type[A] | None:
    """Return the dataclass of a request's answer; None where it has no answer."""
    base = next(base for base in request.__orig_bases__ if get_args(base))  # type: ignore[attr-defined]
    (answer,) = get_args(base)
    return None if answer is type(None) else answer


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRequest(Request[A]):
    """A request about one task."""

    task: Task


# -- looking at tasks ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Ping(Request[None]):
    """Wait until the simulator answers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskIds:
    """Tasks of Isaac Lab's registry."""

    ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tasks(Request[TaskIds]):
    """List the registered tasks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Card(TaskRequest[TaskCard]):
    """Resolve a task and describe it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compilation:
    """Cost of compiling the kernels of a task."""

    seconds: float
    cache: str
    """Folder of compiled kernels."""
    cache_mib: float
    """Size of that folder, MiB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compile(TaskRequest[Compilation]):
    """Compile and load the kernels of a task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirrored:
    """Files of an asset root that were copied to a folder; paths are below the asset root."""

    root: str
    """The asset root, a folder or a URL."""
    copied: tuple[str, ...] = ()
    """Files that are new in the folder."""
    existing: tuple[str, ...] = ()
    """Files that the folder had before."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Files that the root does not have, to the file that names them."""
    outside: Mapping[str, str] = field(default_factory=dict)
    """References that lead out of the root and are not copied, to the file that names them."""
    bytes: int = 0
    """Size of the copies."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirror(Request[Mirrored]):
    """Copy the asset files of some tasks to a folder."""

    tasks: tuple[Task, ...]
    folder: str


# -- cameras ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """The trained policy that acts in an env."""

    run: str
    """Folder of its run."""
    checkpoint: str
    """Path of the checkpoint, below that folder."""
    trust: bool
    """Whether the checkpoint may hold more than weights."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActingRequest(TaskRequest[A]):
    """A request whose env is moved by actions or a policy."""

    num_envs: int
    """Envs to make."""
    actions: Actions = "random"
    policy: Policy | None = None
    """The policy that acts; None for ``actions``."""
    seed: int = 42
    """Seed of the env."""
    device: str = "auto"
    """As in :class:`rlnb.spec.Resources`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Clip:
    """Camera frames in a file, and what they mean."""

    file: str
    """An npz with an array ``<camera>/<data type>`` of shape (times, envs, height, width, channels) and ``state``, the
    poses and joint positions, of shape (times, envs, values)."""
    times_s: tuple[float, ...]
    """Simulated time of each moment since the reset."""
    labels: Mapping[str, Mapping[str, str]]
    """``"<camera>/<data type>"`` of a segmentation, to the label of each id."""
    ranges_m: Mapping[str, tuple[float, float]]
    """Near and far clip of each camera."""
    added: bool
    """Whether the camera is not the task's own."""
    seconds: Mapping[str, float]
    """Time to ``make`` the env, to the ``first`` frame, and in ``total``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview(ActingRequest[Clip]):
    """Photograph a task after the reset, after every so many steps, and after the last step.

    The first frame alone is told before the answer.
    """

    cameras: tuple[str, ...] | None = None
    """Names of cameras; None is all."""
    data_types: tuple[str, ...] | None = None
    """Isaac Lab's names of outputs; None is what each camera is set to."""
    envs: tuple[int, ...] | None = None
    """Envs to show; None is all."""
    steps: int
    """Env steps from the first frame to the last."""
    every: int | None = None
    """Steps between frames; None takes the first and the last only."""
    size: tuple[int, int]
    """Width and height of an added camera, pixels."""
    out: str
    """Folder for the file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where a 3D view is served."""

    port: int
    """Port of the worker's loopback interface."""


@dataclass(frozen=True, kw_only=True, slots=True)
class View(ActingRequest[Address]):
    """Show a task in 3D until the next request comes. The address is told as soon as the view is served."""

    speed: float = 1.0
    """Simulated seconds per second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Cost of a frame of all envs."""

    size: tuple[int, int]
    """Width and height of each env's picture, pixels."""
    num_envs: int
    """Envs, each with one camera; all are rendered at once, as tiles of one picture."""
    times_ms: tuple[float, ...]
    """Times of the frames that were measured, milliseconds."""
    mib: float
    """Memory of the pictures of one frame, MiB."""

    @property
    def ms(self) -> float:
        """Median of the times, milliseconds."""
        return statistics.median(self.times_ms)


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Costs of frames, in the order in which they were measured."""

    rows: tuple[Cost, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget(TaskRequest[Costs]):
    """Measure frames of a camera. The costs so far are told after each number of envs."""

    camera: str | None = None
    """Name of the task's camera; None is its first, or one that is added."""
    data_types: tuple[str, ...] | None = None
    """Isaac Lab's names of outputs; None is what the camera is set to."""
    sizes: tuple[tuple[int, int], ...]
    """Widths and heights, pixels."""
    envs: tuple[int, ...]
    """Numbers of envs, ascending."""
    frames: int
    """Frames that are timed, of each size and number of envs."""
    device: str = "auto"
    """As in :class:`rlnb.spec.Resources`."""


# -- the env of the tuner --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """How the env of a task was had."""

    how: str
    """``"new env"``, ``"the same env"``, or the swapped sections: ``"rewards swapped"``."""
    seconds: Mapping[str, float]
    """Time to ``resolve`` the config, and for the ``change`` of the env."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Open(TaskRequest[Change]):
    """Have the env of a manager-based task: the living one with its terms swapped where that is enough, else new."""

    actions: Actions = "random"
    seed: int = 42
    device: str = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewards:
    """Values of the reward terms in the newest step."""

    terms: Mapping[str, tuple[float, ...]]
    """By term, a value per env, weight included, per second."""
    reward: tuple[float, ...]
    """Their sum per env."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Advance(Request[Rewards]):
    """Step the open env."""

    steps: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Close(Request[None]):
    """Close the open env."""


# -- jobs of runs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class RunJob(Request[None]):
    """Do a job of a run; its result is written into the job's folder."""

    kind: JobKind
    job_dir: str
    """Folder of the job."""


ALL: tuple[type[Request[Any]], ...] = (
    Ping,
    Tasks,
    Card,
    Compile,
    Mirror,
    Preview,
    View,
    Budget,
    Open,
    Advance,
    Close,
    RunJob,
)
"""Every request, for the reader of a pipe."""
BY_VERB: Mapping[str, type[Request[Any]]] = {verb(request): request for request in ALL}
