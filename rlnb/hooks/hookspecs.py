"""Every hook that a plugin can implement, in the order of a run's life.

A plugin is a package with an entry point in the group ``rlnb``; its module marks functions with
``rlnb.plugin.hookimpl``. The hooks name objects, and the protocols in :mod:`rlnb.contracts` say what these objects do.
An object is named by a ``"module:attr"`` string, so that a process which only lists the names imports nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np

    from rlnb import Run
    from rlnb.contracts.libraries import Library
    from rlnb.contracts.plugin_types import AssetPack, LauncherType, Panel
    from rlnb.errors import Problem
    from rlnb.spec import Command, Manifest, Result, Task

hookspec = pluggy.HookspecMarker("rlnb")
hookimpl = pluggy.HookimplMarker("rlnb")
"""Decorator that marks a function or method as the implementation of the hook of the same name."""


# -- registration: called in the kernel and in every worker, so implementations must import nothing heavy ------------


@hookspec
def rlnb_libraries() -> Sequence[Library]:  # type: ignore[empty-body]
    """Return the RL libraries of this plugin."""


@hookspec
def rlnb_launchers() -> Sequence[LauncherType]:  # type: ignore[empty-body]
    """Return the launchers of this plugin. Each becomes available as ``rlnb.<name>(...)``."""


@hookspec
def rlnb_tasks() -> Sequence[Task]:  # type: ignore[empty-body]
    """Return the tasks of this plugin, and success functions for tasks of Isaac Lab.

    An entry for a registered task of Isaac Lab adds a success function to that task, so it must set ``success``. An
    entry for a task that the plugin trains without Isaac Lab must not set it.
    """


@hookspec
def rlnb_asset_packs() -> Sequence[AssetPack]:  # type: ignore[empty-body]
    """Return the asset packs of this plugin: robot and scene files that it can build without a download."""


# -- before a run: called by ``rlnb.train`` --------------------------------------------------------------------------


@hookspec
def rlnb_check(manifest: Manifest) -> Sequence[Problem]:  # type: ignore[empty-body]
    """Return every problem that would make a run fail.

    Called before any file is written. The user sees the problems of all plugins at once.

    Args:
        manifest: The run that would be started.
    """


@hookspec(firstresult=True)
def rlnb_wrap_command(command: Command, manifest: Manifest) -> Command | None:
    """Return the command to run in place of a job's own, e.g. inside a container.

    Called before each job of a run is submitted. The first result that is not None is used.

    Args:
        command: Command of the job.
        manifest: The run that the job belongs to.

    Returns:
        The new command; None leaves the command unchanged.
    """


# -- during a run: called in the worker ------------------------------------------------------------------------------


@hookspec
def rlnb_configure_env(env_cfg: Any, manifest: Manifest) -> None:
    """Change the resolved Isaac Lab env config in place. Called on every rank before the env is made.

    A hook that raises fails the run. ``run.started.plugins`` records the plugins with this hook.

    Args:
        env_cfg: Isaac Lab's env config, with the user's overrides set.
        manifest: The run that the env is made for.
    """


@hookspec
def rlnb_run_started(run_dir: Path, manifest: Manifest) -> None:
    """React to the start of a training. Called on rank 0 before the first iteration.

    A hook that raises does not end the training. The job's log names the plugin.

    Args:
        run_dir: Folder of the run.
        manifest: The run.
    """


@hookspec
def rlnb_run_finished(run_dir: Path, manifest: Manifest, result: Result) -> None:
    """React to the end of a training. Called on rank 0 after the result is on disk.

    Args:
        run_dir: Folder of the run.
        manifest: The run.
        result: Result of the training.
    """


# -- showing a run: called in the kernel -----------------------------------------------------------------------------


@hookspec(firstresult=True)
def rlnb_colorize(frames: np.ndarray, data_type: str) -> np.ndarray | None:
    """Return camera frames as RGB pictures.

    The first result that is not None is used, before rlnb's own colours.

    Args:
        frames: Frames of one camera output, shape (N, H, W, C).
        data_type: Isaac Lab's name of the output, e.g. ``"distance_to_camera"``.

    Returns:
        Pictures, uint8 of shape (N, H, W, 3); None leaves the frames to other plugins and to rlnb.
    """


@hookspec
def rlnb_panels(run: Run) -> Sequence[Panel] | None:
    """Return further figures of a run; None if there are none.

    They appear below the curves of ``run.watch()`` once the run has ended, in the run's report, and in the run's tab in
    JupyterLab.

    Args:
        run: The run.
    """
