"""Say once which physics engine is faster, if a task supports Newton and PhysX and the user has chosen neither."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import socket
from collections.abc import Mapping
from pathlib import Path

from rlnb.display.status import status
from rlnb.errors import RlnbError
from rlnb.machine.cores import available
from rlnb.settings import Root, options
from rlnb.simulation import simulator
from rlnb.spec import Manifest
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.tasks import requests
from rlnb.tasks.card import TaskCard
from rlnb.training.plan import Plan


def say_faster(plan: Plan) -> None:
    """Say which of a plan's physics engines is faster on this machine; the plan keeps the task's default.

    The speeds are measured once for each task and number of envs, in the living simulator. A later session reads them
    from a file below ``cards/``. Without a living simulator nothing is measured.
    """
    names, manifest = plan.engines, plan.manifest
    if not options.compare_physics:
        return
    if manifest.resources.world_size > 1 or any(path.startswith("sim.physics.") for path in manifest.task.overrides):
        return  # several ranks share the cores, and the values of one engine do not fit the other
    path = _path(plan.root, manifest, plan.card)
    record = files.read_json(path) or {}
    speeds = {name: float(speed) for name in names if isinstance(speed := record.get(name), int | float)}
    if not speeds and options.warm:
        speeds = dict(_measure(manifest, names))
        if speeds:  # a failure is no result; a later training may measure again
            files.make_folder(path.parent)
            files.write_once(path, speeds)
    if {*names} <= speeds.keys():
        num_envs = manifest.task.num_envs or (plan.card.num_envs if plan.card else 1)
        files.warn_once(comparison_line(manifest.task.id, num_envs, names[0], speeds))


def comparison_line(task: str, num_envs: int, default: str, speeds: Mapping[str, float]) -> str:
    """Return the line that names the faster engine.

    Args:
        task: Id of the task.
        num_envs: Number of envs.
        default: The task's default engine, which the training uses.
        speeds: Env steps per second by name of the engine.
    """
    fast, slow = sorted(speeds, key=lambda name: -speeds[name])
    ratio = f"{speeds[fast]:,.0f} against {speeds[slow]:,.0f} env steps/s with random actions, {num_envs} envs"
    choice = "which this training uses" if fast == default else f"but this training uses {slow}, the task's default"
    fix = "" if fast == default else f" Use rlnb.task({task!r}, physics={fast!r}) for the faster one."
    return f"The faster physics of {task} on this machine is {fast} ({ratio}), {choice}.{fix}"


def _measure(manifest: Manifest, names: tuple[str, ...]) -> Mapping[str, float]:
    request = requests.Engines(task=manifest.task, names=names, device=manifest.resources.device)
    try:
        with status(f"Measuring which physics is faster for {manifest.task.id}: {' or '.join(names)} (once)"):
            return simulator.request(request, manifest.python, manifest.asset_root).steps_per_s
    except RlnbError as exc:  # the training itself may still work
        files.warn_once(f"The speed of {' and '.join(names)} could not be measured: {exc}")
        return {}


def _path(root: Root, manifest: Manifest, card: TaskCard | None) -> Path:
    parts = {
        "machine": [socket.gethostname(), available().each(1)],
        "task": dataclasses.replace(manifest.task, source=None),
        "device": manifest.resources.device,
        "python": manifest.python,
        "versions": card.versions if card else {},
        "asset_root": card.asset_root.path if card else "",
    }
    key = hashlib.sha256(json.dumps(to_json(parts), sort_keys=True).encode()).hexdigest()
    return root.cards / f"engines-{key[:24]}.json"
