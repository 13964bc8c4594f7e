"""The task card: what a task is made of, for a kernel that cannot import it."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from rlnb import plugins
from rlnb.spec import CARD_SCHEMA, MULTI_AGENT, Task
from rlnb.worker.assets import packs
from rlnb.worker.assets import root as assets
from rlnb.worker.cameras.rig import own_cameras
from rlnb.worker.isaac import config, isaaclab


def card(task: Task, asset_root: str | None) -> dict[str, Any]:
    """Resolve a task and describe it.

    Returns:
        ``gym_id``, ``workflow``, ``num_envs``, ``fields`` (dotted path to type and value), ``presets``
        (by selector), ``cameras`` (name to data types and size), ``agents`` (library to fields and
        missing packages),
        ``assets`` (path to where it resolves, and whether it is there), ``success``, ``versions``.
    """
    begun = time.monotonic()
    root = isaaclab.start(asset_root)
    registered = isaaclab.register(task)
    with contextlib.redirect_stdout(io.StringIO()):  # Isaac Lab prints a line per config
        presets = isaaclab.preset_names(registered.gym_id)
        task = _without_unknown(task, presets)
        env_cfg, _ = isaaclab.resolve(task, registered, None)
        agents = _agents(task, registered, _workflow(env_cfg))
    return {
        "schema": CARD_SCHEMA,
        "task": task.id,
        "gym_id": registered.gym_id,
        "workflow": _workflow(env_cfg),
        "num_envs": env_cfg.scene.num_envs,
        "episode_length_s": getattr(env_cfg, "episode_length_s", None),
        "fields": _fields(env_cfg),
        "presets": presets,
        "cameras": _cameras(env_cfg),
        "agents": agents,
        "assets": _assets(env_cfg, root),
        "asset_root": {"path": root.path, "reason": root.reason},
        "success": registered.success is not None,
        "versions": isaaclab.versions(),
        "seconds": round(time.monotonic() - begun, 3),
    }


def _without_unknown(task: Task, presets: dict[str, list[str]]) -> Task:
    """Drop selectors that do not exist, so that a card can be made that tells what does."""
    return dataclasses.replace(
        task,
        presets=tuple(name for name in task.presets if name in presets["presets"]),
        physics=task.physics if task.physics in presets["physics"] else None,
        renderer=task.renderer if task.renderer in presets["renderer"] else None,
    )


def _fields(cfg: Any) -> dict[str, dict[str, Any]]:
    found = {path: {"type": config.kind(value), "value": _plain(value)} for path, value in config.leaves(cfg)}
    for path, field in found.items():
        if path.endswith(".weight") and field["type"] == "int":  # of a reward term: Isaac Lab takes any number
            field["type"] = "float"
    return found


def _plain(value: Any) -> Any:
    """Return a JSON value; what JSON has no word for (MISSING, classes in lists) by its repr."""
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


def _cameras(env_cfg: Any) -> dict[str, dict[str, Any]]:
    return {
        name: {"data_types": list(cfg.data_types), "width": cfg.width, "height": cfg.height}
        for name, cfg in own_cameras(env_cfg).items()
    }


def _agents(task: Task, registered: isaaclab.Registered, workflow: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, library in plugins.libraries().items():
        if library.simulator and (workflow == MULTI_AGENT or not library.multi_agent):
            try:
                agent_cfg = isaaclab.resolve_agent(task, registered, library)
            except Exception as exc:  # an agent config of another library must not hide the task
                found[name] = {"error": f"{type(exc).__name__}: {exc}"[:500]}
                continue
            if agent_cfg is not None:
                found[name] = {
                    "fields": _fields(agent_cfg),
                    "takes_more": sorted(config.dicts(agent_cfg)),
                    "missing": _missing(library.requires),
                }
    return found


def _missing(requirements: Sequence[str]) -> list[str]:
    """Return the requirements that this interpreter does not meet, with what it has."""
    missing = []
    for requirement in map(Requirement, requirements):
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(f"{requirement} (not installed)")
        else:
            if version not in requirement.specifier:
                missing.append(f"{requirement} (installed: {version})")
    return missing


def _assets(env_cfg: Any, root: assets.AssetRoot) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name in sorted(assets.named_in(env_cfg, root)):
        there = (Path(root.path) / name).is_file() if root.local else None
        found[name] = {"path": f"{root.path}/{name}", "there": there}
        if there is False:
            found[name]["fix"] = packs.fix(name, Path(root.path))
    return found
