"""The task card: the description of a task for a kernel, which cannot import the task."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import importlib.util
import io
from pathlib import Path
from typing import Any, TypeAlias

from rlnb.configs import tree
from rlnb.configs.agent import libraries_of
from rlnb.configs.card import GENERIC, MULTI_AGENT, AgentCard, Asset, AssetRoot, CameraCard, Selectors, TaskCard
from rlnb.hooks import plugins
from rlnb.machine.packages import unmet
from rlnb.spec import Task
from rlnb.version import untested
from rlnb.worker.assets import packs
from rlnb.worker.assets import root as assets
from rlnb.worker.isaac import agent_configs, env, isaaclab, kit, ovphysx, release, renderer
from rlnb.worker.isaac.renderer import own_cameras
from rlnb.worker.isaac.sources import stamps
from rlnb.worker.isaac.spaces import TaskSpaces, spaces_of_config
from rlnb.worker.isaac.success import source_in_config


def card(task: Task, root: AssetRoot) -> TaskCard:
    """Resolve a task and describe it.

    Args:
        task: The task.
        root: The asset root of this process.
    """
    import gymnasium

    registered = isaaclab.register(task)
    with contextlib.redirect_stdout(io.StringIO()):  # Isaac Lab prints a line per config
        selectors = isaaclab.preset_names(registered.gym_id)
        task = _without_unknown(task, selectors)
        env_cfg = env.written(task, registered)
        chosen = renderer.fill_kitless(env_cfg)
        spaces = spaces_of_config(env_cfg)
        usual, generic, named = _agents(task, registered, _workflow(env_cfg), spaces)
    return TaskCard(
        task=task.id,
        gym_id=registered.gym_id,
        workflow=_workflow(env_cfg),
        num_envs=env_cfg.scene.num_envs,
        fields=tree.fields(env_cfg),
        observations=spaces[0],
        actions=spaces[1],
        success=source_in_config(registered, env_cfg),
        presets=selectors,
        cameras=_cameras(env_cfg),
        agents=usual,
        named_agents=named,
        generic_agents=generic,
        registered_agents=tuple(agent_configs.all_names(registered)),
        default_library=_default_library(registered, usual),
        assets=_assets(env_cfg, root),
        own_assets={place: assets.own_asset(path, place) for place, path in assets.own_files(env_cfg, root).items()},
        sources=stamps(env_cfg, task.imports, gymnasium.spec(registered.gym_id).kwargs.values()),
        asset_root=root,
        versions=isaaclab.versions(),
        warning=untested(release.installed()),
        chosen=chosen,
        requires=missing_for_soft_bodies(env_cfg),
        isaac_sim=kit.missing_for(env_cfg, task.launcher_args),  # last, since these change the config
        missing=ovphysx.missing_for(env_cfg, task.launcher_args),
    )


def _default_library(registered: isaaclab.Registered, usual: Agents) -> str:
    """Return the library of a training that names none, which trains the config that the task registers for it."""
    name = agent_configs.default_library(registered)
    if name in usual:
        other = usual[name].trained_by(plugins.library(name))
        return other if other in usual else name
    return name


def _without_unknown(task: Task, selectors: Selectors) -> Task:
    """Return a task without selectors that do not exist, so that its card can list the existing ones."""
    return dataclasses.replace(
        task,
        presets=tuple(name for name in task.presets if name in selectors.presets),
        physics=task.physics if task.physics in selectors.physics else None,
        renderer=task.renderer if task.renderer in selectors.renderer else None,
    )


def _workflow(env_cfg: Any) -> str:
    from isaaclab.envs import DirectMARLEnvCfg, ManagerBasedRLEnvCfg

    if isinstance(env_cfg, ManagerBasedRLEnvCfg):
        return "manager-based"
    return MULTI_AGENT if isinstance(env_cfg, DirectMARLEnvCfg) else "direct"


def _cameras(env_cfg: Any) -> dict[str, CameraCard]:
    return {
        name: CameraCard(data_types=tuple(cfg.data_types), width=cfg.width, height=cfg.height)
        for name, cfg in own_cameras(env_cfg).items()
    }


Agents: TypeAlias = dict[str, AgentCard]


def _agents(
    task: Task, registered: isaaclab.Registered, workflow: str, spaces: TaskSpaces
) -> tuple[Agents, Agents, Agents]:
    """Return each library's usual agent config, its generic one if that is another, and the named ones."""
    usual: Agents = {}
    generic: Agents = {}
    for name, library in plugins.libraries().items():
        if library.simulator and (workflow == MULTI_AGENT or not library.multi_agent):
            origin = agent_configs.origin_of(registered, library, None, spaces)
            own = agent_configs.origin_of(registered, library, GENERIC, spaces)
            if origin is not None:
                agent = _agent(task, registered, origin, unmet(library.requires))
                usual[name] = dataclasses.replace(
                    agent, needs_choice=agent_configs.needs_choice(registered, library, origin)
                )
            if own is not None and own != origin:
                generic[name] = _agent(task, registered, own, unmet(library.requires))
    named = {}
    for name in agent_configs.named_choices(registered):
        library = plugins.library(libraries_of(name, plugins.libraries())[0])
        if (origin := agent_configs.origin_of(registered, library, name)) is not None:
            named[name] = _agent(task, registered, origin, ())
    return usual, generic, named


def _agent(
    task: Task, registered: isaaclab.Registered, origin: agent_configs.AgentOrigin, missing: tuple[str, ...]
) -> AgentCard:
    card = AgentCard(source=str(origin), generic=origin.kind == "generic", missing=missing)
    try:
        agent_cfg = agent_configs.load(task, registered, origin)
    except Exception as exc:  # an error in one agent config must not hide the task
        return dataclasses.replace(card, error=f"{type(exc).__name__}: {exc}"[:500])
    return dataclasses.replace(
        card,
        fields=tree.fields(agent_cfg),
        takes_more=tuple(sorted(tree.dicts(agent_cfg))),
        openings=dict(tree.openings(agent_cfg)),
    )


def _assets(env_cfg: Any, root: AssetRoot) -> dict[str, Asset]:
    files = {}
    for name, places in sorted(assets.named_in(env_cfg, root).items()):
        exists = (Path(root.path) / name).is_file() if root.local else None
        fix = packs.fix(name, Path(root.path)) if exists is False else ""
        files[name] = Asset(path=f"{root.path}/{name}", exists=exists, fix=fix, places=places)
    return files


# -- soft bodies -----------------------------------------------------------------------------------------------------


TETRAHEDRA_EXTRA = 'extra == "tetrahedralization"'
"""Mark of the requirements of Isaac Lab with which it cuts a surface into tetrahedra, as ``pytetwild``."""
TETRAHEDRA_MODULE = "pytetwild"


def missing_for_soft_bodies(env_cfg: Any) -> tuple[str, ...]:
    """Return the requirements for the soft bodies of an env config that this interpreter does not have.

    A volume that is made of a shape is cut into tetrahedra when the env is made. A file may bring its own.

    Args:
        env_cfg: The env's config, with presets resolved.

    Returns:
        pip requirements; empty if none is missing.
    """
    from isaaclab.assets import DeformableObjectCfg

    holders = (vars(holder).values() for holder in (env_cfg.scene, env_cfg))
    bodies = [value for values in holders for value in values if isinstance(value, DeformableObjectCfg)]
    if not any(map(_is_cut, bodies)) or importlib.util.find_spec(TETRAHEDRA_MODULE) is not None:
        return ()
    every = importlib.metadata.requires("isaaclab") or ()
    return tuple(line.partition(";")[0].strip() for line in every if TETRAHEDRA_EXTRA in line)


def _is_cut(body: Any) -> bool:
    """Return whether a soft body is a volume that is made of a shape."""
    from isaaclab.sim.spawners.meshes import MeshCfg

    material = type(getattr(body.spawn, "physics_material", None)).__name__
    return isinstance(body.spawn, MeshCfg) and "Surface" not in material
