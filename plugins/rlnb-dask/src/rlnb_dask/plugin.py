"""The light half: which launchers there are."""

from rlnb import LauncherType, hookimpl

QUEUES = ("slurm", "pbs", "sge", "lsf", "htcondor", "oar")
LAUNCHERS = [
    *(LauncherType(name=name, factory=f"rlnb_dask.queues:{name}") for name in QUEUES),
    LauncherType(name="dask", factory="rlnb_dask.existing:dask"),
]


@hookimpl
def rlnb_launchers() -> list[LauncherType]:
    return LAUNCHERS
