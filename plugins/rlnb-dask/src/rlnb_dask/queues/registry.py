"""The list of the queues. Imports nothing from Dask, because every kernel reads this list."""

from __future__ import annotations

from rlnb.launchers import LauncherType, QueueTable

QUEUES: tuple[LauncherType, ...] = (
    LauncherType(
        name="slurm",
        factory="rlnb_dask.queues.slurm:Slurm",
        tables=(
            QueueTable(
                title="your jobs",
                argv=("squeue", "--me", "--noheader", "--format=%i|%j|%T|%M|%l|%D|%R"),
                columns=("job", "name", "state", "time", "limit", "nodes", "node or reason"),
            ),
            QueueTable(
                title="nodes",
                argv=("sinfo", "--noheader", "--Node", "--format=%N|%P|%T|%c|%m|%G"),
                columns=("node", "partition", "state", "cores", "MiB", "GPUs"),
            ),
        ),
    ),
    LauncherType(name="pbs", factory="rlnb_dask.queues.pbs:Pbs", tables=(QueueTable(title="jobs", argv=("qstat",)),)),
    LauncherType(name="sge", factory="rlnb_dask.queues.sge:Sge", tables=(QueueTable(title="jobs", argv=("qstat",)),)),
    LauncherType(name="lsf", factory="rlnb_dask.queues.lsf:Lsf", tables=(QueueTable(title="jobs", argv=("bjobs",)),)),
    LauncherType(
        name="htcondor",
        factory="rlnb_dask.queues.htcondor:HTCondor",
        tables=(QueueTable(title="jobs", argv=("condor_q",)),),
    ),
    LauncherType(name="oar", factory="rlnb_dask.queues.oar:Oar", tables=(QueueTable(title="jobs", argv=("oarstat",)),)),
)
