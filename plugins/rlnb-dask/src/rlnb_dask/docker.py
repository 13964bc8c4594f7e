"""``python -m rlnb_dask.docker PROGRAM ARGUMENTS``: ``docker run`` or ``podman run`` with what only the node knows.

That is the settings of NCCL and Gloo, and the GPUs of the job. Inside Slurm's cgroup, the GPUs of a job are numbered
from 0. Docker's daemon runs outside the cgroup, where these numbers are other GPUs. Podman knows GPUs by their names in
the node's Container Device Interface: ``nvidia-ctk cdi generate`` names them by UUID.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence

FAMILIES = re.compile(r"(NCCL|TORCH_NCCL|GLOO)_[A-Z0-9_]+")
"""Names of the settings of the libraries that connect the ranks. A prologue or a module of the node may set them."""
GPUS = "--gpus=all"
"""Argument after the program if the container needs GPUs. It becomes the UUIDs of the job's GPUs."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
LISTING = ("nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader")
"""Command that lists the GPUs of the job's cgroup, in the order in which queues number them."""
LISTING_S = 60.0
"""Seconds for the listing. Without persistence mode, the driver initialises each GPU first."""


def job_gpus(visible: str | None, listing: str) -> list[str]:
    """Return the UUIDs of the GPUs of a job.

    Args:
        visible: ``CUDA_VISIBLE_DEVICES``: indices or UUIDs; None for all GPUs in the listing.
        listing: Output of ``LISTING``.
    """
    uuids = dict(line.split(", ") for line in listing.splitlines())
    names = [name.strip() for name in visible.split(",")] if visible is not None else [*uuids]
    return [uuids.get(name, name) for name in names if name in uuids or name.startswith(("GPU-", "MIG-"))]


def gpu_arguments(program: str, gpus: Sequence[str]) -> list[str]:
    """Return the arguments that give GPUs to a container.

    Args:
        program: ``"docker"`` or ``"podman"``.
        gpus: UUIDs of the GPUs.
    """
    if program == "podman":
        return [f"--device=nvidia.com/gpu={gpu}" for gpu in gpus]
    # Docker splits the value at commas, except within quotes.
    return [f'--gpus="device={",".join(gpus)}"'] if gpus else []


def replace_by(argv: list[str]) -> None:
    """Replace this process by another program, or end it with the reason why that program cannot be started."""
    try:
        os.execvp(argv[0], argv)
    except OSError as exc:
        sys.exit(
            f"{argv[0]} cannot be started on this node: {exc.strerror}. Install it there, or use another "
            "container_runtime."
        )


def main() -> None:
    """Replace this process by the client of Docker or Podman, which forwards signals to the container."""
    options = [f"--env={name}" for name in os.environ if FAMILIES.fullmatch(name)]
    program, *arguments = sys.argv[1:]
    if arguments[0] == GPUS:
        try:
            answer = subprocess.run(LISTING, capture_output=True, text=True, timeout=LISTING_S, check=True)
        except (OSError, subprocess.SubprocessError) as exc:
            sys.exit(
                f"nvidia-smi cannot list the GPUs of this job: {exc}. Repair the driver on the node, or use Apptainer. "
                'Use device="cpu" for a job without GPUs.'
            )
        gpus = job_gpus(os.environ.get(VISIBLE), answer.stdout)
        os.environ[VISIBLE] = ",".join(gpus)  # the ranks get them in this order
        arguments[:1] = gpu_arguments(program, gpus)
    replace_by([program, "run", *options, *arguments])


if __name__ == "__main__":
    main()
