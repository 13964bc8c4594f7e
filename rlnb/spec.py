"""The nouns that rooms exchange: frozen dataclasses, standard library only."""

from __future__ import annotations

import shlex
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
else:  # typing.get_type_hints does not resolve a recursive alias
    Json = Any

ENDED: tuple[State, ...] = ("completed", "failed", "cancelled", "timeout", "lost")
"""The states of a run or a job that has ended."""

SCHEMA = 1
"""Version of the nouns below as JSON (:mod:`rlnb.storage.serial`); a reader refuses a newer one."""

CARD_SCHEMA = 7
"""Version of what a task card holds; a cached one of another version is not read."""

MULTI_AGENT = "multi-agent"
"""The workflow, in a task card, of a task with several agents."""

JobKind = Literal["train", "evaluate", "export"]
State = Literal["created", "queued", "starting", "running", "completed", "failed", "cancelled", "timeout", "lost"]
Outcome = Literal["completed", "failed", "cancelled", "timeout"]

METRICS: Mapping[str, str] = types.MappingProxyType(
    {
        "reward": "mean undiscounted return of finished episodes",
        "episode_length": "mean length of finished episodes, in env steps",
        "success_rate": "share of finished episodes that succeeded, 0 to 1",
        "policy_loss": "policy (surrogate) loss",
        "value_loss": "value function loss",
        "entropy": "policy entropy, in nats",
        "learning_rate": "optimiser learning rate",
        "action_std": "mean standard deviation of the policy's actions",
        "fps": "frames (env transitions over all ranks) per second",
        "collection_s": "seconds of rollout per iteration",
        "learning_s": "seconds of learning per iteration",
    }
)
"""The metric names that every library plugin maps its own tags to, with what they mean."""

DEPTH = ("depth", "distance_to_image_plane", "distance_to_camera")
"""Isaac Lab's names of camera output in metres."""
COLOR = ("rgb", "rgba", "albedo")
"""Isaac Lab's names of camera output in colours, 0 to 255."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """The task of a run: an Isaac Lab env config and the changes made to it."""

    id: str
    """Registered id, ``"package.module:EnvCfg"``, or the name given to ``%%task``."""
    source: str | None = None
    """Path of the task's module on disk; None for a registered id."""
    source_sha256: str | None = None
    """SHA-256 of that module's text."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Further local files that the module names: path relative to the module, to SHA-256."""
    num_envs: int | None = None
    """Environments in total, over all ranks; None keeps the task's own number."""
    presets: tuple[str, ...] = ()
    """Isaac Lab's global presets."""
    physics: str | None = None
    """Isaac Lab's physics selector, e.g. ``"newton_mjwarp"``."""
    renderer: str | None = None
    """Isaac Lab's renderer selector, e.g. ``"newton_renderer"``."""
    overrides: Mapping[str, Json] = field(default_factory=dict)
    """Env config values by dotted path, e.g. ``{"sim.dt": 0.005}``."""
    success: str | None = None
    """``"module:function"``; ``function(env)`` gives one bool per env as an episode ends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """The machines of a run and its share of them."""

    device: str = "auto"
    """``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` is a GPU where there is one."""
    nodes: int = 1
    """Machines."""
    nproc_per_node: int = 1
    """Worker processes (ranks) on each machine."""
    threads: int | None = None
    """Threads of each rank on a CPU (OMP_NUM_THREADS); None leaves them to torch and torchrun."""

    @property
    def world_size(self) -> int:
        """Ranks over all nodes."""
        return self.nodes * self.nproc_per_node


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """Everything that was asked of one run. Written once, before the run starts."""

    run_id: str
    """Name of the run's folder."""
    created: str
    """UTC, ISO 8601."""
    task: Task
    """Task that is learned."""
    library: str
    """Name of the RL library."""
    script: tuple[str, ...] = ()
    """Path and arguments of the training script, where the library is ``"script"``."""
    max_iterations: int | None = None
    """Learning iterations; None keeps the agent config's own number."""
    seed: int = 42
    """Seed of env and policy; rank r's env uses seed + r."""
    agent: Mapping[str, Json] = field(default_factory=dict)
    """Agent config values by dotted path."""
    resources: Resources = Resources()
    """Machine."""
    launcher: str = "local"
    """Name of the launcher."""
    launcher_settings: Mapping[str, Json] = field(default_factory=dict)
    """Arguments of the launcher, so that a further job of the run gets the same."""
    python: str | None = None
    """Command that starts the worker's interpreter; None is the kernel's own."""
    asset_root: str | None = None
    """Explicit folder or URL of robot assets; None looks for one (see ``rlnb assets``)."""
    parent: str | None = None
    """Run, or checkpoint, whose weights this one starts from."""
    git: Mapping[str, str] = field(default_factory=dict)
    """Commit and state of the working folder, where it is a repository."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Packages of the kernel that wrote this."""
    keep: int | None = None
    """Checkpoints to keep, the newest, beside the best by reward; None keeps all."""
    tags: tuple[str, ...] = ()
    """Words to find the run by."""
    schema: int = SCHEMA
    """Version of this layout."""


JOB_FUNCTIONS: Mapping[str, str] = types.MappingProxyType(
    {
        "train": "rlnb.worker.jobs.train:train",
        "evaluate": "rlnb.worker.jobs.evaluate:evaluate",
        "export": "rlnb.worker.jobs.export:export",
    }
)
"""Every kind of job: ``"module:function"``, where ``function(job_dir)`` does the job in the worker and writes its
result, in a process of its own as in the living simulator."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One thing done in a run: training it, evaluating a checkpoint, exporting one."""

    kind: JobKind
    """Kind of the job."""
    options: Mapping[str, Json] = field(default_factory=dict)
    """Arguments of that verb, e.g. ``{"episodes": 100, "checkpoint": "logs/model_49.pt"}``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A process to start on each node."""

    argv: tuple[str, ...]
    """Program and arguments. With several nodes torchrun hears from its environment which of them it is on, and where
    the first is: PET_NODE_RANK, PET_MASTER_ADDR, PET_MASTER_PORT."""
    nodes: int = 1
    """Nodes that it runs on, each with an agent of its own."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables added to the environment."""
    cwd: str | None = None
    """Working folder."""
    queued: bool = False
    """Whether to wait for one of the machine's run slots."""
    max_running: int = 1
    """Slots of this machine."""
    slots: int = 1
    """Places of such a queue that it takes."""
    gpu_per_slot: bool = False
    """Whether it sees the GPUs of its slots only."""
    walltime_s: float | None = None
    """Seconds after which the job is stopped with outcome ``timeout``."""

    def shell(self) -> str:
        """Return the command as a line for a shell. With several nodes, a comment says what to replace on each."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        line = " ".join([*variables, shlex.join(self.argv)])
        note = ""
        if self.nodes > 1:
            note = f"# On each node, with NODE from 0 to {self.nodes - 1}, and FIRST, the name of the first:\n"
            line = f"PET_NODE_RANK=$NODE PET_MASTER_ADDR=$FIRST PET_MASTER_PORT=29500 {line}"
        return note + (f"cd {shlex.quote(self.cwd)} && {line}" if self.cwd else line)


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """The start of a training as it really is. Written once by rank 0, before the first iteration."""

    hosts: tuple[str, ...]
    """Host names, in order of node."""
    devices: tuple[str, ...]
    """Device of each rank."""
    world_size: int
    """Ranks."""
    num_envs: int
    """Environments over all ranks."""
    horizon: int
    """Env steps per iteration."""
    frames_per_step: float
    """Frames (env transitions over all ranks) per unit of the library's own x axis."""
    time_s: float = 0.0
    """When, in seconds since the epoch."""
    first_iteration: int = 0
    """Iteration at which this job starts: 0, or where a resumed checkpoint stood."""
    max_iterations: int = 0
    """Iteration at which this job ends."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Packages of the worker."""
    asset_root: str = ""
    """Where robot assets came from."""
    assets: Mapping[str, str] = field(default_factory=dict)
    """Asset files used, to SHA-256 (empty string for a remote file)."""
    restored: Mapping[str, str] = field(default_factory=dict)
    """Part of the checkpoint that this job resumed from, to what became of it: restored bit by bit, or not."""
    communication: Mapping[str, str] = field(default_factory=dict)
    """With several ranks: over what they talk (``backend``), and every variable that NCCL or Gloo go by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """The end of a job. Written once, by the first process that knows."""

    outcome: Outcome
    """Kind of the end."""
    error: str = ""
    """One line: what went wrong."""
    detail: str = ""
    """Traceback, or the end of the log."""
    exit_code: int | None = None
    """Exit status of the failing process; negative is a signal."""
    checkpoint: str | None = None
    """Last checkpoint, relative to the run folder."""
    ended: str = ""
    """UTC, ISO 8601."""
    values: Mapping[str, Json] = field(default_factory=dict)
    """Values that the verb returns, e.g. exported files."""

    @property
    def node(self) -> int:
        """Node whose agent wrote this, or the first."""
        node = self.values.get("node", 0)
        return node if isinstance(node, int) else 0

    @property
    def interrupted(self) -> bool:
        """Whether the cluster ended the job, and not what it did: it may go on elsewhere."""
        return bool(self.values.get("interrupted"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """An RL library, described without importing it."""

    name: str
    """Name used in ``rlnb.train(library=...)``."""
    backend: str
    """``"module:Class"`` of its ``rlnb.backend.Backend``."""
    agent_key: str = ""
    """Key of the agent config in a task's registration, e.g. ``"rsl_rl_cfg_entry_point"``."""
    default_agent: str = ""
    """``"module:function"`` that returns an agent config for tasks that bring none, or ``"package:file.yaml"``."""
    multi_agent: bool = False
    """Whether it trains the agents of a multi-agent task; for other libraries Isaac Lab joins them into one agent."""
    distributed: bool = False
    """Whether it trains on several ranks."""
    step_unit: Literal["iteration", "timestep", "frame"] = "iteration"
    """Unit of the x axis of the library's event files."""
    logged_at_end: bool = False
    """Whether an iteration's scalars stand where it ended on that axis; else where it began."""
    horizon_key: str = "num_steps_per_env"
    """Name of the env steps per iteration in its agent configs; read from folders of stock Isaac Lab."""
    overruled: Mapping[str, str] = field(default_factory=lambda: {"seed": "seed"})
    """Path in its agent configs to the argument of ``rlnb.train`` that its backend sets it to: ``"seed"``,
    ``"max_iterations"``, ``"device"``. Another value there is refused."""
    checkpoint_glob: str = "**/*.pt"
    """Checkpoints below ``logs/``."""
    checkpoint_pattern: str = r"(\d+)\.pt$"
    """Regular expression whose first group is a checkpoint's iteration, or timestep."""
    checkpoint_unit: Literal["iteration", "timestep"] = "iteration"
    """Unit of that number."""
    checkpoint_counts_finished: bool = False
    """True: that number counts finished iterations. False: it is the index, from 0, of the iteration that wrote it."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Name in :data:`METRICS` to the library's own tag."""
    hidden: tuple[str, ...] = ()
    """Regular expressions of tags that repeat others and are never shown."""
    requires: tuple[str, ...] = ()
    """Packages that the worker's interpreter needs, as pip requirements."""
    exports: tuple[str, ...] = ()
    """Formats that its policies can be exported in: ``"torchscript"``, ``"onnx"``, or those that its ``export`` has."""
    simulator: bool = True
    """Whether it trains an Isaac Lab env; the echo library does not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueTable:
    """A command that prints the jobs or the nodes of a launcher's queue."""

    title: str
    """Heading of the table: ``"jobs"``."""
    argv: tuple[str, ...]
    """Program and arguments."""
    columns: tuple[str, ...] = ()
    """Headings of the fields in a line of its output, separated there by ``|``; none keeps each line whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LauncherType:
    """A way to start runs, described without importing it."""

    name: str
    """Name used as ``rlnb.<name>(...)``."""
    factory: str
    """``"module:attr"``; calling it gives a ``rlnb.Launcher``."""
    tables: tuple[QueueTable, ...] = ()
    """Tables of its queue for the panel in JupyterLab, which shows them where their commands are installed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AssetPack:
    """Robot and scene files that can be made on this machine, without a download."""

    name: str
    """Name of the pack's folder."""
    version: str
    """Changes whenever the files would."""
    build: str
    """``"module:function"``; ``function(folder)`` writes the files and returns what each was made from, by its path.
    Needs the worker's interpreter."""
    files: Mapping[str, str]
    """Path below the asset root, to the licence of that file (SPDX)."""
    on_request: bool = False
    """Built by ``rlnb assets build --robots`` only: for what takes long or needs further packages."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """One figure of a dashboard."""

    title: str
    """Heading."""
    figure: Callable[[], Any]
    """Returns a ``plotly.graph_objects.Figure``; called when it is shown."""


SYSTEM = "system"
"""Folder of the agents' own event files below a run's logs, and what their tags begin with."""
