"""The job of a queue that runs this process, for a host that submits jobs itself."""

from __future__ import annotations

from collections.abc import MutableMapping


def forget_own_job(environ: MutableMapping[str, str]) -> None:
    """Remove the variables of the Slurm job that runs this process; jobs submitted here would inherit its limits."""
    if "SLURM_JOB_ID" not in environ:  # SLURM_CLUSTERS, for example, may be the user's own choice
        return
    for name in [name for name in environ if name.startswith("SLURM_") and name != "SLURM_CONF"]:
        del environ[name]
