"""rlnb: reinforcement learning of robots with NVIDIA Isaac Lab, from a notebook.

Importing this does no work; every name below loads what it needs when it is first used.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "AssetPack": "rlnb.spec",
    "Backend": "rlnb.contracts",
    "Board": "rlnb.board",
    "CameraBudget": "rlnb.budget",
    "Catalog": "rlnb.catalog",
    "CheckError": "rlnb.errors",
    "Command": "rlnb.spec",
    "Comparison": "rlnb.comparison",
    "Evaluation": "rlnb.evaluation",
    "Finding": "rlnb.inspector",
    "Groups": "rlnb.grouping",
    "HostedJob": "rlnb.hosting",
    "HostedLauncher": "rlnb.launch.hosted",
    "Launcher": "rlnb.contracts",
    "LauncherType": "rlnb.spec",
    "Library": "rlnb.spec",
    "LocalLauncher": "rlnb.launch.local",
    "Manifest": "rlnb.spec",
    "NotFoundError": "rlnb.errors",
    "Panel": "rlnb.spec",
    "Policy": "rlnb.contracts",
    "Preview": "rlnb.frames",
    "Problem": "rlnb.spec",
    "Rendezvous": "rlnb.spec",
    "Resources": "rlnb.spec",
    "Result": "rlnb.spec",
    "RlnbError": "rlnb.errors",
    "Run": "rlnb.run",
    "RunError": "rlnb.errors",
    "Runs": "rlnb.listing",
    "ScalingStudy": "rlnb.scaling",
    "Scene": "rlnb.scene",
    "Simulator": "rlnb.warm",
    "Sweep": "rlnb.sweeping",
    "Task": "rlnb.spec",
    "TrainContext": "rlnb.contracts",
    "Tuner": "rlnb.tuning",
    "WorkerError": "rlnb.errors",
    "camera_budget": "rlnb.budget",
    "check": "rlnb.api",
    "compare": "rlnb.grouping",
    "compare_libraries": "rlnb.comparison",
    "export_module": "rlnb.worker.toolkit",
    "get_run": "rlnb.api",
    "get_sweep": "rlnb.sweeping",
    "hookimpl": "rlnb.hookspecs",
    "make_launcher": "rlnb.plugins",
    "options": "rlnb.settings",
    "preview": "rlnb.api",
    "random_state": "rlnb.worker.toolkit",
    "register": "rlnb.plugins",
    "render": "rlnb.rendering",
    "report": "rlnb.notebook.report",
    "restore_random_state": "rlnb.worker.toolkit",
    "runs": "rlnb.api",
    "scaling_study": "rlnb.scaling",
    "simulator": "rlnb.warm",
    "sweep": "rlnb.sweeping",
    "task": "rlnb.tasks",
    "task_card": "rlnb.cards",
    "tensorboard": "rlnb.board",
    "train": "rlnb.api",
    "tune": "rlnb.tuning",
    "verify_determinism": "rlnb.verify",
    "verify_sync": "rlnb.verify",
    "vet_checkpoint": "rlnb.worker.toolkit",
    "view": "rlnb.scene",
    "watch": "rlnb.notebook.live",
    "write_whole": "rlnb.worker.toolkit",
}

__all__ = sorted([*_WHERE, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
        globals()[name] = value
        return value
    if name.startswith("_") or importlib.util.find_spec(f"rlnb.{name}"):
        raise AttributeError(name)  # of a submodule this lets the import system look for it
    return _launcher(name)


def _launcher(name: str) -> Any:
    """Return the factory of a plugin's launcher, so that ``rlnb.slurm(...)`` works."""
    plugins = importlib.import_module("rlnb.plugins")
    known = plugins.launchers()
    if name not in known:
        from rlnb.errors import did_you_mean

        hint = did_you_mean(name, [*_WHERE, *known])
        raise AttributeError(f"rlnb has no {name!r}, and no launcher of that name is installed.{hint}")
    return plugins.load(known[name].factory)


def __dir__() -> list[str]:
    return __all__


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%%task`` and ``%rlnb``; called by ``%load_ext rlnb``."""
    from rlnb.line_magic import register
    from rlnb.notebook.magic import register_magics

    register_magics(ipython)
    register(ipython)
