"""``dask worker`` under ``srun``, with a different worker name for each task of a job."""

import os
import sys

from rlnb_dask.quiet import QUIET

LEAVE_S = 1.0


def main() -> None:
    """Start a Dask worker, with this task's number appended to its name as dask-jobqueue expects."""
    # With setproctitle, Dask names the process "dask worker [...]". Slurm's proctrack/linuxproc cannot parse a name
    # with a space in /proc/PID/stat, and so neither signals nor kills such a process.
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
