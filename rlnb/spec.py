"""The data types that the packages of rlnb exchange: frozen dataclasses that need the standard library only."""

from __future__ import annotations

import shlex
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
else:  # typing.get_type_hints does not resolve a recursive alias
    Json = Any

ENDED: tuple[State, ...] = ("completed", "failed", "cancelled", "timeout", "lost")
"""The states in which a run or a job has ended."""

SCHEMA = 1
"""Version of the JSON form of the types below (:mod:`rlnb.storage.serial`). Readers refuse a newer version."""

JobKind = Literal["train", "evaluate", "export"]
"""Kind of a job."""
EnvMode = Literal["play", "train"]
"""Env of an evaluation, a film or an export: as Isaac Lab's ``play_mode()`` leaves its config, or the training's."""
State = Literal["created", "queued", "starting", "running", "completed", "failed", "cancelled", "timeout", "lost"]
"""State of a run or a job."""
Outcome = Literal["completed", "failed", "cancelled", "timeout"]
"""Outcome of a job, as its result records it."""

METRICS: Mapping[str, str] = types.MappingProxyType(
    {
        "reward": "mean undiscounted return of finished episodes",
        "episode_length": "mean length of finished episodes, in env steps",
        "success_rate": "share of the last 100 whole episodes that succeeded, 0 to 1",
        "policy_loss": "policy (surrogate) loss",
        "value_loss": "value function loss",
        "entropy": "policy entropy, in nats",
        "learning_rate": "optimiser learning rate",
        "action_std": "mean standard deviation of the policy's actions",
        "fps": "frames (env transitions over all ranks) per second",
        "collection_s": "seconds of rollout per iteration",
        "learning_s": "seconds of learning per iteration",
        "critic_loss": "loss of the critics (action values), averaged over them",
        "temperature": "weight of the policy's entropy in the objective of SAC (alpha)",
        "buffer_size": "transitions in the replay buffers of all ranks",
    }
)
"""Metric names and their meanings. Every library plugin maps its own tags to these names."""
OFF_POLICY_METRICS = ("critic_loss", "temperature", "buffer_size")
"""Names in :data:`METRICS` that only off-policy algorithms log."""

COMPARED = {"compared": True}
"""Marks the fields below that may change what a training learns: legends name them, and runs are compared by them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A task: an Isaac Lab env config and the changes to it. :class:`rlnb.Task` adds verbs."""

    id: str
    """Registered id, ``"package.module:EnvCfg"``, or the name of a ``%%task`` cell."""
    source: str | None = None
    """Path of the task's module on disk; None for a registered id."""
    source_sha256: str | None = None
    """SHA-256 of that module's text."""
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the further local files that the module names, by path relative to the module."""
    imports: tuple[str, ...] = field(default=(), metadata=COMPARED)
    """Modules that the worker imports first, because they register tasks."""
    num_envs: int | None = field(default=None, metadata=COMPARED)
    """Environments in total, over all ranks; None keeps the task's own number."""
    presets: tuple[str, ...] = field(default=(), metadata=COMPARED)
    """Isaac Lab's global presets."""
    physics: str | None = field(default=None, metadata=COMPARED)
    """Isaac Lab's physics selector, e.g. ``"newton_mjwarp"``."""
    renderer: str | None = field(default=None, metadata=COMPARED)
    """Isaac Lab's renderer selector, e.g. ``"newton_renderer"``."""
    overrides: Mapping[str, Json] = field(default_factory=dict)
    """Env config values by dotted path, e.g. ``{"sim.dt": 0.005}``."""
    launcher_args: Mapping[str, Json] = field(default_factory=dict)
    """Arguments of Isaac Lab's launcher by name, e.g. ``{"kit_args": "--enable my.extension"}``."""
    success: str | None = None
    """Success function as ``"module:function"``. ``function(env)`` returns a bool tensor of shape (num_envs,) that says
    whether an ending episode succeeded. None takes the task's own, see
    :attr:`rlnb.results.Evaluation.success_source`."""

    def __eq__(self, other: object) -> bool:
        """Return whether another task has equal values, also if only one of them has verbs (:class:`rlnb.Task`)."""
        if not isinstance(other, Task):
            return NotImplemented
        return all(getattr(self, one.name) == getattr(other, one.name) for one in fields(self))


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """The machines that a run uses, and how many ranks share them."""

    device: str = field(default="auto", metadata=COMPARED)
    """``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"auto"``, which takes a GPU if the machine has one."""
    nodes: int = 1
    """Number of machines."""
    nproc_per_node: int = 1
    """Worker processes (ranks) on each machine."""
    threads: int | None = None
    """CPU threads of each rank (``OMP_NUM_THREADS``); None gives each its share of the cores that the job may use."""

    @property
    def world_size(self) -> int:
        """Number of ranks over all nodes."""
        return self.nodes * self.nproc_per_node


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """The request that a run was started with. Written once, before the run starts."""

    run_id: str
    """Name of the run's folder."""
    created: str
    """Time of creation, UTC, in ISO 8601."""
    task: Task
    """Task to learn."""
    library: str
    """Name of the RL library."""
    name: str = ""
    """Name that the user gave the run at its start; empty without one. :attr:`rlnb.Run.name` is the present one."""
    script: tuple[str, ...] = ()
    """Path and arguments of the training script if the library is ``"script"``, else empty."""
    max_iterations: int | None = field(default=None, metadata=COMPARED)
    """Learning iterations; None keeps the number in the agent config."""
    max_frames: int | None = field(default=None, metadata=COMPARED)
    """Frames (env transitions over all ranks) after which the training ends, with its iteration; None sets none."""
    seed: int = field(default=42, metadata=COMPARED)
    """Seed of env and policy. The env of rank r uses ``seed + r``."""
    deterministic: bool = field(default=False, metadata=COMPARED)
    """Whether physics, rendering and torch have to give the same numbers in every process on a GPU."""
    agent: Mapping[str, Json] = field(default_factory=dict)
    """Agent config values that the user passed, by dotted path."""
    agent_name: str | None = None
    """Agent config that the user chose, an entry point of the task or ``"generic"``; None for the library's usual."""
    agent_source: str = ""
    """Origin of the agent config that the run trains with, as text."""
    resources: Resources = Resources()
    """Machines, ranks and device."""
    launcher: str = "local"
    """Name of the launcher."""
    launcher_settings: Mapping[str, Json] = field(default_factory=dict)
    """Arguments of the launcher, by which a later job of the run gets an equal one."""
    python: str | None = None
    """Command of the worker's interpreter; None is the interpreter of the kernel."""
    asset_root: str | None = None
    """Folder or URL of robot assets; None searches for one (see ``rlnb assets``)."""
    parent: str | None = None
    """Run or checkpoint whose weights this run starts from; None starts from fresh weights."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Origin of each input of the library, by the input's name. It is the path of a file below the folder of runs,
    which begins with the id of its run, or the path of any other file. The folder ``inputs`` of the run has copies of
    the files."""
    git: Mapping[str, str] = field(default_factory=dict)
    """Commit and state of the working folder; empty if it is no git repository."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of rlnb, plugins and Python in the kernel that wrote the manifest. For a script with its own
    interpreter, the versions of Python, Isaac Lab, Isaac Sim and torch are those of that interpreter, if known."""
    keep: int | None = None
    """Number of newest checkpoints to keep, in addition to the best by reward; None keeps all."""
    film_every: int | None = None
    """Learning iterations between two films of the training; None makes none."""
    alerts: tuple[str, ...] = ()
    """Rules of the training's alerts, see :func:`rlnb.train`."""
    tags: tuple[str, ...] = ()
    """Tags by which the run can be found."""
    like: str | None = None
    """Id of the run that this one repeats (``rlnb.train(like=run)``); None if it repeats none. The folder ``like`` has
    copies of that run's records."""
    schema: int = SCHEMA
    """Version of the layout of the manifest's JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One job of a run: a training, or the evaluation or export of a checkpoint."""

    kind: JobKind
    """``"train"``, ``"evaluate"`` or ``"export"``."""
    options: Mapping[str, Json] = field(default_factory=dict)
    """Arguments of the job, e.g. ``{"episodes": 100, "checkpoint": "logs/model_49.pt"}``."""
    after: str = ""
    """Folder name of the training that this one continues, e.g. ``"0-train"``; empty for any other job."""
    restart: int = 0
    """Number of this restart, from 1, if the cluster interrupted the earlier training; 0 for a job of a user."""
    max_restarts: int = 0
    """Number of restarts after which an interrupted training is not continued; 0 for a job of a user."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A command to run on each node of a job."""

    argv: tuple[str, ...]
    """Program and arguments. With several nodes, torchrun reads the number of its node and the address of the first
    node from the variables ``PET_NODE_RANK``, ``PET_MASTER_ADDR`` and ``PET_MASTER_PORT``."""
    nodes: int = 1
    """Number of nodes that the command runs on, each with its own node agent."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables to add to the environment."""
    cwd: str | None = None
    """Working folder; None is the agent's own."""
    queued: bool = False
    """Whether to wait for slots of this machine's queue."""
    max_running: int = 1
    """Number of slots of this machine's queue."""
    slots: int = 1
    """Number of slots that the command takes."""
    gpu_per_slot: bool = False
    """Whether the command sees only the GPUs of its slots."""
    device: str = "cpu"
    """Device of a training, as in :class:`Resources`. Unless it is ``"cpu"``, the training's slots are GPUs."""
    walltime_s: float | None = None
    """Seconds after which the job is stopped with outcome ``timeout``."""

    def shell(self) -> str:
        """Return the command as a line for a shell. With several nodes, a comment names the values to set on each."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        line = " ".join([*variables, shlex.join(self.argv)])
        note = ""
        if self.nodes > 1:
            note = f"# On each node, with NODE from 0 to {self.nodes - 1} and FIRST the host name of node 0:\n"
            line = f"PET_NODE_RANK=$NODE PET_MASTER_ADDR=$FIRST PET_MASTER_PORT=29500 {line}"
        return note + (f"cd {shlex.quote(self.cwd)} && {line}" if self.cwd else line)


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """The facts of a training that has started. Written once by rank 0, before the first iteration."""

    hosts: tuple[str, ...]
    """Host name of each node, in order."""
    devices: tuple[str, ...]
    """Device of each rank, in order."""
    world_size: int
    """Number of ranks over all nodes."""
    num_envs: int
    """Number of envs over all ranks."""
    horizon: int
    """Env steps per iteration."""
    frames_per_step: float
    """Frames (env transitions over all ranks) per unit of the x axis of the library's event files."""
    time_s: float = 0.0
    """Time of the start, in seconds since the epoch."""
    first_iteration: int = 0
    """Iteration at which this job starts, which is 0 or the iteration of the resumed checkpoint."""
    max_iterations: int = 0
    """Iteration at which this job ends."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the worker's packages, by name."""
    asset_root: str = ""
    """Folder or URL of robot assets, and the rule that chose it."""
    assets: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the asset files in use, by path; an empty string for a remote file."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the modules of the user's own packages that the training has imported, by name. The module of a
    ``%%task`` cell, whose hash is in the manifest, is not among them."""
    agent_changes: Mapping[str, Json] = field(default_factory=dict)
    """Values of the agent config that the library's backend has changed, by dotted path."""
    saves_when_stopped: bool = False
    """Whether the training finishes its iteration and saves a checkpoint when it is stopped."""
    restored: Mapping[str, str] = field(default_factory=dict)
    """Whether each part of a resumed training's state was restored exactly, by name of the part."""
    plugins: Mapping[str, str] | None = None
    """Version of each plugin that could change the env config, by name; None if an older rlnb trained."""
    gpu: str = ""
    """Model of rank 0's GPU and version of its driver; empty on a CPU."""
    communication: Mapping[str, str] = field(default_factory=dict)
    """How several ranks communicate, by the name ``backend`` and by every variable that configures NCCL or Gloo."""
    roles: tuple[str, ...] = ()
    """Role of each rank; empty if all ranks do the same."""
    threads: int = 0
    """Threads of rank 0's torch, which decide the order of its sums on a CPU; 0 if unknown, or without torch."""
    threads_why: str = ""
    """Why rank 0 has so many threads, e.g. ``"a quota of 1 core"``; empty if an older rlnb trained."""
    cores: float = 0.0
    """CPU cores that rank 0's node lets the job use; 0 if an older rlnb trained."""

    @property
    def losses(self) -> Mapping[str, str]:
        """The entries of :attr:`restored` that were not restored."""
        return {part: report for part, report in self.restored.items() if report.startswith("NOT ")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """The end of a job. Written once, by the first process that sees the end."""

    outcome: Outcome
    """``"completed"``, ``"failed"``, ``"cancelled"`` or ``"timeout"``."""
    error: str = ""
    """Error, in one line; empty if the job completed."""
    detail: str = ""
    """Traceback, or the end of the log."""
    exit_code: int | None = None
    """Exit status of the failing process; a negative number is a signal."""
    checkpoint: str | None = None
    """Path of the last checkpoint, relative to the run's folder."""
    ended: str = ""
    """Time of the end, UTC, in ISO 8601."""
    values: Mapping[str, Json] = field(default_factory=dict)
    """Values that the job returns, e.g. the exported files."""
    warnings: tuple[str, ...] = ()
    """What makes the job's values doubtful, e.g. a plugin of the training that is not installed here."""

    @property
    def node(self) -> int:
        """Number of the node whose agent wrote the result; 0 if it was not an agent."""
        node = self.values.get("node", 0)
        return node if isinstance(node, int) else 0

    @property
    def interrupted(self) -> bool:
        """Whether the cluster ended the job, rather than a fault in it, so that it may go on elsewhere."""
        return bool(self.values.get("interrupted"))


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationResult:
    """What the backend of a library without a simulator has measured in an evaluation: episodes, values, or both."""

    returns: Sequence[float] = ()
    """Undiscounted return of each episode."""
    lengths: Sequence[int] | None = None
    """Length of each episode, in steps; None if episodes have no length."""
    timeouts: Sequence[bool] | None = None
    """Whether each episode ended by its time limit; None if there is no limit."""
    successes: Sequence[bool | float] | None = None
    """Success of each episode, as a bool or as a number from 0 to 1; None if it is not known."""
    success_source: str = ""
    """Name of what counts as a success."""
    values: Mapping[str, Sequence[bool | float]] = field(default_factory=dict)
    """Measurements by name, with one number for each sample, such as each prompt of a test set, or a single number.
    The names are those of :data:`METRICS` and of :attr:`rlnb.plugin.Library.metric_names`."""


SYSTEM = "system"
"""Folder, below a run's logs, of the event files that node agents write; also the prefix of their tags."""
