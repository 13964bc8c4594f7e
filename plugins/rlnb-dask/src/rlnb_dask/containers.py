"""Ranks in a container of Apptainer or Docker; not tried with an image of Isaac Lab."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

import rlnb
from rlnb import Command, Manifest

RUNTIMES = ("apptainer", "docker")
HEARD = (
    *("PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"),
    *("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_DEBUG", "NCCL_IB_DISABLE", "RLNB_ROOT", "RLNB_MEET_S"),
    "ISAACSIM_ASSET_ROOT",
)
"""Variables of a node that ranks go by, where they are set; Docker lets no other in."""


def contained(command: Command, image: str, runtime: str, manifest: Manifest) -> Command:
    """Return the command inside a container that sees the runs, the assets, and the node's GPUs.

    Args:
        command: What the agent would run.
        image: Image: of Apptainer a file, or an address; of Docker its name.
        runtime: One of ``RUNTIMES``.
        manifest: Of the run.
    """
    assets = manifest.asset_root or os.environ.get("ISAACSIM_ASSET_ROOT")
    folders = [folder for folder in (str(rlnb.options.folders.path), assets) if folder]
    seen = [folder for folder in folders if "://" not in folder]
    on_gpus = manifest.resources.device != "cpu"
    inside = command.argv if manifest.python else ("python", *command.argv[1:])
    around = _apptainer(seen, on_gpus) if runtime == "apptainer" else _docker(seen, on_gpus, command)
    return dataclasses.replace(command, argv=(*around, image, *inside))


def _apptainer(seen: Sequence[str], on_gpus: bool) -> Sequence[str]:
    """What torchrun hears from the environment reaches it: Apptainer passes that on, if it is not told otherwise."""
    gpus = ("--nv",) if on_gpus else ()
    return ("apptainer", "exec", *gpus, *(word for folder in seen for word in ("--bind", folder)))


def _docker(seen: Sequence[str], on_gpus: bool, command: Command) -> Sequence[str]:
    """Variables are passed on by name, so that no value stands in a list of processes.

    ``--init`` hands the signals on that end a run; a rank alone, as the container's first process, would ignore them.
    """
    return (
        *("docker", "run", "--rm", "--init", "--network=host", "--ipc=host"),
        *(f"--user={os.getuid()}:{os.getgid()}", "--env=HOME=/tmp"),
        *(("--gpus=all",) if on_gpus else ()),
        *(f"--volume={folder}:{folder}" for folder in seen),
        *((f"--workdir={command.cwd}",) if command.cwd else ()),
        *(f"--env={name}" for name in dict.fromkeys((*command.env, *HEARD))),
    )
