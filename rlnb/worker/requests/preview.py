"""Camera frames of a task, while random actions or a policy move it."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.configs.cameras import kind_of
from rlnb.protocol.requests import Clip, Examination, Examine, Preview, TaskFinding
from rlnb.worker.actions import Act, acting, joint
from rlnb.worker.cameras import rig
from rlnb.worker.cameras.rig import Plan, missed_is_inf
from rlnb.worker.isaac import interface, isaaclab
from rlnb.worker.requests.sanity import Sanity, ends_infinite_loops

if TYPE_CHECKING:
    import numpy as np

    Arrays = Mapping[str, np.ndarray]


def preview(request: Preview, *, tell: Callable[[Clip], None], after: contextlib.ExitStack) -> Clip:
    """Step a task and take frames: after the reset, after every ``request.every`` steps, and after the last step.

    Args:
        request: The task, its cameras, and the policy or the kind of actions.
        tell: Called with a clip of the first frame alone, as soon as that frame exists.
        after: Stack that closes the env once the answer is sent.
    """
    start_s = time.monotonic()
    plan = Plan(request.cameras, request.data_types, request.size, request.aim)
    steps, every = request.steps, request.every or max(1, request.steps)
    env, act, policy_reset = after.enter_context(acting(request, plan.apply))
    raw, make_s = isaaclab.task_env(env), time.monotonic() - start_s
    shots: list[Arrays] = []
    times_s: list[float] = []

    def take(step: int) -> None:
        shots.append(shoot(raw, plan, request.envs, frames=1 if every == 1 or not step else rig.SETTLING_FRAMES))
        times_s.append(step * raw.step_dt)

    def clip(name: str, moment: str, seconds: Mapping[str, float]) -> Clip:
        return Clip(
            file=_write(Path(request.out) / name, shots),
            times_s=tuple(times_s),
            labels=_labels(raw, plan),
            ranges_m=plan.ranges_m,
            noisy=plan.noisy(raw),
            added=plan.added,
            place=plan.place,
            term_sizes=interface.term_sizes(raw),
            seconds={**seconds, moment: time.monotonic() - start_s},
        )

    obs, sanity = begin(env, raw, request.seed, held_mib=lambda: sum(map(_mib, shots)))
    plan.begin(raw)
    take(0)
    unseen = plan.unseen(raw)
    first = clip("first.npz", "first", {"make": make_s})
    if not steps:
        return dataclasses.replace(first, seconds={**first.seconds, "total": first.seconds["first"]})
    tell(first)
    for step in _steps(env, steps, obs, act, policy_reset, sanity):
        if step == steps or step % every == 0:
            take(step)
    outside = [*_outside_the_pictures(unseen, plan.unseen(raw), raw.num_envs)]
    reset_all(env, act, sanity)
    findings = (*outside, *sanity.findings())
    return dataclasses.replace(clip("frames.npz", "total", first.seconds), findings=findings)


def _steps(
    env: Any, count: int, obs: Any, act: Act, policy_reset: Callable[[Any], None], sanity: Sanity
) -> Iterator[int]:
    """Step an env, and yield the number of each step."""
    import torch

    with torch.inference_mode():
        for step in range(1, count + 1):
            with ends_infinite_loops():
                obs, *outcome, extras = env.step(act(obs))
            sanity.after_step(obs, *(ends := joint(*outcome)), extras=extras)
            policy_reset(ends[1] | ends[2])
            yield step


def _outside_the_pictures(
    first: Mapping[str, Sequence[int]], last: Mapping[str, Sequence[int]], num_envs: int
) -> Iterator[TaskFinding]:
    """Yield a finding for each camera that shows no body in most envs, at the first and at the last moment."""
    for name, envs in first.items():
        empty = {*envs} & {*last.get(name, ())}
        if 2 * len(empty) >= num_envs:
            what = f"The camera {name!r} shows no body of a robot or object in {len(empty)} of {num_envs} envs."
            yield TaskFinding(level="warning", what=what, fix="Correct its position, its direction or its lens.")


def begin(env: Any, raw: Any, seed: int, held_mib: Callable[[], float] = float) -> tuple[Any, Sanity]:
    """Reset an env; return its observations, and what will find mistakes in its steps.

    Args:
        env: The env.
        raw: The task's own env.
        seed: Seed of the env. Loading a policy may have changed the global seeds.
        held_mib: Returns the memory that the caller keeps, in MiB.
    """
    with ends_infinite_loops():
        observations, extras = env.reset(seed=seed)
    sanity = Sanity(raw, held_mib)
    sanity.after_reset(observations, extras)
    return observations, sanity


def reset_all(env: Any, act: Act, sanity: Sanity) -> None:
    """Reset and step all envs once more, since few episodes end in a short preview."""
    import torch

    with torch.inference_mode(), ends_infinite_loops():
        obs, _ = env.reset()
        sanity.after_last_reset()
        env.step(act(obs))
    sanity.after_last_step()


def shoot(env: Any, plan: Plan, envs: Sequence[int] | None, frames: int = 1) -> Arrays:
    """Return the images of every camera, and the state that they show.

    Args:
        env: The task's env.
        plan: Its cameras.
        envs: Indices of the envs; None is all.
        frames: Number of frames for an RTX renderer, see :meth:`Plan.follow`.
    """
    plan.follow(env, frames)
    rows = slice(None) if envs is None else list(envs)
    shot: dict[str, np.ndarray] = {"state": isaaclab.positions(env)[rows].cpu().numpy().astype("float32")}
    for name, camera in plan.cameras.items():
        for data_type in camera.data_types:
            image = plan.read(env, name, data_type)[rows].cpu().numpy().copy()
            shot[f"{name}/{data_type}"] = missed_is_inf(image, data_type, plan.sensor(env, name, data_type).cfg)
    return shot


def _mib(shot: Arrays) -> float:
    return sum(image.nbytes for image in shot.values()) / 2**20


def _write(path: Path, shots: Sequence[Arrays]) -> str:
    import numpy as np

    arrays: Any = {key: np.stack([shot[key] for shot in shots]) for key in shots[0]}
    np.savez(path, **arrays)
    return str(path)


def _labels(env: Any, plan: Plan) -> dict[str, dict[str, str]]:
    return {
        f"{name}/{data_type}": plan.labels(env, name, data_type)
        for name, camera in plan.cameras.items()
        for data_type in camera.data_types
        if kind_of(data_type) == "label"
    }


# -- examine ---------------------------------------------------------------------------------------------------------


def examine(request: Examine) -> Examination:
    """Make the env of a task, step it, and return what is wrong with what it returns."""
    import torch

    with acting(request, lambda env_cfg: None) as (env, act, _):
        raw = isaaclab.task_env(env)
        obs, sanity = begin(env, raw, request.seed)
        with torch.inference_mode():
            for _ in range(request.steps):
                with ends_infinite_loops():
                    obs, *outcome, extras = env.step(act(obs))
                sanity.after_step(obs, *joint(*outcome), extras=extras)
        reset_all(env, act, sanity)
        return Examination(findings=tuple(sanity.findings()), term_sizes=interface.term_sizes(raw))
