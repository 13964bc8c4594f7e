"""``dask worker`` under ``srun``, with a different worker name for each task of a job."""

import math
import os
import sys
from pathlib import Path

from rlnb_dask.quiet import QUIET

LEAVE_S = 1.0
SILENT_S = 60.0
"""Seconds without a heartbeat of the host after which it counts as gone."""
JOB = "RLNB_JOB_DIR"
"""Variable with the folder of the worker's job."""


def main() -> None:
    """Start a Dask worker, with this task's number appended to its name as dask-jobqueue expects.

    A job may start long after its host has died. Its nodes are given back then, rather than wait for a minute.
    """
    folder = os.environ.pop(JOB, None)
    if folder and host_is_gone(Path(folder)):
        sys.exit("The host of this training is gone, so the node is given back.")
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


def host_is_gone(job_dir: Path) -> bool:
    """Return whether the host of a job has written its heartbeat, and not for a minute."""
    from rlnb.launchers import DetachedLauncher

    return SILENT_S < DetachedLauncher().host_silence_s(job_dir) < math.inf


if __name__ == "__main__":
    main()
