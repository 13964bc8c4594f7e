"""Make an Isaac Lab env for a request or a job."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlnb.configs import tree
from rlnb.configs.agent import AgentChoice
from rlnb.contracts.libraries import Library
from rlnb.errors import RlnbError
from rlnb.hooks.registry import require
from rlnb.protocol.code_location import location_of_error
from rlnb.spec import EnvMode, Manifest, Task
from rlnb.worker.isaac import isaaclab, kit, release, renderer
from rlnb.worker.isaac.device import ANY_DEVICE, deterministic_simulation, deterministic_torch, torch_device
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
            stack.enter_context(deterministic_simulation(env_cfg, arguments))
        env = stack.enter_context(isaaclab.made(registered.gym_id, env_cfg, arguments, join_agents=join_agents))
        if deterministic:
            stack.enter_context(deterministic_torch())
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
    from rlnb.worker.isaac import agent_configs
    from rlnb.worker.isaac.spaces import spaces_of_config

    registered = isaaclab.register(task, module)
    env_cfg, choice = overridden(task, registered, mode), agent or AgentChoice()
    spaces = spaces_of_config(env_cfg)
    agent_cfg = agent_configs.resolve(task, registered, library, choice.name, spaces) if library else None
    tree.set_values(agent_cfg, choice.values)
    env_cfg.scene.num_envs = (task.num_envs or env_cfg.scene.num_envs) // world_size
    env_cfg.sim.device = torch_device(device)
    env_cfg.seed = seed
    return registered, env_cfg, agent_cfg


# -- the config of an env --------------------------------------------------------------------------------------------


PLAY = "play_mode"
"""Name of Isaac Lab's method, and of the argument of ``resolve_task_config`` that calls it."""
FIX = 'use mode="train" for the env of the training'


def resolve_config(task: Task, registered: isaaclab.Registered, mode: EnvMode = "train") -> Any:
    """Return the env config, with presets resolved and overrides not yet applied, as this interpreter can run it.

    Raises:
        RlnbError: As in :func:`written`.
    """
    env_cfg = written(task, registered, mode)
    renderer.fill_kitless(env_cfg)
    return env_cfg


def written(task: Task, registered: isaaclab.Registered, mode: EnvMode = "train") -> Any:
    """Return the env config, with presets resolved and overrides not yet applied, as its author wrote it.

    Isaac Lab itself calls ``play_mode()``, between presets and overrides. A config without this method stays as it is.

    Raises:
        RlnbError: ``play_mode()`` fails, or this release of Isaac Lab does not know it.
    """
    from isaaclab_tasks.utils import resolve_task_config

    play = {PLAY: True} if mode == "play" else {}
    if play:
        release.require_argument(resolve_task_config, PLAY, 'mode="play"')
    try:
        return resolve_task_config(registered.gym_id, None, overrides=isaaclab.selectors(task), **play)[0]
    except Exception as exc:
        if mode == "train" or not any(frame.name == PLAY for frame in traceback.extract_tb(exc.__traceback__)):
            raise
        where = location_of_error(exc)[0]
        error = f"{where}: {type(exc).__name__}: {exc}".removeprefix(": ")
        raise RlnbError(f"{PLAY}() of the env config of {task.id} fails. Correct it, or {FIX}. {error}") from exc


def overridden(task: Task, registered: isaaclab.Registered, mode: EnvMode = "train") -> Any:
    """Return the env config with the task's overrides, which come after ``play_mode()``, as in Isaac Lab.

    An override of a value that ``play_mode()`` removes has no effect.

    Raises:
        RlnbError: The env config of the training has no such value.
    """
    env_cfg = resolve_config(task, registered, mode)
    for path, value in task.overrides.items():
        try:
            tree.set_value(env_cfg, path, value)
        except RlnbError:
            if mode == "train":
                raise
            tree.set_value(resolve_config(task, registered), path, value)
    return env_cfg


def play_notes(task: Task, module: Path | None, mode: EnvMode) -> tuple[str, ...]:
    """Return a sentence for each way in which the env of a mode is not what its name promises.

    These are overrides of values that ``play_mode()`` sets or removes, and a config without ``play_mode()``.

    Args:
        task: The task.
        module: The task's module, if it is not at ``task.source``.
        mode: The mode.
    """
    if mode == "train":
        return ()
    registered = isaaclab.register(task, module)
    play_cfg = resolve_config(task, registered, "play")
    if not hasattr(play_cfg, PLAY):
        kind = type(play_cfg).__name__
        return (
            f"{kind} has no {PLAY}(), so the env is that of the training. Write one in {kind} if it should differ.",
        )
    return tuple(_clashes(task, resolve_config(task, registered), play_cfg) if task.overrides else ())


def _clashes(task: Task, train_cfg: Any, play_cfg: Any) -> Iterator[str]:
    """Find the overrides of values that ``play_mode()`` sets or removes, given the configs without and with it."""
    for path, value in task.overrides.items():
        name = path.removeprefix("+")
        values = [tree.value_at(cfg, name) for cfg in (train_cfg, play_cfg)]
        try:
            tree.set_value(play_cfg, path, value)
        except RlnbError:
            yield f"{PLAY}() removes {name}, so the override {name}={value!r} of the training has no effect."
            continue
        if values[0] != values[1] != tree.value_at(play_cfg, name):
            yield f"{PLAY}() sets {name}={values[1]!r}, but the override {name}={value!r} of the training is stronger."
