"""Actions for an env: random, zero, or those of a policy."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rlnb.configs.agent import choice_of
from rlnb.hooks import plugins
from rlnb.protocol.requests import ActingRequest
from rlnb.records.layout import RunDir
from rlnb.spec import Manifest
from rlnb.storage import files
from rlnb.storage.serial import from_json
from rlnb.worker.flight.guard import Guard, refuse_not_finite
from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.env import environment

Act = Callable[[Any], Any]
"""Function from observations to actions."""


@contextlib.contextmanager
def acting(
    request: ActingRequest[Any], configure: Callable[[Any], None]
) -> Iterator[tuple[Any, Act, Callable[[Any], None]]]:
    """Make an env and the function that acts in it; close the env at the end.

    Args:
        request: The task, the number of envs, and the policy or the kind of actions.
        configure: Function that changes the env's config, called after all other changes.

    Yields:
        The env, the function from observations to actions, and a function that resets the policy's state in the envs
        whose episodes have ended. The reset function takes a bool tensor of shape (num_envs,), True for those envs.

    Raises:
        NotFiniteError: A weight of the policy, or one of its actions, is nan or infinite.
    """
    task, policy = dataclasses.replace(request.task, num_envs=request.num_envs), request.policy
    make = functools.partial(
        environment, seed=request.seed, device=request.device, mode=request.mode, configure=configure
    )
    if policy is None:
        with make(task, None) as (env, _):
            raw = isaaclab.task_env(env)
            yield env, lambda obs: actions(raw, request.actions), lambda ended: None
        return
    run = RunDir(Path(policy.run))
    manifest = from_json(Manifest, files.read_json(run.manifest) or {})
    library = plugins.library(manifest.library)
    checkpoint = run.path / policy.checkpoint
    refuse_not_finite(checkpoint)
    with make(task, library, agent=choice_of(manifest), manifest=manifest) as (env, agent):
        actor = plugins.new_backend(library).load_policy(
            env,
            agent,
            checkpoint,
            device=str(isaaclab.task_env(env).device),
            trust=policy.trust,
        )
        guard = Guard(env, f"the policy of {checkpoint.name}")

        def act(observations: Any) -> Any:
            with guard.acting():
                actions = actor(observations)
            guard.acted(actions)
            return actions

        yield env, act, actor.reset


def actions(env: Any, kind: str) -> Any:
    spaces = getattr(env, "action_spaces", None)
    if isinstance(spaces, Mapping):  # multi-agent
        return {agent: _sample(space, env.num_envs, kind, env.device) for agent, space in spaces.items()}
    return _sample(env.single_action_space, env.num_envs, kind, env.device)


def _sample(space: Any, num_envs: int, kind: str, device: str) -> Any:
    import gymnasium
    import torch

    if isinstance(space, gymnasium.spaces.Discrete):
        actions = torch.randint(int(space.n), (num_envs, 1), device=device)
    elif isinstance(space, gymnasium.spaces.MultiDiscrete):
        actions = torch.cat([torch.randint(int(n), (num_envs, 1), device=device) for n in space.nvec], dim=1)
    else:
        actions = torch.rand((num_envs, space.shape[-1]), device=device) * 2.0 - 1.0
    return actions if kind == "random" else torch.zeros_like(actions)


def joint(reward: Any, terminated: Any, truncated: Any) -> tuple[Any, Any, Any]:
    """Return the sum of all agents' rewards, whether all are terminated, and whether all are truncated.

    Isaac Lab resets a multi-agent env once all of its agents are terminated, or all have timed out.

    Args:
        reward: Shape (num_envs,), float; for a multi-agent env, a dict of one such tensor per agent.
        terminated: Shape (num_envs,), bool; for a multi-agent env, a dict of one such tensor per agent.
        truncated: Shape (num_envs,), bool; for a multi-agent env, a dict of one such tensor per agent.
    """
    if not isinstance(reward, Mapping):
        return reward, terminated, truncated
    import torch

    terminated, truncated = (torch.stack([*ends.values()]).all(dim=0) for ends in (terminated, truncated))
    return sum(reward.values()), terminated, truncated
