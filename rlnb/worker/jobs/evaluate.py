"""Evaluation: whole episodes from reset, the same number in every env."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.configs.agent import choice_of
from rlnb.contracts.libraries import Backend, Policy
from rlnb.errors import NotFiniteError, RlnbError
from rlnb.hooks import plugins
from rlnb.records.evaluation import EvaluateOptions, EvaluationRecord
from rlnb.records.options import options_of
from rlnb.spec import Result
from rlnb.storage import files
from rlnb.version import ISAACLAB_REQUIREMENT
from rlnb.worker.actions import joint
from rlnb.worker.cameras.films import Film
from rlnb.worker.flight.guard import Guard, refuse_not_finite
from rlnb.worker.isaac import isaaclab, release
from rlnb.worker.isaac.env import environment, play_notes
from rlnb.worker.isaac.solver import Shortages
from rlnb.worker.isaac.success import Successes
from rlnb.worker.jobs import no_simulator
from rlnb.worker.jobs.checkpoints import write_whole
from rlnb.worker.jobs.context import OpenJob, open_job, plugin_differences

if TYPE_CHECKING:
    import numpy as np


def evaluate(job_dir: Path) -> None:
    """Evaluate a checkpoint according to the job's options, and write ``evaluation.json`` and the result."""
    job = open_job(job_dir)
    options = options_of(EvaluateOptions, job.folder)
    library = plugins.library(job.manifest.library)
    refuse_not_finite(job.run.path / options.checkpoint)
    if library.simulator:
        isaaclab.start(job.manifest.asset_root)  # first, since a backend may import isaaclab, which reads the root
        backend: Backend = plugins.new_backend(library)
        notes = (*plugin_differences(job), *play_notes(job.manifest.task, job.module, options.mode))
        record = dataclasses.replace(_roll_out(job, options, backend), warnings=notes)
    else:
        record = no_simulator.evaluate(job.manifest, library, options, job.run.path)
    if faults := [*record.faults()]:
        raise NotFiniteError(f"This evaluation of {options.checkpoint} has no result: {' and '.join(faults)}.")
    files.write_once(job.folder.evaluation, record)
    result = Result(
        outcome="completed",
        exit_code=0,
        checkpoint=options.checkpoint,
        ended=files.now(),
        warnings=record.warnings,
    )
    files.write_once(job.folder.result, result)


def _roll_out(job: OpenJob, options: EvaluateOptions, backend: Backend) -> EvaluationRecord:
    """Run the episodes in an env of the run's task, write film and rollout, and return the record."""
    manifest = job.manifest
    task = dataclasses.replace(manifest.task, num_envs=options.num_envs)
    registered = isaaclab.register(task, job.module)
    film = Film(job.run.media / f"{job.folder.path.name}.mp4", options.camera) if options.video else None
    tape = _Tape(options.record)
    with environment(
        task,
        plugins.library(manifest.library),
        module=job.module,
        agent=choice_of(manifest),
        seed=options.seed,
        device=manifest.resources.device,
        manifest=manifest,
        mode=options.mode,
        configure=film.plan.apply if film else None,
    ) as (env, agent_cfg):
        raw, checkpoint = isaaclab.task_env(env), job.run.path / options.checkpoint
        Shortages(raw, None).attach()
        policy = backend.load_policy(
            env,
            agent_cfg,
            checkpoint,
            device=str(raw.device),
            trust=options.trust,
            **({} if options.deterministic else {"deterministic": False}),
        )
        per_env = math.ceil(options.episodes / options.num_envs)
        episodes = Episodes(raw, per_env, Successes(raw, registered))
        with film.whole() if film is not None else contextlib.nullcontext():
            _step(env, policy, episodes, tape, film, options.seed, Guard(env, f"the policy of {checkpoint.name}"))
    tape.write(job.folder.rollout)
    return episodes.record(options, str(film.path.relative_to(job.run.path)) if film else None)


def _step(
    env: Any, policy: Policy, episodes: Episodes, tape: _Tape, film: Film | None, seed: int, guard: Guard
) -> None:
    """Step an env from reset until its episodes are complete.

    Raises:
        NotFiniteError: An action, or a value of the env, is nan or infinite.
    """
    import torch

    raw = isaaclab.task_env(env)
    obs, _ = env.reset(seed=seed)  # loading a policy may have changed the global seeds
    isaaclab.around_reset(env, episodes.ending)
    if film is not None:
        film.begin(raw)
    with torch.inference_mode():
        guard.reset(obs)
        while not episodes.complete:
            if film is not None:
                film.take(raw)
            with guard.acting():
                actions = tape.keep(obs, policy)
            guard.acted(actions)
            obs, *outcome, _ = env.step(actions)
            guard.stepped(obs, outcome[0])
            reward, terminated, truncated = joint(*outcome)
            episodes.stepped(reward, terminated | truncated, truncated)
            policy.reset(terminated | truncated)


class _Tape:
    """Keeps the first observations and the policy's actions for them."""

    def __init__(self, rows: int) -> None:
        self._missing = rows
        self._rows: list[dict[str, np.ndarray]] = []

    def keep(self, obs: Any, policy: Policy) -> Any:
        """Return the policy's actions; while rows are missing, keep copies of both, since envs reuse their buffers."""
        if self._missing <= 0:
            return policy(obs)
        row = _columns("obs", obs)
        actions = policy(obs)
        row |= _columns("actions", actions)
        self._rows.append(row)
        self._missing -= len(next(iter(row.values())))
        return actions

    def write(self, path: Path) -> None:
        """Write the rows, if there are any."""
        import numpy as np

        if self._rows:
            columns = {name: np.concatenate([row[name] for row in self._rows]) for name in self._rows[0]}
            write_whole(path, lambda part: np.savez_compressed(part, **columns))  # type: ignore[arg-type]


def _columns(name: str, value: Any) -> dict[str, np.ndarray]:
    """Return a copy of a tensor as array ``<name>``; those by group, agent or term as arrays ``<name>.<key>``."""
    if not isinstance(value, Mapping | tuple | list):
        return {name: value.detach().cpu().numpy().copy()}
    parts = value.items() if isinstance(value, Mapping) else enumerate(value)
    columns = [_columns(f"{name}.{key}", part) for key, part in parts]
    return {key: array for of_part in columns for key, array in of_part.items()}


class Episodes:
    """Counts whole episodes, the same number per env; otherwise short episodes would be overrepresented."""

    def __init__(self, env: Any, per_env: int, successes: Successes) -> None:
        """Start with no episode.

        Args:
            env: The task's own env.
            per_env: Number of episodes that count in each env.
            successes: Reads the success of the episodes.
        """
        import torch

        self._env, self._per_env, self._successes = env, per_env, successes
        isaaclab.reward_sums(env)  # fails before the first step if the attribute is missing
        self._return = torch.zeros(env.num_envs, device=env.device)
        self._finished = torch.zeros(env.num_envs, dtype=torch.long, device=env.device)
        self._ending: Any = None
        self.returns: list[float] = []
        self.lengths: list[int] = []
        self.timeouts: list[bool] = []
        self.terms: dict[str, list[float]] = {}

    @property
    def complete(self) -> bool:
        """Whether every env has ended its episodes."""
        return bool((self._finished >= self._per_env).all())

    @contextlib.contextmanager
    def ending(self, env_ids: Any) -> Iterator[None]:
        """Note the envs whose episode ends in this step, before and during their reset.

        Args:
            env_ids: Ids of the envs, shape (n,).
        """
        counted = self._finished[env_ids] < self._per_env
        ids = env_ids[counted]
        self._ending = env_ids
        self._counted = ids
        self.lengths += self._env.episode_length_buf[ids].tolist()
        for name, sums in isaaclab.reward_sums(self._env).items():
            self.terms.setdefault(name, []).extend(sums[ids].tolist())
        with self._successes.of(env_ids, counted):
            yield

    def stepped(self, reward: Any, done: Any, truncated: Any) -> None:
        """Add the step's reward, and close the episodes that ended in it.

        Raises:
            RlnbError: Episodes ended without a call of :meth:`ending`. The evaluation would never be complete.
        """
        self._return += reward
        if self._ending is None and bool(done.any()):
            env = type(self._env).__name__
            raise RlnbError(
                f"{env}.step does not call {env}._reset_idx when episodes end, so an evaluation cannot count them. "
                f"Call _reset_idx in step, or use {ISAACLAB_REQUIREMENT} (installed: {release.installed()})."
            )
        if self._ending is not None:
            self.returns += self._return[self._counted].tolist()
            self.timeouts += truncated[self._counted].tolist()
            self._finished[self._ending] += 1
            self._return[self._ending] = 0.0
            self._ending = None

    def record(self, options: EvaluateOptions, video: str | None) -> EvaluationRecord:
        """Return the record of the episodes for ``evaluation.json``.

        Args:
            options: Options of the evaluation.
            video: Path of the film, relative to the run's folder.
        """
        successes = self._successes.values
        return EvaluationRecord(
            episodes=len(self.returns),
            returns=tuple(self.returns),
            lengths=tuple(self.lengths),
            timeouts=tuple(self.timeouts),
            successes=None if successes is None else tuple(map(_plain, successes)),
            success_source=self._successes.source,
            terms={name: tuple(values) for name, values in self.terms.items()},
            num_envs=options.num_envs,
            seed=options.seed,
            checkpoint=options.checkpoint,
            deterministic=options.deterministic,
            mode=options.mode,
            video=video,
        )


def _plain(success: float) -> bool | float:
    """Return a success of 0 or 1 as a bool, and a share between them as it is."""
    return success if 0.0 < success < 1.0 else bool(success)
