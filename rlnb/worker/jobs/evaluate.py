"""Evaluation: whole episodes from reset, the same number in every env."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb.contracts import Backend, Policy
from rlnb.records.layout import JobDir, RunDir
from rlnb.spec import Manifest, Result
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.worker.acting import joint
from rlnb.worker.cameras.film import Film
from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.env import environment
from rlnb.worker.jobs.checkpoints import write_whole
from rlnb.worker.jobs.context import module_of, open_job


def evaluate(job_dir: Path) -> None:
    """Evaluate a checkpoint as the job asks, and write ``evaluation.json`` and the result."""
    run, job, manifest, options = open_job(job_dir)
    library = plugins.library(manifest.library)
    backend: Backend = plugins.load(library.backend)()
    if library.simulator:
        isaaclab.start(manifest.asset_root)
        values = _roll_out(run, job, manifest, options, backend)
    else:
        values = backend.evaluate(run.path / options["checkpoint"], options)  # type: ignore[attr-defined]
    files.write_once(job.evaluation, values)
    result = Result(outcome="completed", exit_code=0, checkpoint=options["checkpoint"], ended=files.now())
    files.write_once(job.result, to_json(result))


def _roll_out(
    run: RunDir, job: JobDir, manifest: Manifest, options: Mapping[str, Any], backend: Backend
) -> dict[str, Any]:
    import dataclasses

    import torch

    episodes, num_envs = int(options["episodes"]), int(options["num_envs"])
    module = module_of(run, manifest)
    task = dataclasses.replace(manifest.task, num_envs=num_envs)
    success = isaaclab.register(task, module).success
    library = plugins.library(manifest.library)
    film = Film(run.media / f"{job.path.name}.mp4", options.get("camera")) if options.get("video") else None
    with environment(
        task,
        library,
        module=module,
        agent=manifest.agent,
        seed=int(options["seed"]),
        device=manifest.resources.device,
        manifest=manifest,
        configure=film.plan.apply if film else None,
    ) as (env, agent_cfg):
        raw = isaaclab.task_env(env)
        policy = backend.load_policy(
            env,
            agent_cfg,
            run.path / options["checkpoint"],
            device=str(raw.device),
            trust=bool(options.get("trust")),
            **({} if options.get("deterministic", True) else {"deterministic": False}),
        )
        book = _Episodes(raw, math.ceil(episodes / num_envs), success)
        tape = _Tape(int(options.get("record", 0)))
        obs, _ = env.reset(seed=int(options["seed"]))  # loading a policy may have seeded everything with its own
        isaaclab.before_reset(env, book.ended)
        if film is not None:
            film.begin(raw)
        with torch.inference_mode():
            while not book.complete:
                if film is not None:
                    film.take(raw)
                actions = tape.keep(obs, policy)
                obs, *outcome, _ = env.step(actions)
                reward, terminated, truncated = joint(*outcome)
                book.stepped(reward, truncated)
                policy.reset(terminated | truncated)
    tape.write(job.rollout)
    if film is not None:
        film.end()
    return {
        **book.summary(),
        "num_envs": num_envs,
        "seed": options["seed"],
        "checkpoint": options["checkpoint"],
        "deterministic": bool(options.get("deterministic", True)),
        "video": str(film.path.relative_to(run.path)) if film else None,
    }


class _Tape:
    """Keeps the first observations and what the policy did on them."""

    def __init__(self, rows: int) -> None:
        self._missing, self._kept = rows, []  # type: ignore[var-annotated]

    def keep(self, obs: Mapping[str, Any], policy: Policy) -> Any:
        """Return the policy's actions; copy both while rows are missing: envs write into their buffers."""
        if self._missing <= 0:
            return policy(obs)
        row = _columns("obs", obs)
        actions = policy(obs)
        row |= _columns("actions", actions)
        self._kept.append(row)
        self._missing -= len(next(iter(row.values())))
        return actions

    def write(self, path: Path) -> None:
        """Write what was kept, if anything was to be."""
        import numpy as np

        if self._kept:
            columns = {name: np.concatenate([row[name] for row in self._kept]) for name in self._kept[0]}
            write_whole(path, lambda part: np.savez_compressed(part, **columns))  # type: ignore[arg-type]


def _columns(name: str, value: Any) -> dict[str, Any]:
    """Return a copy of a tensor as array ``<name>``; of tensors by group or agent as ``<name>.<key>``."""
    if isinstance(value, Mapping):
        return {f"{name}.{key}": part.detach().cpu().numpy().copy() for key, part in value.items()}
    return {name: value.detach().cpu().numpy().copy()}


class _Episodes:
    """Counts whole episodes, the same number per env: else short episodes would count more often."""

    def __init__(self, env: Any, per_env: int, success: Any) -> None:
        import torch

        self._env, self._per_env, self._success_of = env, per_env, success
        self._return = torch.zeros(env.num_envs, device=env.device)
        self._finished = torch.zeros(env.num_envs, dtype=torch.long, device=env.device)
        self._ending: Any = None
        self.returns: list[float] = []
        self.lengths: list[int] = []
        self.timeouts: list[bool] = []
        self.successes: list[bool] = []
        self.terms: dict[str, list[float]] = {}

    @property
    def complete(self) -> bool:
        return bool((self._finished >= self._per_env).all())

    def ended(self, env_ids: Any) -> None:
        """Note the envs whose episode ends in this step, before they are reset."""
        counts = self._finished[env_ids] < self._per_env
        ids = env_ids[counts]
        self._ending = env_ids
        self._counted = ids
        self.lengths += self._env.episode_length_buf[ids].tolist()
        for name, sums in isaaclab.reward_sums(self._env).items():
            self.terms.setdefault(name, []).extend(sums[ids].tolist())
        if self._success_of is not None:
            self.successes += self._success_of(self._env)[ids].tolist()

    def stepped(self, reward: Any, truncated: Any) -> None:
        """Add the step's reward, and close the episodes that ended in it."""
        self._return += reward
        if self._ending is not None:
            self.returns += self._return[self._counted].tolist()
            self.timeouts += truncated[self._counted].tolist()
            self._finished[self._ending] += 1
            self._return[self._ending] = 0.0
            self._ending = None

    def summary(self) -> dict[str, Any]:
        return {
            "episodes": len(self.returns),
            "returns": self.returns,
            "lengths": self.lengths,
            "timeouts": self.timeouts,
            "successes": self.successes if self._success_of is not None else None,
            "terms": self.terms,
        }
