"""Every hook a plugin can implement, in the order of a run's life.

A plugin is a package with an entry point in the group ``rlnb``; its module marks functions with
``rlnb.hookimpl``. Hooks find things, and small protocols in :mod:`rlnb.contracts` do the work. A
``"module:attr"`` string keeps the heavy half out of processes that must stay light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np

    from rlnb import Run
    from rlnb.errors import Problem
    from rlnb.spec import AssetPack, Command, LauncherType, Library, Manifest, Panel, Result, Task

hookspec = pluggy.HookspecMarker("rlnb")
hookimpl = pluggy.HookimplMarker("rlnb")


# -- registration: called in the kernel and in every worker, so it must import nothing heavy -----


@hookspec
def rlnb_libraries() -> Sequence[Library]:  # type: ignore[empty-body]
    """Return the RL libraries that this plugin brings."""


@hookspec
def rlnb_launchers() -> Sequence[LauncherType]:  # type: ignore[empty-body]
    """Return the launchers that this plugin brings; each becomes ``rlnb.<name>(...)``."""


@hookspec
def rlnb_tasks() -> Sequence[Task]:  # type: ignore[empty-body]
    """Return the tasks that this plugin brings, and success functions for registered tasks of Isaac Lab."""


@hookspec
def rlnb_asset_packs() -> Sequence[AssetPack]:  # type: ignore[empty-body]
    """Return the folders of robot and scene files that this plugin can build offline."""


# -- before a run: called by ``rlnb.train`` ---------------------------------------------------------


@hookspec
def rlnb_check(manifest: Manifest) -> Sequence[Problem]:  # type: ignore[empty-body]
    """Return every problem that would make this run fail. Called before any file is written; all are shown."""


@hookspec(firstresult=True)
def rlnb_wrap_command(command: Command, manifest: Manifest) -> Command | None:
    """Return the command to run instead, e.g. inside a container; None leaves it as it is."""


# -- during a run: called in the worker ---------------------------------------------------------------


@hookspec
def rlnb_configure_env(env_cfg: Any, manifest: Manifest) -> None:
    """Change the resolved Isaac Lab env config in place. Called on every rank before the env is made."""


@hookspec
def rlnb_run_started(run_dir: Path, manifest: Manifest) -> None:
    """React to the start of training. Called on rank 0 before the first iteration."""


@hookspec
def rlnb_run_finished(run_dir: Path, manifest: Manifest, result: Result) -> None:
    """React to the end of training. Called on rank 0 after the result is on disk."""


# -- showing it: called in the kernel ---------------------------------------------------------------


@hookspec(firstresult=True)
def rlnb_colorize(frames: np.ndarray, data_type: str) -> np.ndarray | None:
    """Return pictures of camera frames, uint8 of shape (N, H, W, 3), or None to pass."""


@hookspec
def rlnb_panels(run: Run) -> Sequence[Panel]:  # type: ignore[empty-body]
    """Return further figures of a run: below the curves of ``run.watch()`` once it has ended, and in the report."""
