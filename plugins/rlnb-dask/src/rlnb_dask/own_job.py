"""The job of a queue that runs this process, for a host that submits jobs itself."""

from __future__ import annotations

from collections.abc import MutableMapping


def forget_own_job(environ: MutableMapping[str, str]) -> None:
    """Remove the variables of the Slurm job that runs this process; jobs submitted here would inherit its limits."""
    for name in [name for name in environ if name.startswith("SLURM_") and name != "SLURM_CONF"]:
        del environ[name]
