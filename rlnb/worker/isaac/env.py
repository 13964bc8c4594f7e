"""Make an Isaac Lab env for a request or a job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlnb.configs import tree
from rlnb.configs.agent import AgentChoice
from rlnb.contracts.libraries import Library
from rlnb.hooks.registry import require
from rlnb.spec import EnvMode, Manifest, Task
from rlnb.worker.isaac import determinism, kit
from rlnb.worker.isaac.device import ANY_DEVICE, torch_device
from rlnb.worker.isaac.renderer import resolve_backends


@contextlib.contextmanager
def environment(
    task: Task,
    library: Library | None,
    *,
    module: Path | None = None,
    agent: AgentChoice | None = None,
    seed: int = 42,
    device: str = ANY_DEVICE,
    world_size: int = 1,
    manifest: Manifest | None = None,
    log_dir: Path | None = None,
    deterministic: bool = False,
    mode: EnvMode = "train",
    configure: Any = None,
) -> Iterator[tuple[Any, Any]]:
    """Make the task's env with every requested change; close it at the end.

    Args:
        task: The task.
        library: RL library whose agent config is resolved for the task; None for no agent config.
        module: The task's module, if it is not at ``task.source``.
        agent: Choice of the library's agent config, and the values to set in it; None for its usual one.
        seed: Seed of this rank.
        device: As in :class:`rlnb.spec.Resources`; by default a GPU if torch can use one.
        world_size: Ranks that share the envs.
        manifest: Passed to ``rlnb_configure_env``; None calls no hook.
        log_dir: Folder that the env may write to.
        deterministic: Whether physics, rendering and torch give the same numbers in every process, until the env is
            closed. Warp's modules keep the setting from their import on, so the process must have made no env before.
        mode: Whether the env config is that of the training, or as Isaac Lab's ``play_mode()`` leaves it.
        configure: ``function(env_cfg)`` called last.

    Yields:
        The env as ``gymnasium.make`` returns it, and the agent config. For a library that trains one agent, the agents
        of a multi-agent task are joined into one.
    """
    from rlnb.worker.isaac import isaaclab

    registered, env_cfg, agent_cfg = configured(
        task, library, module=module, agent=agent, seed=seed, device=device, world_size=world_size, mode=mode
    )
    if log_dir is not None:
        env_cfg.log_dir = str(log_dir)
    if manifest is not None:
        require("rlnb_configure_env", env_cfg=env_cfg, manifest=manifest)
    own = {**task.launcher_args, **({"deterministic": True} if deterministic else {})}
    arguments = kit.arguments_of(env_cfg.sim.device, world_size, own)
    if configure is not None:
        resolve_backends(env_cfg, arguments)  # before a camera is added, which could change them
        configure(env_cfg)
    join_agents = library is not None and not library.multi_agent
    with contextlib.ExitStack() as stack:
        if deterministic:
            stack.enter_context(determinism.of_simulation(env_cfg, arguments))
        env = stack.enter_context(isaaclab.made(registered.gym_id, env_cfg, arguments, join_agents=join_agents))
        if deterministic:
            stack.enter_context(determinism.of_torch())
        yield env, agent_cfg


def configured(
    task: Task,
    library: Library | None,
    *,
    module: Path | None = None,
    agent: AgentChoice | None = None,
    seed: int = 42,
    device: str = ANY_DEVICE,
    world_size: int = 1,
    mode: EnvMode = "train",
) -> tuple[Any, Any, Any]:
    """Return a task's registration, its env config and its agent config, with every requested change applied.

    The arguments are those of :func:`environment`.
    """
    from rlnb.worker.isaac import agents, env_config, isaaclab, space_specs

    registered = isaaclab.register(task, module)
    env_cfg, choice = env_config.overridden(task, registered, mode), agent or AgentChoice()
    spaces = space_specs.of_config(env_cfg)
    agent_cfg = agents.resolve(task, registered, library, choice.name, spaces) if library else None
    tree.set_values(agent_cfg, choice.values)
    env_cfg.scene.num_envs = (task.num_envs or env_cfg.scene.num_envs) // world_size
    env_cfg.sim.device = torch_device(device)
    env_cfg.seed = seed
    return registered, env_cfg, agent_cfg
