"""``python -m rlnb_dask.pyxis OPTIONS``: ``srun`` on this node, inside a job, with Pyxis's options of a container.

Pyxis is a plugin of Slurm that runs a step in a container of enroot (https://github.com/NVIDIA/pyxis). The step shares
the resources of the job's first step, which runs the agent. Only the text of the command is tested.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from rlnb_dask.docker import replace_by


def step(options: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return the command of a step on this node.

    Args:
        options: Options of Pyxis, and the command in the container.
        env: Environment of a process of a Slurm job.
    """
    # Since 22.05, srun does not inherit the job's --cpus-per-task.
    cores = [f"--cpus-per-task={env['SLURM_CPUS_PER_TASK']}"] if "SLURM_CPUS_PER_TASK" in env else []
    node = f"--nodelist={env['SLURMD_NODENAME']}"
    # A job that was submitted with --export=NONE has SLURM_EXPORT_ENV, which srun obeys without this option.
    whole = ("--overlap", "--export=ALL", "--nodes=1", "--ntasks=1")
    return ["srun", *whole, node, "--cpu-bind=none", *cores, *options]


def main() -> None:
    """Replace this process by srun, which forwards signals to the step."""
    if "SLURMD_NODENAME" not in os.environ:
        sys.exit("This process is not part of a Slurm job. Pyxis runs only with rlnb.slurm(...).")
    replace_by(step(sys.argv[1:], os.environ))


if __name__ == "__main__":
    main()
