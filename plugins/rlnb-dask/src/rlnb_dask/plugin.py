"""The light half: which launchers there are."""

from __future__ import annotations

from rlnb import Command, LauncherType, Manifest, hookimpl

QUEUES = ("slurm", "pbs", "sge", "lsf", "htcondor", "oar")
LAUNCHERS = [
    *(LauncherType(name=name, factory=f"rlnb_dask.queues:{name}") for name in QUEUES),
    LauncherType(name="dask", factory="rlnb_dask.existing:dask"),
]


@hookimpl
def rlnb_launchers() -> list[LauncherType]:
    return LAUNCHERS


@hookimpl
def rlnb_wrap_command(command: Command, manifest: Manifest) -> Command | None:
    image = manifest.launcher_settings.get("container")
    if not image:
        return None
    from rlnb_dask.containers import contained

    return contained(command, image, manifest.launcher_settings["container_runtime"], manifest)
