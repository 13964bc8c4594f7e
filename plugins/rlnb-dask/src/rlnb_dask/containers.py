"""Ranks in an Apptainer or Docker container. Not tested with an Isaac Lab image."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence

import rlnb
from rlnb import Command, Manifest
from rlnb_dask.docker import GPUS, VISIBLE

RUNTIMES = ("apptainer", "docker")
PASSED_ON = (
    *("PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", VISIBLE, "OMP_NUM_THREADS"),
    *("CUDA_DEVICE_ORDER", "NVIDIA_DRIVER_CAPABILITIES", "RLNB_ROOT", "RLNB_MEET_S", "ISAACSIM_ASSET_ROOT"),
    *("ACCEPT_EULA", "OMNI_KIT_ACCEPT_EULA", "PRIVACY_CONSENT"),
)
"""Environment variables of a node that ranks read. Docker passes on only these, the command's own and those that
``rlnb_dask.docker`` adds, and only if they are set. NVIDIA's terms are thus accepted only if the user has done so."""


def contained(command: Command, image: str, runtime: str, manifest: Manifest) -> Command:
    """Return the command wrapped in a container with access to the runs, the assets and the node's GPUs.

    Args:
        command: The agent's command outside a container.
        image: A file or a URL for Apptainer, an image name for Docker.
        runtime: One of ``RUNTIMES``.
        manifest: The manifest of the run.
    """
    assets = manifest.asset_root or os.environ.get("ISAACSIM_ASSET_ROOT")
    candidates = (str(rlnb.options.folders.path), assets)
    folders = [folder for folder in candidates if folder and "://" not in folder]
    on_gpus = manifest.resources.device != "cpu"
    inside = command.argv if manifest.python else ("python", *command.argv[1:])
    around = _apptainer(folders, on_gpus) if runtime == "apptainer" else _docker(folders, on_gpus, command, manifest)
    return dataclasses.replace(command, argv=(*around, image, *inside))


def _apptainer(folders: Sequence[str], on_gpus: bool) -> Sequence[str]:
    """Return the Apptainer command, which passes on the whole environment, torchrun's variables included."""
    gpus = ("--nv",) if on_gpus else ()
    return ("apptainer", "exec", *gpus, *(argument for folder in folders for argument in ("--bind", folder)))


def _docker(folders: Sequence[str], on_gpus: bool, command: Command, manifest: Manifest) -> Sequence[str]:
    """Return the Docker command, with variables by name only, because every user of the node can read its arguments.

    ``--init`` forwards the signals that end a run; a rank running as the container's PID 1 would ignore them.
    """
    return (
        *(str(manifest.launcher_settings.get("python") or sys.executable), "-m", "rlnb_dask.docker"),
        *((GPUS,) if on_gpus else ()),
        *("--rm", "--init", "--network=host", "--ipc=host"),
        *(f"--user={os.getuid()}:{os.getgid()}", "--env=HOME=/tmp"),
        *(f"--volume={folder}:{folder}" for folder in folders),
        *((f"--workdir={command.cwd}",) if command.cwd else ()),
        *(f"--env={name}" for name in dict.fromkeys((*command.env, *PASSED_ON))),
    )
