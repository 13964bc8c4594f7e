"""Training: one straight line from a manifest to a result."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb.contracts import Backend
from rlnb.records.layout import JobDir, RunDir
from rlnb.spec import Library, Manifest, Result
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.worker.assets import root as assets
from rlnb.worker.assets.root import hashes
from rlnb.worker.isaac.env import environment
from rlnb.worker.jobs import ranks
from rlnb.worker.jobs.context import Context, module_of, open_job
from rlnb.worker.jobs.resumed import spread_episodes
from rlnb.worker.jobs.retention import retention

logger = logging.getLogger(__name__)


def train(job_dir: Path) -> None:
    """Train what the run's manifest asks for, and write the result."""
    run, job, manifest, options = open_job(job_dir)
    library = plugins.library(manifest.library)
    ctx = Context(run, job, manifest, options)
    learned: Mapping[str, Any] = {}
    with retention(run, manifest.keep if ctx.rank == 0 else None):
        if library.simulator:
            learned = _train_in_simulator(run, manifest, library, ctx)
        else:
            backend: Backend = plugins.load(library.backend)()
            backend.train(None, dict(manifest.agent), ctx)
    if ctx.rank == 0:
        _finish(run, job, manifest, library, learned)


def _train_in_simulator(run: RunDir, manifest: Manifest, library: Library, ctx: Context) -> Mapping[str, Any]:
    """Train; return what :func:`rlnb.worker.jobs.ranks.compare` says of the ranks."""
    from rlnb.worker.cameras.live import View
    from rlnb.worker.isaac import isaaclab

    root = isaaclab.start(manifest.asset_root)
    ctx.asset_root, ctx.versions = f"{root.path} ({root.reason})", isaaclab.versions()
    with (
        ranks.process_group(isaaclab.device(manifest.resources.device), synchronised=ctx.synchronised) as clock,
        environment(
            manifest.task,
            library,
            module=module_of(run, manifest),
            agent=manifest.agent,
            seed=ctx.seed,
            device=manifest.resources.device,
            world_size=ctx.world_size,
            manifest=manifest,
            log_dir=ctx.log_dir,
        ) as (env, agent_cfg),
    ):
        ctx.device, ctx.num_envs = env.unwrapped.device, env.unwrapped.num_envs * ctx.world_size
        ctx.assets = hashes(root, assets.named_in(env.unwrapped.cfg, root))
        if ctx.rank == 0:
            isaaclab.dump(ctx.log_dir / "params" / "env.yaml", env.unwrapped.cfg)
            View(env, run).attach()
        backend: Backend = plugins.load(library.backend)()
        if ctx.checkpoint is not None:
            spread_episodes(env, ctx.seed)
        observations = ranks.watch_reset(env)
        modules = backend.train(env, agent_cfg, ctx)
        return ranks.compare(modules or (), observations(), clock.share)


def _finish(run: RunDir, job: JobDir, manifest: Manifest, library: Library, learned: Mapping[str, Any]) -> None:
    found = run.checkpoints(library.checkpoint_glob, library.checkpoint_pattern)
    checkpoint = str(found[-1].relative_to(run.path)) if found else None
    values = {"ranks": learned} if learned else {}
    result = Result(outcome="completed", exit_code=0, checkpoint=checkpoint, ended=files.now(), values=values)
    files.write_once(job.result, to_json(result), job.reserve)
    plugins.manager().hook.rlnb_run_finished(run_dir=run.path, manifest=manifest, result=result)
