"""The start of Isaac Lab, and its registry of tasks.

Nothing here imports isaaclab at module level, because isaaclab reads the asset root when it is
imported, so the asset root has to be set first.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rlnb.configs.card import OWN_TASKS, AssetRoot, Selectors
from rlnb.errors import NotFoundError, RlnbError, did_you_mean
from rlnb.hooks import plugins
from rlnb.machine.packages import install_line
from rlnb.spec import Task
from rlnb.storage import files
from rlnb.version import PACKAGES
from rlnb.worker.assets import packs
from rlnb.worker.assets import root as assets
from rlnb.worker.isaac import kit, modules, ovphysx, release
from rlnb.worker.isaac.modules import import_file
from rlnb.worker.isaac.solver import unprinted

if TYPE_CHECKING:
    import torch

CLOUD = "https://omniverse-content-production.s3-us-west-2.amazonaws.com/Assets/Isaac/6.2"
"""Isaac Lab 3.0's default asset root. The reachability check contacts only the URL's host."""

EVALUATION = "an evaluation"
"""The part of rlnb that needs private APIs of envs, for errors."""
FORMER_NAMES = {
    "Isaac-Repose-Cube-Shadow-Vision-Direct": "Isaac-Reorient-Cube-Shadow-Camera-Direct",
    "Isaac-Repose-Cube-Shadow-Direct": "Isaac-Reorient-Cube-Shadow-Direct",
    "Isaac-Repose-Cube-Allegro-Direct": "Isaac-Reorient-Cube-Allegro-Direct",
    "Isaac-Repose-Cube-Allegro": "Isaac-Reorient-Cube-Allegro",
    "Isaac-Cartpole-RGB-Camera-Direct": "Isaac-Cartpole-Camera-Direct",
    "Isaac-Cartpole-RGB": "Isaac-Cartpole-Camera",
    "Isaac-Cart-Double-Pendulum-Direct": "Isaac-Pendulum-MARL-Direct",
    "Isaac-Shadow-Hand-Over-Direct": "Isaac-Shadow-Handover-Direct",
}
"""Map from task names of Isaac Lab 2.x to those of 3.0, without the version suffix."""


@functools.cache
def start(asset_root: str | None = None) -> AssetRoot:
    """Set the asset root, import Isaac Lab and register its tasks, once per process.

    Raises:
        RlnbError: Isaac Lab is missing, or has another major version.
    """
    release.check()
    packs.adopt_prebuilt()
    wait_for_root = assets.search(asset_root, CLOUD)  # a subprocess searches during the imports
    import torch  # noqa: F401
    import warp

    root = wait_for_root()
    # RL libraries never differentiate through the simulator, so Warp's adjoint kernels are not needed.
    warp.config.enable_backward = False
    os.environ[assets.VARIABLE] = root.path
    import isaaclab_tasks  # noqa: F401  - registers the tasks

    load_tasks(importlib.metadata.entry_points(group="isaaclab.tasks"))
    return root


def load_tasks(entry_points: Iterable[importlib.metadata.EntryPoint]) -> None:
    """Let packages register their tasks. A package that cannot be imported is skipped; later errors name it."""
    for entry_point in entry_points:
        try:
            entry_point.load()
        except Exception as exc:  # another package's import may raise anything
            traceback.print_exc()
            package = entry_point.dist.name if entry_point.dist else entry_point.value
            _left_out[package] = f"{type(exc).__name__}: {exc}"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that can affect a result."""
    versions = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


# -- tasks -----------------------------------------------------------------------------------------------------------


def task_ids() -> list[str]:
    """Return the ids of all registered Isaac Lab tasks, sorted."""
    import gymnasium

    return sorted(id for id, spec in gymnasium.registry.items() if spec.kwargs and "env_cfg_entry_point" in spec.kwargs)


def import_tasks(name: str) -> None:
    """Import a module that registers tasks.

    Raises:
        RlnbError: This interpreter has no such module.
    """
    before = {*task_ids()}
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as exc:
        if not modules.is_part(exc.name, name):
            raise  # a module that it imports is missing
        raise RlnbError(
            f"imports={name!r} is not a module of the worker's Python, {sys.executable}: there is no {exc.name!r}."
            f"{modules.why_not(name)} {modules.INSTALL}"
        ) from exc
    _brought.setdefault(name, sorted({*task_ids()} - before))


_brought: dict[str, list[str]] = {}
"""Tasks that the import of each module named by the user has registered."""


def current_name(name: str, imports: Sequence[str] = ()) -> str:
    """Return the registered id of a task, given its current name or its name in Isaac Lab 2.x.

    Args:
        name: The name.
        imports: Modules that the user has named to register tasks, which errors mention.

    Raises:
        NotFoundError: No task has this name. The error names the closest one.
    """
    import gymnasium

    ids = task_ids()
    bare = name.rsplit("-v", 1)[0] if name.rsplit("-v", 1)[-1].isdigit() else name
    for candidate in (name, bare, FORMER_NAMES.get(bare, bare)):
        if candidate in ids:
            return candidate
    if name in gymnasium.registry:
        raise NotFoundError(
            f"{name!r} is registered with gymnasium, but not as a task of Isaac Lab: its registration has no "
            'env_cfg_entry_point. Use gymnasium.register(..., kwargs={"env_cfg_entry_point": "package.module:EnvCfg"}).'
        )
    left_out = "".join(f" The tasks of {package} are not registered: {why}." for package, why in _left_out.items())
    hint = did_you_mean(bare, ids)
    own = "".join(f" imports={module!r} registered {', '.join(_brought[module]) or 'none'}." for module in imports)
    own = own or f" {OWN_TASKS}"
    raise NotFoundError(f"No task named {name!r}.{hint} `rlnb tasks` lists all {len(ids)}.{left_out}{own}")


_left_out: dict[str, str] = {}
"""Packages in the entry-point group ``isaaclab.tasks`` that could not be imported, with the error of each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Registered:
    """A task in Isaac Lab's registry."""

    gym_id: str
    success: Callable[[Any], Any] | None
    """Function that takes the env and returns the success of each env, called when episodes end; None if undefined."""
    success_source: str = ""
    """Name of the success function, ``"module:function"``; empty if there is none."""
    agents: dict[str, Any]
    """Agent configs that the task's own module defines, by library or by the name that ``agent=`` takes."""


def register(task: Task, source: Path | None = None) -> Registered:
    """Register a task with gymnasium, from a module's file, from ``module:attribute`` or by its id.

    Args:
        task: The task.
        source: File of the task's module if it is not ``task.source``, such as a run's own copy.
    """
    for name in task.imports:
        import_tasks(name)
    if source is None and task.source:
        source = Path(task.source)
    if source is not None:
        return _register_module(task, import_file(source, task.files))
    if ":" in task.id:
        module_name, _, attribute = task.id.partition(":")
        modules.load_reference(task.id)  # raises an error that names the missing part
        return _register_module(task, sys.modules[module_name], attribute)
    gym_id = current_name(task.id, task.imports)
    modules.check_registration(gym_id)
    entry = plugins.tasks().get(gym_id)
    reference = task.success or (entry.success if entry else None) or ""
    success = modules.load_reference(reference) if reference else None
    return Registered(gym_id=gym_id, success=success, success_source=reference, agents={})


def _register_module(task: Task, module: ModuleType, attribute: str | None = None) -> Registered:
    import gymnasium
    from isaaclab.envs import DirectMARLEnvCfg, DirectRLEnvCfg, ManagerBasedRLEnvCfg

    cfg_types = (DirectRLEnvCfg, ManagerBasedRLEnvCfg, DirectMARLEnvCfg)

    def is_cfg(cls: type) -> bool:
        return issubclass(_default(cls), cfg_types)

    cfg = getattr(module, attribute or "TASK", None) or _only_class(module, is_cfg, "env config class", "TASK")
    if not is_cfg(cfg):
        configs = [key for key, value in vars(module).items() if inspect.isclass(value) and is_cfg(value)]
        names = " or ".join(f"{module.__name__}:{key}" if attribute else f"TASK = {key}" for key in configs)
        what = f"{task.id}: {getattr(cfg, '__name__', cfg)} is not the config of an env."
        raise RlnbError(f"{what} Use {names}." if names else what)
    if issubclass(_default(cfg), ManagerBasedRLEnvCfg):
        entry: Any = "isaaclab.envs:ManagerBasedRLEnv"
    else:
        from isaaclab.envs import DirectMARLEnv, DirectRLEnv

        def is_env(cls: type) -> bool:
            return issubclass(cls, (DirectRLEnv, DirectMARLEnv))

        kind = f"env class for {_default(cfg).__name__}, derived from DirectRLEnv or DirectMARLEnv"
        own = getattr(module, "ENV", None) or modules.env_of(task.id, cfg)
        entry = own or _only_class(module, is_env, kind, "ENV")
    agents = dict(getattr(module, "AGENTS", {}))
    gym_id = f"rlnb-{task.id.replace(':', '-').replace('.', '-')}-{module.__name__[-12:].replace('.', '-')}"
    if gym_id not in gymnasium.registry:
        # A run changes its config, and a process has several runs.
        make = cfg if inspect.isclass(cfg) else lambda: copy.deepcopy(cfg)
        gymnasium.register(id=gym_id, entry_point=entry, disable_env_checker=True, kwargs={"env_cfg_entry_point": make})
    success = modules.load_reference(task.success) if task.success else getattr(module, "success", None)
    source = task.success or (f"{task.id.partition(':')[0]}:success" if success else "")
    return Registered(gym_id=gym_id, success=success, success_source=source, agents=agents)


def _default(cfg: Any) -> type:
    """Return the class of a config, or of its default if it is a set of presets, as in the stock camera tasks."""
    from isaaclab_tasks.utils import PresetCfg

    cls = cfg if inspect.isclass(cfg) else type(cfg)
    return type(getattr(cfg() if cfg is cls else cfg, "default", None)) if issubclass(cls, PresetCfg) else cls


def _only_class(module: ModuleType, fits: Callable[[type], bool], kind: str, name: str) -> type:
    classes = [
        cls for cls in vars(module).values() if inspect.isclass(cls) and cls.__module__ == module.__name__ and fits(cls)
    ]
    leaves = [cls for cls in classes if not any(other is not cls and issubclass(other, cls) for other in classes)]
    if len(leaves) != 1:
        names = ", ".join(sorted(cls.__name__ for cls in leaves)) or "none"
        raise RlnbError(f"{module.__file__}: expected one {kind}, found {names}. Set `{name} = YourClass`.")
    return leaves[0]


def selectors(task: Task) -> list[str]:
    """Return the task's selectors in Isaac Lab's command-line form."""
    values = {"presets": ",".join(task.presets), "physics": task.physics, "renderer": task.renderer}
    return [f"{name}={value}" for name, value in values.items() if value]


def preset_names(gym_id: str) -> Selectors:
    """Return the names that each selector of a task accepts, or why they are unknown."""
    module, feature = "isaaclab_tasks.utils.preset_cli", "the check of presets, physics= and renderer="
    try:
        presets = release.required(module, "enumerate_task_presets", feature)(gym_id) or {}
    except RlnbError as exc:
        return Selectors(error=str(exc))
    names = {target.value: tuple(sorted(options)) for target, options in presets.items()}
    return Selectors(
        physics=names.get("physics", ()),
        renderer=names.get("renderer", ()),
        presets=tuple(sorted({name for options in names.values() for name in options})),
    )


@contextlib.contextmanager
def made(gym_id: str, env_cfg: Any, arguments: Mapping[str, Any], *, join_agents: bool = False) -> Iterator[Any]:
    """Launch the runtime that the config needs, make the env, and close the env at the end.

    Args:
        gym_id: Id of the registered task.
        env_cfg: Config of the env.
        arguments: Isaac Lab's launcher arguments, see :func:`rlnb.worker.isaac.kit.arguments_of`.
        join_agents: Whether to join the agents of a multi-agent task into one, with Isaac Lab's own wrapper.

    Raises:
        FreshProcessError: This process cannot run the env, but a fresh one can.
        RlnbError: Isaac Sim or OvPhysX is needed and is not installed, or the user has not accepted the terms of Isaac
            Sim.
    """
    import gymnasium

    with kit.launched(env_cfg, arguments):
        ovphysx.prepare(env_cfg)
        from isaaclab.envs import DirectMARLEnv, multi_agent_to_single_agent  # loads USD, so not before Kit

        with unprinted(env_cfg):  # the launch has chosen the physics
            env = gymnasium.make(gym_id, cfg=env_cfg)
        try:
            join = join_agents and isinstance(env.unwrapped, DirectMARLEnv)
            yield multi_agent_to_single_agent(env.unwrapped) if join else env
        finally:
            env.close()


def viser_visualizer(address: str, port: int) -> Any:
    """Return the config of Isaac Lab's 3D view in the browser.

    Args:
        address: Address of this machine that the view listens on.
        port: Port.

    Raises:
        RlnbError: viser is not installed.
    """
    if importlib.util.find_spec("viser") is None:
        raise RlnbError(f"viser is not installed in {sys.executable}. Use {install_line('rlnb[view]')}")
    from isaaclab_visualizers.viser import ViserVisualizerCfg

    return ViserVisualizerCfg(bind_address=address, display_address=address, port=port, verbose=False)


def task_env(env: Any) -> Any:
    """Return the task's own env, without gymnasium's wrappers and without the wrapper that joins agents."""
    from isaaclab.envs import DirectMARLEnv

    raw = env.unwrapped
    inner = getattr(raw, "env", None)
    return inner if isinstance(inner, DirectMARLEnv) else raw


def around_reset(env: Any, context: Callable[[Any], contextlib.AbstractContextManager[None]]) -> None:
    """Enter ``context(env_ids)`` when episodes end, before their envs are reset, and leave it after the reset.

    ``_reset_idx`` is private to Isaac Lab, but every workflow of release line 3.0 resets envs through it.

    Raises:
        RlnbError: The env has no such method.
    """
    raw = task_env(env)
    reset = release.required(raw, "_reset_idx", EVALUATION)

    def wrapped(env_ids: Any = None, *others: Any, **options: Any) -> Any:
        with context(env_ids):
            return reset(env_ids, *others, **options)

    raw._reset_idx = wrapped


def reward_sums(env: Any) -> dict[str, torch.Tensor]:
    """Return each reward term's contribution to the return of the current episodes, shape (num_envs,) each.

    Only the manager-based workflow has reward terms. In release line 3.0, their per-env sums are a private attribute
    of the reward manager.

    Raises:
        RlnbError: The reward manager has no such attribute.
    """
    manager = getattr(env, "reward_manager", None)
    return {} if manager is None else dict(release.required(manager, "_episode_sums", EVALUATION))


def positions(env: Any) -> torch.Tensor:
    """Return the visible state of an env: poses and joint positions, shape (num_envs, values), metres and radians."""
    import torch

    parts = [
        value.reshape(env.num_envs, -1)
        for assets in env.scene.get_state(is_relative=True).values()
        for state in assets.values()
        if isinstance(state, Mapping)
        for name, value in state.items()
        if not name.endswith("velocity")
    ]
    return torch.cat([torch.zeros((env.num_envs, 0), device=env.device), *parts], dim=1)


def joints(env: Any) -> dict[str, tuple[Sequence[str], torch.Tensor, torch.Tensor]]:
    """Return the joints of each robot: their names, and positions and velocities, shape (num_envs, joints) each.

    Positions are in metres and radians, velocities in metres and radians per second.
    """
    robots = getattr(env.scene, "articulations", {})
    states = env.scene.get_state(is_relative=True).get("articulation", {}) if robots else {}
    return {
        name: (robots[name].joint_names, state["joint_position"], state["joint_velocity"])
        for name, state in states.items()
    }


def reward_terms(env: Any) -> dict[str, torch.Tensor]:
    """Return each reward term's weighted value in the last step, per second of simulated time, shape (num_envs,) each.

    Only the manager-based workflow has reward terms. In release line 3.0, their values are a private attribute of the
    reward manager.

    Another manager, such as that of Isaac Lab's experimental envs, has no such attribute; its terms are not known.
    """
    manager = getattr(env, "reward_manager", None)
    if manager is None or not hasattr(manager, "_step_reward"):
        return {}
    values = release.required(manager, "_step_reward", "the check of reward terms")
    return {name: values[:, index] for index, name in enumerate(manager.active_terms)}


def dump(path: Path, cfg: Any) -> None:
    """Write a config as Isaac Lab writes its own (``params/env.yaml``)."""
    from isaaclab.utils.io import dump_yaml

    files.make_folder(path.parent)
    dump_yaml(str(path), cfg)
