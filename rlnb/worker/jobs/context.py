"""The context of a training. A library's backend gets it from the worker and reports back through it."""

from __future__ import annotations

import logging
import math
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rlnb.contracts.libraries import Library, Policy
from rlnb.errors import RlnbError, TrainingStopped
from rlnb.hooks import plugins
from rlnb.hooks.registry import observe, versions_of
from rlnb.machine import cores, threads
from rlnb.records.checkpoints import iteration_of
from rlnb.records.layout import JobDir, RunDir, run_dir_of
from rlnb.records.options import TrainOptions
from rlnb.records.record import RunRecord
from rlnb.records.task_copy import edited_copies
from rlnb.spec import Json, Manifest, Started
from rlnb.storage import files
from rlnb.storage.serial import from_json
from rlnb.worker.jobs.ranks import has_group
from rlnb.worker.jobs.resume import LOST, RESTORED, restored

logger = logging.getLogger(__name__)
LOOK_S = 0.2
"""Least seconds between two looks for a request to stop."""
COMMUNICATION = ("NCCL_", "TORCH_NCCL_", "GLOO_")
"""Prefixes of the environment variables that control how ranks communicate."""


class EnvMaker(Protocol):
    """Makes the envs of one rank, or functions that make one elsewhere."""

    def make(self, num_envs: int | None = None, *, seed: int | None = None) -> Any:
        """Return an env."""
        ...

    def factory(self, num_envs: int | None = None, *, seed: int | None = None) -> Callable[[], Any]:
        """Return a function that makes an env in another process."""
        ...


class Context:
    """The :class:`rlnb.contracts.libraries.TrainContext` of one rank."""

    def __init__(self, run: RunDir, job: JobDir, manifest: Manifest, options: TrainOptions) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        library = plugins.library(manifest.library)
        self.roles = plugins.roles_of(library, self.world_size, manifest.agent)
        self.role = self.roles[self.rank].name if self.roles else ""
        self.group: Any = None
        self.envs: EnvMaker | None = None
        self.log_dir = run.logs
        files.make_subfolder(self.log_dir)
        self.device = manifest.resources.device
        self.seed = manifest.seed + self.rank
        self.synchronised = options.synchronised
        self.max_iterations = manifest.max_iterations if options.max_iterations is None else options.max_iterations
        self.max_frames = manifest.max_frames if options.max_iterations is None else None
        self.origin = Origin(run.path, library, options)
        self.inputs: Mapping[str, Path] = {name: run.input(name, origin) for name, origin in manifest.inputs.items()}
        self.trust = options.trust
        self.agent = manifest.agent
        self.num_envs = manifest.task.num_envs or 0
        self.num_envs_here = 0
        self.devices: tuple[str, ...] = ()
        self.asset_root = ""
        self.assets: Mapping[str, str] = {}
        self.sources: Mapping[str, str] = {}
        self.versions: Mapping[str, str] = {}
        self.restored: Mapping[str, str] = {}
        self.plugins: Mapping[str, str] = {}
        self.agent_changes: Callable[[], Mapping[str, Json]] = dict
        self._run, self._job, self._manifest, self._library = run, job, manifest, library
        self._next_look_s = 0.0
        self._first_iteration = self._horizon = 0
        self._all_ranks = False
        self.planned_envs = 0  # this rank's share of the envs if its backend makes them

    @property
    def ranks_with_env(self) -> tuple[int, ...]:
        """The ranks that step envs of a simulator, in order."""
        if not self._library.simulator:
            return ()
        return tuple(rank for rank in range(self.world_size) if not self.roles or self.roles[rank].env)

    @property
    def has_env(self) -> bool:
        """Whether this rank steps envs."""
        return self.rank in self.ranks_with_env

    @property
    def is_first_with_env(self) -> bool:
        """Whether this rank is the first one that steps envs, which shows its env to viewers."""
        return self.ranks_with_env[:1] == (self.rank,)

    @property
    def sharing(self) -> int:
        """Number of ranks that share the envs, at least 1."""
        return max(1, len(self.ranks_with_env))

    def make_env(self, num_envs: int | None = None, *, seed: int | None = None) -> Any:
        """Return an env as rlnb makes it for this rank."""
        return self._maker().make(num_envs, seed=seed)

    def env_factory(self, num_envs: int | None = None, *, seed: int | None = None) -> Callable[[], Any]:
        """Return a function that makes such an env in another process."""
        return self._maker().factory(num_envs, seed=seed)

    def _maker(self) -> EnvMaker:
        if self.envs is None:
            raise RlnbError(f"{self._library.name} trains without a simulator, so it has no env to make.")
        return self.envs

    @property
    def checkpoint(self) -> Path | None:
        """Checkpoint to resume from, for the backend; None if the training does not resume."""
        return self.origin.read(self.origin.checkpoint)

    @property
    def init_from(self) -> Path | None:
        """Checkpoint whose weights to start from, for the backend; None for fresh weights."""
        return self.origin.read(self.origin.init_from)

    def policy(self, name: str, env: Any, groups: Mapping[str, str] | None = None) -> Policy:
        """Return the policy of an input; see :meth:`rlnb.contracts.libraries.TrainContext.policy`."""
        from rlnb.worker.jobs.inputs import policy_of  # needs torch

        return policy_of(self._run, self._manifest, name, env, groups or {}, trust=self.trust)

    def resumed(
        self, save: Callable[[str], object], *, lost: Mapping[str, str] | None = None, all_ranks: bool = False
    ) -> None:
        """Report which parts of the training's state were restored, and which are lost. Rank 0 only.

        Args:
            save: ``function(path)`` that saves the current state, which is then compared with the checkpoint.
            lost: What the checkpoint does not hold, by name, with the consequence.
            all_ranks: Whether every rank has restored its own random state.
        """
        self._all_ranks = all_ranks
        if self.rank == 0 and self.origin.checkpoint is not None:
            reports = restored(self.origin.checkpoint, save, self._library)
            self.restored = {**reports, **{part: f"{LOST}: {why}" for part, why in (lost or {}).items()}}

    def _restored(self) -> Mapping[str, str]:
        """Return the report of a resumed training, and write it to the log."""
        reports = dict(self.restored)
        if self.origin.checkpoint is None:
            return reports
        if self.world_size > 1 and not self._all_ranks:
            ranks = "rank 1" if self.world_size == 2 else f"ranks 1 to {self.world_size - 1}"
            reports[f"random state of {ranks}"] = f"{LOST}: only rank 0's is saved; the others restart from their seeds"
        for part, report in reports.items():
            log = logger.info if report.startswith(RESTORED) else logger.warning
            log("%s of %s: %s", part, self.origin.checkpoint.name, report)
        return reports

    def started(
        self,
        *,
        horizon: int,
        frames_per_step: float,
        max_iterations: int,
        first_iteration: int = 0,
        num_envs: int | None = None,
    ) -> None:
        """Write ``started.json`` and call the plugins' hook. Rank 0 only; the other ranks return at once.

        Raises:
            RlnbError: The backend has ignored its checkpoint, or an iteration would have no steps, frames or envs.
        """
        self._first_iteration, self._horizon = first_iteration, horizon
        num_envs = num_envs or self._all_envs()
        if self.rank != 0:
            return
        self.origin.check(first_iteration, horizon)
        _refuse_empty_iterations(horizon, frames_per_step, num_envs, self._library.name)
        self._check_frames(horizon, num_envs, max_iterations)
        number = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else 0
        started = Started(
            hosts=self._job.hosts() or (socket.gethostname(),),
            devices=self.devices or self._devices(),
            world_size=self.world_size,
            num_envs=num_envs,
            horizon=horizon,
            frames_per_step=frames_per_step,
            time_s=time.time(),
            first_iteration=first_iteration,
            max_iterations=max_iterations,
            versions=self.versions,
            asset_root=self.asset_root,
            assets=self.assets,
            sources=self.sources,
            agent_changes=self._changes(),
            restored=self._restored(),
            plugins=self.plugins,
            saves_when_stopped=self._library.saves_when_stopped,
            gpu=gpu_model(self.device),
            communication=communication() if self.world_size > 1 else {},
            roles=tuple(role.name for role in self.roles),
            threads=number,
            threads_why=threads.reason(number) if number else "",
            cores=cores.available().number,
        )
        files.write_once(self._job.started, started)
        observe("rlnb_run_started", run_dir=self._run.path, manifest=self._manifest)

    def ended(self) -> None:
        """Refuse a training that has not called :meth:`started`, so that nothing is known of where it began.

        Raises:
            RlnbError: The backend has not called it.
        """
        if self._horizon == 0:
            raise self.origin.error("never calls ctx.started()", "have no frames and no start", "call it in train()")

    def count_frames(self, horizon: int | None) -> None:
        """Set the number of iterations that reach the frames of the run, unless it has none.

        Args:
            horizon: Env steps per iteration, from the agent config; None if it does not have them.

        Raises:
            RlnbError: The frames of an iteration are unknown.
        """
        if self.max_frames is None:
            return
        if not horizon or not self.num_envs:
            raise RlnbError(
                f"The agent config of {self._library.name} has no positive {self._library.horizon_key!r}, so "
                f"max_frames={self.max_frames} cannot be counted in iterations. Use max_iterations."
            )
        self.max_iterations = math.ceil(self.max_frames / (horizon * self.num_envs))

    def _check_frames(self, horizon: int, num_envs: int, max_iterations: int) -> None:
        """Check that a training ends with the iteration that reaches the frames of the run."""
        if self.max_frames is None:
            return
        iterations = math.ceil(self.max_frames / (horizon * num_envs))
        if max_iterations != iterations:
            raise RlnbError(
                f"max_frames={self.max_frames} takes {iterations} iterations of {horizon} env steps in {num_envs} "
                f"envs, but {self._library.name} would train for {max_iterations}. Library.horizon_key of its "
                "plugin must name the env steps per iteration, and its backend must use ctx.max_iterations."
            )

    def _all_envs(self) -> int:
        """Return the number of envs over all ranks; 0 if it is unknown.

        Raises:
            RlnbError: The backend has made an env of another size than this rank's share.
        """
        if self.planned_envs not in (0, self.num_envs_here):
            raise RlnbError(
                f"{self._library.name} trains with {self.num_envs_here} envs on rank {self.rank}, and not with "
                f"{self.planned_envs}, its share of the training's envs. Pass num_envs to ctx.started: the envs of all "
                "ranks."
            )
        return self.num_envs

    def iteration_of(self, step: int) -> int | None:
        """Return the learning iteration of an env step of this job; None before the training has started."""
        return self._first_iteration + step // self._horizon if self._horizon > 0 else None

    def ends_iteration(self, steps: int) -> bool | None:
        """Return whether an iteration ends with a number of env steps; None before the training has started."""
        return steps % self._horizon == 0 if self._horizon > 0 else None

    def iteration_finished(self, save: Callable[[], object]) -> None:
        """Save and end the training if it was told to stop. Rank 0 decides; the agents end the other ranks."""
        now = time.monotonic()
        if self.rank != 0 or now < self._next_look_s:
            return
        self._next_look_s = now + LOOK_S
        if files.there(self._job.stop):
            save()
            raise TrainingStopped

    def _changes(self) -> Mapping[str, Json]:
        """Return the values of the agent config that the backend has changed, by dotted path.

        Raises:
            RlnbError: The backend has changed a value that the user set.
        """
        changes = self.agent_changes()
        checked = {*self._library.overruled, *self._library.adapted}  # before the run was made
        for name, value in self.agent.items():
            path = name.removeprefix("+")
            if path not in checked and path in changes and changes[path] != value:
                raise RlnbError(
                    f"The agent config value {path}={value!r} is not possible with {self._library.name}, which "
                    f"would train with {changes[path]!r}. Use that value, or leave it out."
                )
        return changes

    def _devices(self) -> tuple[str, ...]:
        """Return the device of each rank. The ranks of a node use its GPUs in order."""
        if self.world_size == 1 or not self.device.startswith("cuda"):
            return (self.device,) * self.world_size
        each = self._manifest.resources.nproc_per_node
        return tuple(f"cuda:{rank % each}" for rank in range(self.world_size))

    def pool(self, mean: Any, variance: Any) -> None:
        """Replace this rank's running statistics by those over the data of all ranks of its role, in place.

        The variance of all data is the mean of the ranks' variances plus the variance of their means.
        """
        if self.world_size == 1 or not self.synchronised:
            return
        import torch.distributed as dist

        if self.roles and self.group is None:
            raise RlnbError(
                f"{self._library.name} trains without a simulator, so ctx.pool has no process group of the role "
                f"{self.role!r}. Use torch.distributed.new_group in the backend, and set ctx.group to it."
            )

        def over_ranks(value: Any) -> Any:
            dist.all_reduce(value, group=self.group)
            return value / dist.get_world_size(self.group)

        # float64, and deviations from the common mean: far from zero, a difference of squares would cancel out.
        local = mean.double()
        common = over_ranks(local.clone())
        variance.copy_(over_ranks(variance.double() + (local - common) ** 2))
        mean.copy_(common)


def gpu_model(device: str) -> str:
    """Return the model of a GPU and the version of its driver; an empty string for a CPU."""
    torch = sys.modules.get("torch")
    if not device.startswith("cuda") or torch is None or not torch.cuda.is_available():
        return ""
    model = str(torch.cuda.get_device_name(device))
    try:
        import pynvml

        pynvml.nvmlInit()
        return f"{model}, driver {pynvml.nvmlSystemGetDriverVersion()}"
    except Exception:  # NVML is missing or broken; the training is not
        return model


def communication() -> Mapping[str, str]:
    """Return the backend of the ranks' communication and the variables that control it.

    They often explain why a cluster is slow.
    """
    settings = {name: value for name, value in sorted(os.environ.items()) if name.startswith(COMMUNICATION)}
    if has_group():
        settings["backend"] = str(sys.modules["torch.distributed"].get_backend())
    return settings


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenJob:
    """A job of the worker, and the run that it belongs to."""

    run: RunDir
    """Folder of the run."""
    folder: JobDir
    """Folder of the job."""
    manifest: Manifest
    """Manifest of the run."""

    @property
    def module(self) -> Path | None:
        """The run's own copy of the task's module; None for a registered task."""
        source = self.manifest.task.source
        return self.run.source / Path(source).name if source else None


def open_job(job_dir: Path) -> OpenJob:
    """Return the job in a folder.

    Raises:
        RlnbError: The manifest of its run cannot be read.
    """
    run = run_dir_of(job_dir)
    return OpenJob(run=run, folder=JobDir(job_dir), manifest=from_json(Manifest, files.read_json(run.manifest) or {}))


def _refuse_empty_iterations(horizon: int, frames_per_step: float, num_envs: int, library: str) -> None:
    """Refuse iterations without steps, frames or envs.

    Raises:
        RlnbError: An iteration has none of one of these.
    """
    if horizon < 1 or frames_per_step <= 0:
        raise RlnbError(
            f"An iteration has {horizon} env steps, and {frames_per_step:g} frames per step of the curves. "
            "Both must be positive: check the rollout's length in the agent config."
        )
    if num_envs < 1:
        raise RlnbError(
            f"ctx.started does not get num_envs, and {library} has no envs that rlnb could count. Pass "
            "num_envs: the number of episodes, answers or other sequences that an iteration collects."
        )


# -- the start of a training -----------------------------------------------------------------------------------------


class Origin:
    """What a training starts from, and whether its backend has asked for it.

    Args:
        run: Folder of the run.
        library: The library of the run.
        options: Options of the training.
    """

    def __init__(self, run: Path, library: Library, options: TrainOptions) -> None:
        self.checkpoint = run / options.checkpoint if options.checkpoint else None
        self.init_from = Path(options.init_from) if options.init_from else None
        self._library, self._read = library, set[Path]()

    def read(self, path: Path | None) -> Path | None:
        """Return a path of this object, and note that the backend knows it."""
        if path is not None:
            self._read.add(path)
        return path

    def check(self, first_iteration: int, horizon: int) -> None:
        """Refuse a training that has ignored its checkpoint: it would start anew without a word.

        Args:
            first_iteration: Iteration at which the training starts, as its library says.
            horizon: Env steps of an iteration.

        Raises:
            RlnbError: The backend has not asked for the checkpoint or the first weights, or starts a resumed training
                at iteration 0. The message names the plugin.
        """
        if self.checkpoint is not None:
            name = self.checkpoint.name
            last = iteration_of(self.checkpoint, self._library, horizon)
            if self.checkpoint not in self._read:
                fix = "load ctx.checkpoint in train(), or set Library.resumes=False"
                raise self.error("does not read ctx.checkpoint", f"start from zero instead of {name}", fix)
            if first_iteration == 0 and (last is None or last >= 0):
                what = "reports first_iteration=0 for a resumed training"
                fix = "pass the iteration after that of ctx.checkpoint to ctx.started()"
                raise self.error(what, f"start from zero, or overwrite the curve before {name}", fix)
        elif self.init_from is not None and self.init_from not in self._read:
            fix = "load the weights of ctx.init_from in train()"
            raise self.error("does not read ctx.init_from", f"start from fresh weights, not from {self.init_from}", fix)

    def error(self, what: str, effect: str, fix: str) -> RlnbError:
        """Return an error of the library's backend, which names its plugin.

        Args:
            what: The fault, as a clause without its subject.
            effect: What the training would do, as a clause without its subject.
            fix: What to change in the code of the backend.
        """
        plugin = plugins.owner_of(self._library)
        return RlnbError(
            f"The library {self._library.name!r} of the {plugin} {what}. The training would {effect}. "
            f"{plugin.usual_fix} In the code of its backend, {fix}."
        )


# -- plugins that change the env -------------------------------------------------------------------------------------


HOOK = "rlnb_configure_env"
"""The hook by which a plugin changes the env config."""


def plugin_differences(job: OpenJob) -> tuple[str, ...]:
    """Return a sentence for each plugin, and each edited file, by which the env may differ from that of the training.

    Args:
        job: Evaluation or export of a run.
    """
    record = RunRecord(job.run.path, job.manifest)
    texts = (*edited_copies(record), *_of_plugins(record))
    for text in texts:
        logger.warning("%s", text)
    return texts


def _of_plugins(record: RunRecord) -> Iterator[str]:
    started = record.last_started
    if started is None or started.plugins is None:  # an older rlnb trained, and recorded no plugins
        return
    trained, here = started.plugins, versions_of(HOOK)
    for name in sorted({*trained, *here}):
        if name not in here:
            plugin = f"The plugin {name!r} {trained[name]}".rstrip()
            state = "It is not installed here, or does not work, so the env may differ."
            yield f"{plugin} could change the env of the training. {state}"
        elif name not in trained:
            plugin = f"The plugin {name!r} {here[name]}".rstrip()
            yield f"{plugin} may change the env here, and was not part of the training."
        elif trained[name] != here[name]:
            versions = f"{trained[name] or 'unknown'} in the training, and {here[name] or 'unknown'} here"
            yield f"The plugin {name!r}, which may change the env, had version {versions}."
