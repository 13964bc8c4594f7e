"""Ranks in a container of Apptainer or Docker; not tried with an image of Isaac Lab."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

import rlnb
from rlnb import Command, Manifest

RUNTIMES = ("apptainer", "docker")
PASSED_ON = (
    *("PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"),
    *("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_DEBUG", "NCCL_IB_DISABLE", "RLNB_ROOT", "RLNB_MEET_S"),
    "ISAACSIM_ASSET_ROOT",
)
"""Variables of a node that ranks read; Docker passes no others on."""


def contained(command: Command, image: str, runtime: str, manifest: Manifest) -> Command:
    """Return the command inside a container that sees the runs, the assets, and the node's GPUs.

    Args:
        command: The agent's command outside of a container.
        image: For Apptainer a file or an address, for Docker the name of an image.
        runtime: One of ``RUNTIMES``.
        manifest: The manifest of the run.
    """
    assets = manifest.asset_root or os.environ.get("ISAACSIM_ASSET_ROOT")
    candidates = (str(rlnb.options.folders.path), assets)
    folders = [folder for folder in candidates if folder and "://" not in folder]
    on_gpus = manifest.resources.device != "cpu"
    inside = command.argv if manifest.python else ("python", *command.argv[1:])
    around = _apptainer(folders, on_gpus) if runtime == "apptainer" else _docker(folders, on_gpus, command)
    return dataclasses.replace(command, argv=(*around, image, *inside))


def _apptainer(folders: Sequence[str], on_gpus: bool) -> Sequence[str]:
    """Return the command of Apptainer, which passes on the environment, and with it torchrun's variables."""
    gpus = ("--nv",) if on_gpus else ()
    return ("apptainer", "exec", *gpus, *(argument for folder in folders for argument in ("--bind", folder)))


def _docker(folders: Sequence[str], on_gpus: bool, command: Command) -> Sequence[str]:
    """Return the command of Docker, which names variables without values, since every user sees its arguments.

    ``--init`` hands the signals on that end a run; a rank alone, as the container's first process, would ignore them.
    """
    return (
        *("docker", "run", "--rm", "--init", "--network=host", "--ipc=host"),
        *(f"--user={os.getuid()}:{os.getgid()}", "--env=HOME=/tmp"),
        *(("--gpus=all",) if on_gpus else ()),
        *(f"--volume={folder}:{folder}" for folder in folders),
        *((f"--workdir={command.cwd}",) if command.cwd else ()),
        *(f"--env={name}" for name in dict.fromkeys((*command.env, *PASSED_ON))),
    )
