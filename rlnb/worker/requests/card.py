"""The task card: the description of a task for a kernel, which cannot import the task."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from rlnb import plugins
from rlnb.spec import MULTI_AGENT, Json, Task
from rlnb.tasks.card import AgentCard, Asset, AssetRoot, CameraCard, ConfigField, Fields, Kind, Selectors, TaskCard
from rlnb.worker.assets import packs
from rlnb.worker.assets import root as assets
from rlnb.worker.cameras.rig import own_cameras
from rlnb.worker.isaac import config, isaaclab, kit
from rlnb.worker.isaac.success import source_in_config


def card(task: Task, root: AssetRoot) -> TaskCard:
    """Resolve a task and describe it.

    Args:
        task: The task.
        root: The asset root of this process.
    """
    registered = isaaclab.register(task)
    with contextlib.redirect_stdout(io.StringIO()):  # Isaac Lab prints a line per config
        selectors = isaaclab.preset_names(registered.gym_id)
        task = _without_unknown(task, selectors)
        env_cfg, _ = isaaclab.resolve(task, registered, None)
        agents = _agents(task, registered, _workflow(env_cfg))
    return TaskCard(
        task=task.id,
        gym_id=registered.gym_id,
        workflow=_workflow(env_cfg),
        num_envs=env_cfg.scene.num_envs,
        fields=_fields(env_cfg),
        success=source_in_config(registered, env_cfg),
        presets=selectors,
        cameras=_cameras(env_cfg),
        agents=agents,
        assets=_assets(env_cfg, root),
        asset_root=root,
        versions=isaaclab.versions(),
        isaac_sim=kit.missing_for(env_cfg, task.launcher_args),  # last, since it changes the config
    )


def _without_unknown(task: Task, selectors: Selectors) -> Task:
    """Return a task without selectors that do not exist, so that its card can list the existing ones."""
    return dataclasses.replace(
        task,
        presets=tuple(name for name in task.presets if name in selectors.presets),
        physics=task.physics if task.physics in selectors.physics else None,
        renderer=task.renderer if task.renderer in selectors.renderer else None,
    )


def _fields(cfg: Any) -> Fields:
    return {path: ConfigField(type=_kind(path, value), value=_plain(value)) for path, value in config.leaves(cfg)}


def _kind(path: str, value: Any) -> Kind:
    kind = config.kind(value)
    # Isaac Lab accepts any number as the weight of a reward term.
    return "float" if kind == "int" and path.endswith(".weight") else kind


def _plain(value: Any) -> Json:
    """Return a JSON value; the ``repr`` of a value that JSON cannot hold (MISSING, classes in lists)."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return repr(value)[:200]


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


def _agents(task: Task, registered: isaaclab.Registered, workflow: str) -> dict[str, AgentCard]:
    cards = {}
    for name, library in plugins.libraries().items():
        if library.simulator and (workflow == MULTI_AGENT or not library.multi_agent):
            try:
                agent_cfg = isaaclab.resolve_agent(task, registered, library)
            except Exception as exc:  # an error in one library's agent config must not hide the task
                cards[name] = AgentCard(error=f"{type(exc).__name__}: {exc}"[:500])
                continue
            if agent_cfg is not None:
                cards[name] = AgentCard(
                    fields=_fields(agent_cfg),
                    takes_more=tuple(sorted(config.dicts(agent_cfg))),
                    missing=_missing(library.requires),
                )
    return cards


def _missing(requirements: Sequence[str]) -> tuple[str, ...]:
    """Return the requirements that this interpreter does not meet, with the installed versions."""
    missing = []
    for requirement in map(Requirement, requirements):
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(f"{requirement} (not installed)")
        else:
            if version not in requirement.specifier:
                missing.append(f"{requirement} (installed: {version})")
    return tuple(missing)


def _assets(env_cfg: Any, root: AssetRoot) -> dict[str, Asset]:
    files = {}
    for name in sorted(assets.named_in(env_cfg, root)):
        exists = (Path(root.path) / name).is_file() if root.local else None
        fix = packs.fix(name, Path(root.path)) if exists is False else ""
        files[name] = Asset(path=f"{root.path}/{name}", exists=exists, fix=fix)
    return files
