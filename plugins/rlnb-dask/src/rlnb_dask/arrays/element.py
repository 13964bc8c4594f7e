"""``python -m rlnb_dask.arrays.element JOB_DIR``: start the agents of one element of an array, on its first node."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlnb.launchers import DetachedJob, make_launcher
from rlnb_dask.address import address, free_port
from rlnb_dask.arrays.launcher import ArrayQueueLauncher
from rlnb_dask.arrays.script import BEGIN_S

END_S = "SLURM_JOB_END_TIME"
"""Environment variable with the end of the job's walltime, in seconds since the epoch; Slurm sets it since 22.05."""


def element_argv(
    job: DetachedJob, launcher: ArrayQueueLauncher, environ: Mapping[str, str], master: str
) -> Sequence[str]:
    """Return the command that starts the agents of an element.

    Args:
        job: Job of the element.
        launcher: Its launcher.
        environ: Environment of the element.
        master: ``"host:port"`` of this node, for the rendezvous of several nodes.
    """
    agent = job.agent_argv(
        python=launcher.python,
        master=master if launcher.nodes > 1 else "",
        hang_after_s=launcher.hang_after_s,
        lifeline=False,
    )
    if (end_s := deadline_s(launcher, environ)) is not None:
        agent = [*agent, f"--deadline={end_s:.0f}"]
    if launcher.nodes == 1:
        return [*launcher.spread(), *agent]
    logs = f"{str(job.path).replace('%', '%%')}/node%t.log"
    lines = [*launcher.own_prologue(), 'exec "$@" --node="$SLURM_PROCID"']
    shell = ["bash", "-c", "\n".join(lines), "rlnb"]
    return [*launcher.spread(), f"--output={logs}", "--open-mode=append", *shell, *agent]


def deadline_s(launcher: ArrayQueueLauncher, environ: Mapping[str, str]) -> float | None:
    """Return the time at which the training has to stop, in seconds since the epoch; None without a walltime."""
    if environ.get(END_S, "").isdigit():
        return float(environ[END_S]) - launcher.grace_s
    return None if launcher.limit_s is None else float(environ[BEGIN_S]) + launcher.limit_s


def main() -> int:
    job = DetachedJob(Path(sys.argv[1]))
    launcher = make_launcher(job.manifest.launcher, job.manifest.launcher_settings)
    assert isinstance(launcher, ArrayQueueLauncher)
    argv = element_argv(job, launcher, os.environ, f"{address(launcher.interface)}:{free_port()}")
    if not launcher.spread():
        os.execvp(argv[0], [*argv])
    # Slurm signals this process and the agents at once. It has to outlive them, since its end ends the job.
    signal.signal(signal.SIGTERM, lambda *_: None)
    code = subprocess.run(argv, check=False).returncode
    return 0 if job.result else code or 1  # a job has failed in the queue if no agent could say how its run ended


if __name__ == "__main__":
    sys.exit(main())
