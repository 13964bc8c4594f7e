"""Training, from a run's manifest to the job's result."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlnb.configs import tree
from rlnb.configs.agent import horizon_of
from rlnb.contracts.libraries import Backend, Evaluating, Library, Role
from rlnb.errors import CheckError, RlnbError
from rlnb.hooks import plugins
from rlnb.hooks.registry import observe, versions_of
from rlnb.records.checkpoints import companions_of, newest_of
from rlnb.records.find import open_record
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.ranks import KEY, Ranks
from rlnb.spec import Json, Manifest, Result
from rlnb.storage import files
from rlnb.storage.serial import from_json, to_json
from rlnb.worker.isaac.device import torch_device
from rlnb.worker.jobs import no_simulator, ranks
from rlnb.worker.jobs.checkpoints import remove_parts, retention, saves_recorded, vet_companions
from rlnb.worker.jobs.context import HOOK, Context, OpenJob, open_job


def train(job_dir: Path) -> None:
    """Train as the run's manifest says, and write the result."""
    job = open_job(job_dir)
    manifest, library = job.manifest, plugins.library(job.manifest.library)
    ctx = Context(job.run, job.folder, manifest, options_of(TrainOptions, job.folder))
    if ctx.origin.checkpoint is not None:
        vet_companions(ctx.origin.checkpoint, library)
    if (start := ctx.origin.checkpoint or ctx.origin.init_from) is not None:
        _refuse_not_finite(start, companions_of(start, library) if ctx.origin.checkpoint is not None else ())
    if ctx.rank == 0:
        remove_parts(job.run.logs)
    digests: Ranks | None = None
    saves = saves_recorded(job.folder) if ctx.rank == 0 else contextlib.nullcontext()
    with saves, retention(job.folder, manifest.keep if ctx.rank == 0 else None):
        if library.simulator:
            digests = _train_in_simulator(job, library, ctx)
        else:
            digests = _train_without_simulator(job, library, ctx)
    if ctx.rank == 0:
        _finish(job, library, digests)


def _refuse_not_finite(start: Path, companions: Iterable[Path]) -> None:
    """Refuse to start from weights, or companions of a checkpoint, that are not finite.

    Raises:
        NotFiniteError: A file has such values.
    """
    from rlnb.worker.flight.guard import refuse_not_finite

    for path in (*companions, start):
        refuse_not_finite(path)


def _train_in_simulator(job: OpenJob, library: Library, ctx: Context) -> Ranks:
    """Train; return the digests of the ranks."""
    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.isaac.spaces import spaces_of_env
    from rlnb.worker.jobs.envs import Envs  # not above, since trainings without a simulator need none of it

    ctx.versions = {**isaaclab.versions(), **no_simulator.versions_of(library)}
    ctx.plugins = versions_of(HOOK)
    if ctx.has_env:
        isaaclab.start(job.manifest.asset_root)
    ctx.device = _device(job.manifest, ctx.roles, ctx.rank, torch_device)
    with (
        ranks.process_group(ctx.device, synchronised=ctx.synchronised, role=ctx.role) as clock,
        contextlib.closing(Envs(job, library, ctx, ctx.device)) as envs,
    ):
        ctx.envs, env = envs, None
        if ctx.has_env and not library.makes_env:
            env = envs.make()
        elif ctx.has_env:
            envs.configure()
        agent_cfg = exchange(ctx, envs.agent_cfg)
        values = tree.snapshot(agent_cfg)
        if env is not None and (misfits := plugins.space_problems(library, values, *spaces_of_env(env))):
            raise CheckError("training", misfits)
        ctx.count_frames(horizon_of(values, library))
        backend: Backend = plugins.new_backend(library)
        ctx.agent_changes = functools.partial(_changes, agent_cfg, tree.snapshot(agent_cfg))
        with envs.recorders:
            modules = backend.train(env, agent_cfg, ctx)
            ctx.ended()
        return ranks.compare(modules or (), envs.observations(), clock.share, roles=_names(ctx))


def _train_without_simulator(job: OpenJob, library: Library, ctx: Context) -> Ranks | None:
    """Train; return the digests of the ranks if the backend returns modules."""
    if ctx.roles:
        every = range(ctx.world_size)
        ctx.devices = tuple(_device(job.manifest, ctx.roles, rank, no_simulator.device_of) for rank in every)
    ctx.device = _device(job.manifest, ctx.roles, ctx.rank, no_simulator.device_of)
    ctx.versions = no_simulator.versions_of(library)
    agent_cfg = no_simulator.agent_config_of(job.manifest, library)
    ctx.agent_changes = functools.partial(_changes, agent_cfg, tree.snapshot(agent_cfg))
    backend: Evaluating = plugins.new_backend(library)
    modules = backend.train(None, agent_cfg, ctx)
    ctx.ended()
    # The ranks of one role may learn nothing, but a comparison needs all ranks.
    is_compared = modules or (ctx.roles and ranks.has_group())
    return ranks.compare(modules or (), "", roles=_names(ctx)) if is_compared else None


def _names(ctx: Context) -> list[str]:
    """Return the role of each rank, by name."""
    return [role.name for role in ctx.roles]


def _device(manifest: Manifest, roles: Sequence[Role], rank: int, device_of: Callable[[str, int | None], str]) -> str:
    """Return the device of a rank. The ranks of a node that use a GPU take its GPUs in order.

    Args:
        manifest: The run.
        roles: Role of each rank; empty if all ranks do the same.
        rank: The rank.
        device_of: ``function(name, index)`` returns the device for a name and the number of a GPU.
    """
    if not roles:
        return device_of(manifest.resources.device, None)
    if roles[rank].cpu:
        return "cpu"
    before = roles[rank - rank % manifest.resources.nproc_per_node : rank]
    return device_of(manifest.resources.device, sum(not role.cpu for role in before))


def _changes(agent_cfg: Any, before: Mapping[str, Any]) -> dict[str, Json]:
    """Return the values of an agent config that differ from an earlier snapshot, by dotted path."""
    now = tree.snapshot(agent_cfg)
    return {path: tree.plain(now[path]) for path, value in before.items() if path in now and now[path] != value}


def _finish(job: OpenJob, library: Library, digests: Ranks | None) -> None:
    """Write the result of a completed training, and call the plugins' hook."""
    checkpoint = newest_of(job.run, library)
    values = {} if digests is None else {KEY: to_json(digests)}
    result = Result(outcome="completed", exit_code=0, checkpoint=checkpoint, ended=files.now(), values=values)
    end_training(job.folder, result)


# -- what ranks tell each other --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class RankFacts:
    """What one rank tells the others."""

    roles: tuple[str, ...]
    """Role of each rank, as this rank knows them."""
    device: str
    """Its device."""
    num_envs: int = 0
    """Number of its envs."""
    agent: Json = None
    """Agent config of the task; None from a rank without an env."""
    asset_root: str = ""
    """Folder or URL of robot assets, and the rule that chose it."""
    assets: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the asset files in use, by path."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the modules of the user's own packages that define the task, by name."""


def exchange(ctx: Context, agent_cfg: Any) -> Any:
    """Complete the context of a rank by what other ranks know, and return the agent config.

    A rank without an env gets the agent config as nested dicts, since the config's own class may need Isaac Lab.

    Args:
        ctx: Context of this rank.
        agent_cfg: Agent config of the task; None on a rank without an env.

    Raises:
        RlnbError: The ranks have got different roles from the library's plugin.
    """
    if not ctx.roles:
        ctx.num_envs = ctx.num_envs_here * ctx.world_size
        return agent_cfg
    this = RankFacts(
        roles=tuple(role.name for role in ctx.roles),
        device=ctx.device,
        num_envs=ctx.num_envs_here,
        agent=tree.tree(agent_cfg) if ctx.has_env else None,
        asset_root=ctx.asset_root,
        assets=ctx.assets,
        sources=ctx.sources,
    )
    facts = [from_json(RankFacts, entry) for entry in ranks.gather(to_json(this))]
    for rank, other in enumerate(facts):
        if other.roles != this.roles:
            raise RlnbError(
                f"Rank {ctx.rank} has got the roles {', '.join(this.roles)}, but rank {rank} {', '.join(other.roles)}. "
                "Library.roles must name a function that returns the same roles in every process."
            )
    ctx.num_envs = sum(other.num_envs for other in facts)
    ctx.devices = tuple(other.device for other in facts)
    if ctx.world_size > 1:
        ctx.group = ranks.group_of(this.roles, ctx.devices)
    if ctx.has_env:
        return agent_cfg
    first = facts[ctx.ranks_with_env[0]]
    ctx.asset_root, ctx.assets, ctx.sources = first.asset_root, first.assets, first.sources
    return first.agent


# -- the end of a training -------------------------------------------------------------------------------------------


LAST_POINTS_S = 3.0
"""Seconds after which a training ends without a summary, because its event files are too long to be read in time."""


def end_training(job: JobDir, result: Result) -> None:
    """Write the result of a training, unless it has one, and call the plugins' hook.

    Before it, the last values of the metrics are left for lists of runs, so that nothing is written after the result.

    Args:
        job: Folder of the training.
        result: The result.
    """
    if not files.there(job.result):
        with contextlib.suppress(Exception):  # lists read the curves of a run without a summary, so no error matters
            open_record(run_dir_of(job.path).path).write_last_points(job, LAST_POINTS_S)
    if files.write_once(job.result, result, job.reserve):
        opened = open_job(job.path)
        observe("rlnb_run_finished", run_dir=opened.run.path, manifest=opened.manifest, result=result)
