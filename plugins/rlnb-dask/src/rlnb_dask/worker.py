"""``dask worker`` under ``srun``: each task of a job needs a name of its own."""

import os
import sys

from rlnb_dask.quiet import QUIET

LEAVE_S = 1.0


def main() -> None:
    """Start Dask's worker with the number of this task behind its name, as dask-jobqueue counts them."""
    # Dask would name the process "dask worker [...]". Slurm's proctrack/linuxproc cannot read a name with a space in
    # /proc/PID/stat, and so neither signals nor kills such a process.
    sys.modules["setproctitle"] = None  # type: ignore[assignment]
    import dask

    from rlnb_dask.node import LEAVE_AFTER_S

    dask.config.set({**QUIET, LEAVE_AFTER_S: LEAVE_S})
    from distributed.cli.dask_worker import main as dask_worker

    argv = sys.argv
    if "--name" in argv and "SLURM_STEP_NUM_TASKS" in os.environ and int(os.environ["SLURM_STEP_NUM_TASKS"]) > 1:
        argv[argv.index("--name") + 1] += f"-{os.environ['SLURM_PROCID']}"
    dask_worker()


if __name__ == "__main__":
    main()
