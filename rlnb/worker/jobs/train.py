"""Training, from a run's manifest to the job's result."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb.contracts import Backend
from rlnb.hooks.calls import observe, versions_of
from rlnb.records.checkpoint_files import checkpoints_of
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.ranks import KEY, Ranks
from rlnb.registration.library import Library
from rlnb.spec import Json, Result
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.tasks.agent_config import choice_of
from rlnb.worker.assets import root as assets
from rlnb.worker.assets.root import hashes
from rlnb.worker.isaac import config
from rlnb.worker.isaac.device import torch_device
from rlnb.worker.isaac.env import environment
from rlnb.worker.jobs import ranks
from rlnb.worker.jobs.checkpoints import saves_recorded
from rlnb.worker.jobs.context import Context, OpenJob, open_job
from rlnb.worker.jobs.env_plugins import HOOK
from rlnb.worker.jobs.resumed import spread_episodes
from rlnb.worker.jobs.retention import retention
from rlnb.worker.jobs.tensors import vet_companions

logger = logging.getLogger(__name__)


def train(job_dir: Path) -> None:
    """Train as the run's manifest says, and write the result."""
    job = open_job(job_dir)
    manifest, library = job.manifest, plugins.library(job.manifest.library)
    ctx = Context(job.run, job.folder, manifest, options_of(TrainOptions, job.folder))
    if ctx.origin.checkpoint is not None:
        vet_companions(ctx.origin.checkpoint, library)
    digests: Ranks | None = None
    saves = saves_recorded(job.folder) if ctx.rank == 0 else contextlib.nullcontext()
    with saves, retention(job.run, manifest.keep if ctx.rank == 0 else None):
        if library.simulator:
            digests = _train_in_simulator(job, library, ctx)
        else:
            backend: Backend = plugins.load(library.backend)()
            backend.train(None, dict(manifest.agent), ctx)
            ctx.ended()
    if ctx.rank == 0:
        _finish(job, library, digests)


def _train_in_simulator(job: OpenJob, library: Library, ctx: Context) -> Ranks:
    """Train; return the digests of the ranks."""
    from rlnb.worker.cameras.live import View
    from rlnb.worker.flight.recorder import recording
    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.isaac.shortages import Shortages

    manifest = job.manifest
    root = isaaclab.start(manifest.asset_root)
    ctx.asset_root, ctx.versions = f"{root.path} ({root.reason})", isaaclab.versions()
    with (
        ranks.process_group(torch_device(manifest.resources.device), synchronised=ctx.synchronised) as clock,
        environment(
            manifest.task,
            library,
            module=job.module,
            agent=choice_of(manifest),
            seed=ctx.seed,
            device=manifest.resources.device,
            world_size=ctx.world_size,
            manifest=manifest,
            log_dir=ctx.log_dir,
            deterministic=manifest.deterministic,
        ) as (env, agent_cfg),
    ):
        ctx.device, ctx.num_envs = env.unwrapped.device, env.unwrapped.num_envs * ctx.world_size
        ctx.plugins = versions_of(HOOK)
        ctx.assets = hashes(root, assets.named_in(env.unwrapped.cfg, root))
        Shortages(isaaclab.task_env(env), job.folder.shortages(ctx.rank)).attach()
        if ctx.rank == 0:
            isaaclab.dump(ctx.log_dir / "params" / "env.yaml", env.unwrapped.cfg)
            View(env, job.run).attach()
        backend: Backend = plugins.load(library.backend)()
        if ctx.origin.checkpoint is not None:
            spread_episodes(env, ctx.seed)
        observations = ranks.watch_reset(env)
        ctx.agent_changes = functools.partial(_changes, agent_cfg, config.snapshot(agent_cfg))
        with _filming(env, job, ctx), recording(env, job.folder.flight(ctx.rank), ctx.iteration_of):
            modules = backend.train(env, agent_cfg, ctx)
            ctx.ended()
        return ranks.compare(modules or (), observations(), clock.share)


@contextlib.contextmanager
def _filming(env: Any, job: OpenJob, ctx: Context) -> Iterator[None]:
    """Film the training of the first rank, if its user wants films."""
    from rlnb.worker.cameras.films import Films
    from rlnb.worker.isaac import isaaclab

    if ctx.rank != 0 or job.manifest.film_every is None:
        yield
        return
    films = Films(isaaclab.task_env(env), job.run.film, job.manifest.film_every, ctx.iteration_of)
    films.attach()
    try:
        yield
    finally:
        films.close()


def _changes(agent_cfg: Any, before: Mapping[str, Any]) -> dict[str, Json]:
    """Return the values of an agent config that differ from an earlier snapshot, by dotted path."""
    now = config.snapshot(agent_cfg)
    return {path: config.plain(now[path]) for path, value in before.items() if path in now and now[path] != value}


def _finish(job: OpenJob, library: Library, digests: Ranks | None) -> None:
    """Write the result of a completed training, and call the plugins' hook."""
    checkpoints, _ = checkpoints_of(job.run, library)
    checkpoint = str(checkpoints[-1].relative_to(job.run.path)) if checkpoints else None
    values = {} if digests is None else {KEY: to_json(digests)}
    result = Result(outcome="completed", exit_code=0, checkpoint=checkpoint, ended=files.now(), values=values)
    files.write_once(job.folder.result, result, job.folder.reserve)
    observe("rlnb_run_finished", run_dir=job.run.path, manifest=job.manifest, result=result)
