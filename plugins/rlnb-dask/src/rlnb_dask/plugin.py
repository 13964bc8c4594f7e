"""The hooks that need no heavy imports: the plugin's launchers, and the command of a run in a container."""

from __future__ import annotations

from rlnb.launchers import LauncherType
from rlnb.plugin import Command, Manifest, hookimpl
from rlnb_dask.queues.registry import QUEUES

LAUNCHERS = (*QUEUES, LauncherType(name="dask", factory="rlnb_dask.existing:ExistingCluster"))


@hookimpl
def rlnb_launchers() -> tuple[LauncherType, ...]:
    return LAUNCHERS


@hookimpl
def rlnb_wrap_command(command: Command, manifest: Manifest) -> Command | None:
    settings = manifest.launcher_settings
    if not settings.get("container"):
        return None
    from rlnb_dask.containers import contained

    return contained(command, str(settings["container"]), str(settings["container_runtime"]), manifest)
