"""The envs of one rank of a training. The first one is watched; others are for the library's own use."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlnb.configs.agent import choice_of
from rlnb.contracts.libraries import Library
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.worker.assets import root as assets
from rlnb.worker.isaac import task_log
from rlnb.worker.isaac.env import configured, environment
from rlnb.worker.jobs import ranks
from rlnb.worker.jobs.context import Context, OpenJob, open_job
from rlnb.worker.jobs.resume import spread_episodes


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvFactory:
    """Makes an env of a training in another process of the library. Its pickle holds these values only."""

    job_dir: str
    """Folder of the job, from which the other process reads task, overrides and plugins."""
    num_envs: int | None
    """Number of envs; None is the share of a rank."""
    sharing: int
    """Number of ranks that share the envs of the training."""
    seed: int
    """Seed of the env."""
    device: str
    """Device of the env, e.g. ``"cuda:0"``."""

    def __call__(self) -> Any:
        """Return the env, as :meth:`rlnb.backend.TrainContext.make_env` does."""
        from rlnb.worker.isaac import isaaclab

        job = open_job(Path(self.job_dir))
        isaaclab.start(job.manifest.asset_root)
        return _opened(job, plugins.library(job.manifest.library), self)[0]


class Envs:
    """The envs of one rank.

    Args:
        job: The training.
        library: Its library.
        ctx: Context of the rank.
        device: Device of the rank, ``"cpu"`` or ``"cuda:N"``.
    """

    def __init__(self, job: OpenJob, library: Library, ctx: Context, device: str) -> None:
        self._job, self._library, self._ctx, self._device = job, library, ctx, device
        self._open = contextlib.ExitStack()
        self._watched = False
        self.agent_cfg: Any = None
        """Agent config of the task; None before :meth:`configure` or the first :meth:`make`."""
        self.recorders = contextlib.ExitStack()
        """Ends the films and the flight record of the training's env; entered around the training."""
        self.observations: Callable[[], str] = str
        """Returns the digest of the first observations; "" without an env."""

    def configure(self) -> None:
        """Resolve the configs of a training whose backend makes the env itself."""
        job, manifest, ctx = self._job, self._job.manifest, self._ctx
        _, env_cfg, self.agent_cfg = configured(
            manifest.task,
            self._library,
            module=job.module,
            agent=choice_of(manifest),
            seed=ctx.seed,
            device=self._device,
            world_size=ctx.sharing,
        )
        self._note(env_cfg, env_cfg.scene.num_envs)
        ctx.planned_envs = ctx.num_envs_here

    def make(self, num_envs: int | None = None, *, seed: int | None = None) -> Any:
        """Return an env; see :meth:`rlnb.backend.TrainContext.make_env`.

        Raises:
            RlnbError: This process has an env that is not closed, or its role has none and ``num_envs`` is None.
        """
        from rlnb.worker.isaac import isaaclab

        ctx = self._ctx
        if num_envs is None and not ctx.has_env:
            raise RlnbError(f"Rank {ctx.rank} has the role {ctx.role}, which has no env. Use num_envs= to make one.")
        if _simulates():
            raise RlnbError(
                f"The process of rank {ctx.rank} has an env already, and Isaac Lab has one simulation in each process. "
                "Use env.close() first, or ctx.env_factory() for an env in a process of its own."
            )
        self._open.close()
        isaaclab.start(self._job.manifest.asset_root)
        env, agent_cfg = _opened(self._job, self._library, self.factory(num_envs, seed=seed))
        self._open.callback(env.close)
        if ctx.has_env and not self._watched:
            self._watched = True
            self.agent_cfg = agent_cfg if self.agent_cfg is None else self.agent_cfg
            self._note(env.unwrapped.cfg, env.unwrapped.num_envs)
            self._watch(env)
        return env

    def factory(self, num_envs: int | None = None, *, seed: int | None = None) -> EnvFactory:
        """Return a function that makes an env in another process; the arguments are those of :meth:`make`."""
        return EnvFactory(
            job_dir=str(self._job.folder.path),
            num_envs=num_envs,
            sharing=self._ctx.sharing,
            seed=self._ctx.seed if seed is None else seed,
            device=self._device,
        )

    def close(self) -> None:
        """Close every env that is still open."""
        self._open.close()

    def _note(self, env_cfg: Any, num_envs: int) -> None:
        """Note in the context what the record of the training says about its env."""
        from rlnb.worker.isaac import isaaclab, sources

        root, ctx = isaaclab.start(self._job.manifest.asset_root), self._ctx
        ctx.asset_root = f"{root.path} ({root.reason})"
        ctx.assets = assets.hashes(root, env_cfg)
        ctx.sources = sources.hashes(env_cfg, self._job.manifest.task.imports)
        ctx.num_envs_here = num_envs

    def _watch(self, env: Any) -> None:
        """Record and show what happens in the training's env."""
        from rlnb.worker.cameras.live import View
        from rlnb.worker.flight.recorder import recording
        from rlnb.worker.isaac import isaaclab
        from rlnb.worker.isaac.solver import Shortages
        from rlnb.worker.isaac.success import RecentSuccess

        job, ctx = self._job, self._ctx
        ctx.device = env.unwrapped.device
        Shortages(isaaclab.task_env(env), job.folder.shortages(ctx.rank)).attach()
        if ctx.is_first_with_env:
            isaaclab.dump(ctx.log_dir / "params" / "env.yaml", env.unwrapped.cfg)
            View(env, job.run).attach()
        if ctx.origin.checkpoint is not None:
            spread_episodes(env, ctx.seed)
        registered = isaaclab.register(job.manifest.task, job.module)
        RecentSuccess(env, registered, ctx.ends_iteration).attach()
        self.observations = ranks.watch_reset(env)
        self.recorders.enter_context(_filming(env, job, ctx))
        self.recorders.enter_context(recording(env, job.folder.flight(ctx.rank), ctx.iteration_of))


def _opened(job: OpenJob, library: Library, choice: EnvFactory) -> tuple[Any, Any]:
    """Return an env, which also ends its simulation when it is closed, and the agent config."""
    manifest = job.manifest
    task = manifest.task
    if choice.num_envs is not None:
        task = dataclasses.replace(task, num_envs=choice.num_envs * choice.sharing)
    stack = contextlib.ExitStack()
    env, agent_cfg = stack.enter_context(
        environment(
            task,
            library,
            module=job.module,
            agent=choice_of(manifest),
            seed=choice.seed,
            device=choice.device,
            world_size=choice.sharing,
            manifest=manifest,
            log_dir=job.run.logs,
            deterministic=manifest.deterministic,
        )
    )
    task_log.attach(env)

    def close() -> None:
        vars(env).pop("close", None)  # the env's own method, which the stack calls
        stack.close()

    env.close = close
    return env, agent_cfg


def _simulates() -> bool:
    """Return whether this process has an env that is not closed."""
    module = sys.modules.get("isaaclab.sim.simulation_context")  # its import loads USD, so not before Kit
    return module is not None and module.SimulationContext.instance() is not None


@contextlib.contextmanager
def _filming(env: Any, job: OpenJob, ctx: Context) -> Iterator[None]:
    """Film the training of the first rank with an env, if its user wants films."""
    from rlnb.worker.cameras.films import Films
    from rlnb.worker.isaac import isaaclab

    if not ctx.is_first_with_env or job.manifest.film_every is None:
        yield
        return
    films = Films(isaaclab.task_env(env), job.run.film, job.manifest.film_every, ctx.iteration_of)
    films.attach()
    try:
        yield
    finally:
        films.close()
