"""Training: one straight line from a manifest to a result."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb.contracts import Backend
from rlnb.records import files
from rlnb.records.layout import JobDir, RunDir
from rlnb.serial import to_json
from rlnb.spec import Library, Manifest, Result, Task
from rlnb.worker import assets, config, ranks
from rlnb.worker.context import Context, module_of, open_job
from rlnb.worker.restored import spread_episodes
from rlnb.worker.retention import retention

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
    """Train; return what :func:`rlnb.worker.ranks.compare` says of the ranks."""
    from rlnb.worker import sim
    from rlnb.worker.view import View

    root = sim.start(manifest.asset_root)
    ctx.asset_root, ctx.versions = f"{root.path} ({root.reason})", sim.versions()
    with (
        ranks.process_group(sim.device(manifest.resources.device), synchronised=ctx.synchronised) as clock,
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
            sim.dump(ctx.log_dir / "params" / "env.yaml", env.unwrapped.cfg)
            View(env, run).attach()
        backend: Backend = plugins.load(library.backend)()
        if ctx.checkpoint is not None:
            spread_episodes(env, ctx.seed)
        observations = ranks.watch_reset(env)
        modules = backend.train(env, agent_cfg, ctx)
        return ranks.compare(modules or (), observations(), clock.share)


@contextlib.contextmanager
def environment(
    task: Task,
    library: Library | None,
    *,
    module: Path | None = None,
    agent: Mapping[str, Any] | None = None,
    seed: int = 42,
    device: str = "auto",
    world_size: int = 1,
    manifest: Manifest | None = None,
    log_dir: Path | None = None,
    configure: Any = None,
) -> Iterator[tuple[Any, Any]]:
    """Make the task's env with every change that was asked for; close it in the end.

    Args:
        task: What to make.
        library: Whose agent config to resolve with it; None resolves none.
        module: The task's module, where it is not at ``task.source``.
        agent: Agent config values by dotted path.
        seed: Seed of this rank.
        device: As in :class:`rlnb.spec.Resources`.
        world_size: Ranks that share the envs.
        manifest: Passed to ``rlnb_configure_env``; None calls no hook.
        log_dir: Where the env may write.
        configure: ``function(env_cfg)`` called last.

    Yields:
        The env as ``gymnasium.make`` returns it, and the agent config. For a library that trains one agent, the agents
        of a multi-agent task are joined into one.
    """
    from rlnb.worker import sim

    registered, env_cfg, agent_cfg = configured(
        task, library, module=module, agent=agent, seed=seed, device=device, world_size=world_size
    )
    if log_dir is not None:
        env_cfg.log_dir = str(log_dir)
    if manifest is not None:
        plugins.manager().hook.rlnb_configure_env(env_cfg=env_cfg, manifest=manifest)
    if configure is not None:
        configure(env_cfg)
    join_agents = library is not None and not library.multi_agent
    with sim.made(registered.gym_id, env_cfg, env_cfg.sim.device, join_agents=join_agents) as env:
        yield env, agent_cfg


def configured(
    task: Task,
    library: Library | None,
    *,
    module: Path | None = None,
    agent: Mapping[str, Any] | None = None,
    seed: int = 42,
    device: str = "auto",
    world_size: int = 1,
) -> tuple[Any, Any, Any]:
    """Return a task as it is registered, its env config and its agent config, with what was asked for set in them.

    The arguments are those of :func:`environment`.
    """
    from rlnb.worker import sim

    registered = sim.register(task, module)
    env_cfg, agent_cfg = sim.resolve(task, registered, library)
    for path, value in task.overrides.items():
        config.set_value(env_cfg, path, value)
    for path, value in (agent or {}).items():
        config.set_value(agent_cfg, path, value)
    env_cfg.scene.num_envs = (task.num_envs or env_cfg.scene.num_envs) // world_size
    env_cfg.sim.device = sim.device(device)
    env_cfg.seed = seed
    return registered, env_cfg, agent_cfg


def hashes(root: assets.AssetRoot, names: set[str]) -> dict[str, str]:
    """Return the SHA-256 of each local asset; an empty string for a remote one."""
    found = {}
    for name in sorted(names):
        path = Path(root.path) / name
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if root.local and path.is_file() else ""
    return found


def _finish(run: RunDir, job: JobDir, manifest: Manifest, library: Library, learned: Mapping[str, Any]) -> None:
    found = run.checkpoints(library.checkpoint_glob, library.checkpoint_pattern)
    checkpoint = str(found[-1].relative_to(run.path)) if found else None
    values = {"ranks": learned} if learned else {}
    result = Result(outcome="completed", exit_code=0, checkpoint=checkpoint, ended=files.now(), values=values)
    files.write_once(job.result, to_json(result), job.reserve)
    plugins.manager().hook.rlnb_run_finished(run_dir=run.path, manifest=manifest, result=result)
