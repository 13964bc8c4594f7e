"""Requests to the warm simulator and their answers: one request class per verb, with the type of its answer.

The kernel builds a request and gets the answer (:meth:`rlnb.simulation.pool.SimulatorPool.request`). The worker has a
handler for each class (``rlnb.worker.requests.serve``). :mod:`rlnb.protocol.messages` carries both over a pipe.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args

from rlnb.configs.cameras import FREE, CameraPose
from rlnb.configs.card import TaskCard
from rlnb.spec import EnvMode, Job, JobKind, Task

# -- request ---------------------------------------------------------------------------------------------------------


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


# -- debug -----------------------------------------------------------------------------------------------------------
# The answers of the debugger's requests may wait for minutes at a breakpoint, so they have no time limit.


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvData:
    """What an env returned from a reset or a step."""

    file: str
    """Path of an npz file with an array for each observation, the rewards, the ends and the reward terms."""
    log: Mapping[str, float] = field(default_factory=dict)
    """Values that the env has logged."""
    missing: tuple[str, ...] = ()
    """Variables of a snapshot that the env of a replay does not have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A value of an env."""

    file: str = ""
    """Path of an npz file with the array ``value``; empty for a value that is no array."""
    text: str = ""
    """The ``repr`` of a value that is no array."""
    names: tuple[str, ...] = ()
    """Names of the parts of a value that is no array."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Address of a server of the simulator."""

    port: int
    """Port on the worker's loopback interface."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Debug(ActingRequest[EnvData]):
    """Make an env that stays open until another request makes one, and reset it."""

    limit_s: ClassVar[float] = math.inf

    out: str
    """Folder for npz files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay(TaskRequest[EnvData]):
    """Make the env of a training as it was at the first recorded step. :class:`Step` repeats the recorded steps."""

    limit_s: ClassVar[float] = math.inf

    run: str
    """Folder of the run."""
    flight: str
    """Folder of the record."""
    device: str
    """As in :class:`rlnb.spec.Resources`."""
    out: str
    """Folder for npz files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reset(Request[EnvData]):
    """Reset the env of the debugger."""

    limit_s: ClassVar[float] = math.inf

    seed: int | None = None
    """Seed of the env; None goes on with its random numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step(Request[EnvData]):
    """Step the env of the debugger."""

    limit_s: ClassVar[float] = math.inf

    steps: int = 1
    """Number of steps."""
    actions: tuple[tuple[float, ...], ...] | None = None
    """Actions of each env, of shape (num_envs, actions); None takes those of the :class:`Debug` request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Read(Request[Reading]):
    """Read a value of the debugger's env."""

    limit_s: ClassVar[float] = math.inf

    path: str
    """Dotted path below the env, such as ``"robot.data.joint_pos"``; an empty text is the env itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture(Request[Reading]):
    """Take a picture of some envs of the debugger: arrays ``<camera>/rgb``, each of shape (envs, height, width, 3)."""

    limit_s: ClassVar[float] = math.inf

    envs: tuple[int, ...]
    """Numbers of the envs."""
    size: tuple[int, int]
    """Width and height of the picture of an env, in pixels, if the task has no camera."""
    aim: CameraPose = FREE
    """Place of the camera, if the task has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listen(Request[Address]):
    """Let a debugger attach to the simulator."""

    token: str = ""
    """Secret that the debugger has to send first; empty for the debugger of an editor, which has none."""


# -- looking at tasks ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Ping(Request[None]):
    """Wait until the simulator answers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskIds:
    """Tasks of Isaac Lab's registry."""

    ids: tuple[str, ...]
    """Ids of the tasks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tasks(Request[TaskIds]):
    """List the registered tasks."""

    imports: tuple[str, ...] = ()
    """Modules that the worker imports first, because they register tasks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Card(TaskRequest[TaskCard]):
    """Resolve a task and describe it."""

    limit_s: ClassVar[float] = 900.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Compilation:
    """Cost of compiling the kernels of a task."""

    seconds: float
    """Time to compile and load the kernels."""
    cache: str
    """Folder of compiled kernels."""
    cache_mib: float
    """Size of that folder, MiB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compile(TaskRequest[Compilation]):
    """Compile and load the kernels of a task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirrored:
    """Files of an asset root that were copied to a folder. All paths are below the asset root."""

    root: str
    """The asset root, a folder or a URL."""
    copied: tuple[str, ...] = ()
    """Files that were copied."""
    existing: tuple[str, ...] = ()
    """Files that the folder already had."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Files that the root does not have, with the file that names each."""
    outside: Mapping[str, str] = field(default_factory=dict)
    """References to files outside the root, which are not copied, with the file that names each."""
    bytes: int = 0
    """Size of the copied files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirror(Request[Mirrored]):
    """Copy the asset files of some tasks to a folder."""

    tasks: tuple[Task, ...]
    """Tasks whose assets to copy."""
    folder: str
    """Target folder."""


# -- cameras ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskFinding:
    """Something in what a task's env returns that will keep a policy from learning, or that may."""

    level: Literal["warning", "note"]
    """``"warning"`` for a mistake, ``"note"`` for what is right in some tasks."""
    what: str
    """The finding, with measured values."""
    fix: str
    """What to do about it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Examination:
    """What is wrong with a task."""

    findings: tuple[TaskFinding, ...] = ()
    """Findings, the mistakes first."""
    term_sizes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """As in :attr:`rlnb.configs.card.TaskCard.term_sizes`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Examine(ActingRequest[Examination]):
    """Step a task and look at what its env returns."""

    steps: int
    """Env steps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Clip:
    """Camera frames in a file, and their description."""

    file: str
    """Path of an npz file. It holds an array ``<camera>/<data type>`` of shape (times, envs, height, width, channels)
    for each output, and ``state`` of shape (times, envs, values) with the poses and joint positions."""
    times_s: tuple[float, ...]
    """Simulated time of each frame since the reset, seconds."""
    labels: Mapping[str, Mapping[str, str]]
    """Label of each id in a segmentation, by ``"<camera>/<data type>"``."""
    ranges_m: Mapping[str, tuple[float, float]]
    """Near and far clipping distance of each camera, metres."""
    noisy: tuple[str, ...] = ()
    """Names of the cameras whose renderer adds noise to their colours."""
    added: bool
    """Whether the camera was added to the task."""
    place: CameraPose | None = None
    """Place of an added camera, in the frame of the first env, at the last moment."""
    findings: tuple[TaskFinding, ...] = ()
    """Mistakes in what the env returns."""
    term_sizes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """As in :attr:`rlnb.configs.card.TaskCard.term_sizes`."""
    seconds: Mapping[str, float]
    """Seconds to ``make`` the env, until the ``first`` frame, and in ``total``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview(ActingRequest[Clip]):
    """Render a task after the reset, at regular steps, and after the last step.

    The first frame is sent as an interim value.
    """

    cameras: tuple[str, ...] | None = None
    """Names of the cameras; None takes all."""
    data_types: tuple[str, ...] | None = None
    """Isaac Lab's names of outputs; None keeps those in each camera's config."""
    envs: tuple[int, ...] | None = None
    """Numbers of the envs to show; None takes all."""
    steps: int
    """Env steps from the first frame to the last."""
    every: int | None = None
    """Steps between frames; None takes only the first and the last frame."""
    size: tuple[int, int]
    """Width and height of an added camera, pixels."""
    aim: CameraPose = FREE
    """Place of an added camera."""
    out: str
    """Folder for the npz file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewAddress(Address):
    """Address of a 3D view."""

    commands: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=dict)
    """Range from which the task samples each component of its velocity commands, by command and component."""


@dataclass(frozen=True, kw_only=True, slots=True)
class View(ActingRequest[ViewAddress]):
    """Show a task in 3D until the next request. The address is sent as an interim value once the view is served.

    :class:`Push` and :class:`Hold` do not end the view.
    """

    limit_s: ClassVar[float] = math.inf

    speed: float = 1.0
    """Simulated seconds per second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Push(Request[None]):
    """Push the robots of an open view: change the velocity of their bases in all envs."""

    limit_s: ClassVar[float] = 30.0

    velocity: tuple[float, ...]
    """Change of the velocity in the frame of the world, m/s: x and y, or x, y and z. One value is a speed, for which
    each env gets a random horizontal direction."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold(Request[None]):
    """Hold a velocity command of an open view in all envs, or let the task sample it again."""

    limit_s: ClassVar[float] = 30.0

    name: str
    """Name of the command."""
    value: tuple[float, ...] | None
    """Value of each component; None lets the task sample the command."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Cost of rendering one frame of all envs."""

    size: tuple[int, int]
    """Width and height of each env's frame, pixels."""
    num_envs: int
    """Number of envs. Each has one camera, and all are rendered at once as tiles of one picture."""
    times_ms: tuple[float, ...]
    """Time of each measured frame, milliseconds."""
    mib: float
    """Memory of one frame of all envs, MiB."""

    @property
    def ms(self) -> float:
        """Median of the times, milliseconds."""
        return statistics.median(self.times_ms)


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Costs of frames."""

    rows: tuple[Cost, ...] = ()
    """Costs in the order in which they were measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget(TaskRequest[Costs]):
    """Measure the frames of a camera. The costs so far are sent as an interim value after each number of envs."""

    camera: str | None = None
    """Name of the task's camera; None takes the first camera, or adds one to a task without cameras."""
    data_types: tuple[str, ...] | None = None
    """Isaac Lab's names of outputs; None keeps those in the camera's config."""
    sizes: tuple[tuple[int, int], ...]
    """Widths and heights to measure, pixels."""
    envs: tuple[int, ...]
    """Numbers of envs to measure, ascending."""
    frames: int
    """Number of frames to time for each size and number of envs."""
    device: str = "auto"
    """As in :class:`rlnb.spec.Resources`."""


# -- the env of the tuner --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """How the env of a task was opened."""

    how: str
    """``"new env"``, ``"the same env"``, or the swapped sections, e.g. ``"rewards swapped"``."""
    seconds: Mapping[str, float]
    """Seconds to ``resolve`` the config, and to ``change`` the env."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Open(TaskRequest[Change]):
    """Open the env of a manager-based task: the open env with its terms swapped if that is enough, else a new env."""

    actions: Actions = "random"
    """Actions of the env's steps."""
    seed: int = 42
    """Seed of the env."""
    device: str = "auto"
    """As in :class:`rlnb.spec.Resources`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewards:
    """Values of the reward terms in the last step."""

    terms: Mapping[str, tuple[float, ...]]
    """Weighted value of each env per second of simulated time, by term."""
    reward: tuple[float, ...]
    """Sum of the terms for each env."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Advance(Request[Rewards]):
    """Step the open env."""

    steps: int = 1
    """Number of steps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Close(Request[None]):
    """Close the open env."""


# -- jobs of runs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class RunJob(Request[None]):
    """Do a job of a run, and write the result into the job's folder."""

    limit_s: ClassVar[float] = 4 * 3600.0

    kind: JobKind
    """Kind of the job."""
    job_dir: str
    """Folder of the job."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFiles:
    """What a job has written."""

    files: Mapping[str, str]
    """Copy of each file, by its path below the folder of the run. The result of the job comes last."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunJobThere(Request[JobFiles]):
    """Do a job of a run whose folder the kernel does not share with the worker, and send back what it has written."""

    limit_s: ClassVar[float] = RunJob.limit_s

    kind: JobKind
    """Kind of the job."""
    job_dir: str
    """Folder of the job, which the worker makes."""
    job: Job
    """Record of the job."""
    out: str
    """Folder for the copies of the files."""


ALL: tuple[type[Request[Any]], ...] = (
    Ping,
    Tasks,
    Card,
    Compile,
    Mirror,
    Preview,
    Examine,
    View,
    Push,
    Hold,
    Budget,
    Open,
    Advance,
    Close,
    Debug,
    Replay,
    Reset,
    Step,
    Read,
    Picture,
    Listen,
    RunJob,
    RunJobThere,
)
"""Every class of requests."""
BY_VERB: Mapping[str, type[Request[Any]]] = {verb(request): request for request in ALL}
"""Class of a request by its name on the pipe."""
