"""Ranks in a container of Apptainer, Docker, Podman or Pyxis. Only Podman was run; the others are tested as text."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence

import rlnb
from rlnb.plugin import Command, Manifest, Problem
from rlnb_dask.docker import GPUS, VISIBLE

RUNTIMES = ("apptainer", "docker", "podman", "pyxis")
PASSED_ON = (
    *("PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", VISIBLE),
    *("OMP_NUM_THREADS", "RLNB_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"),
    *("CUDA_DEVICE_ORDER", "NVIDIA_DRIVER_CAPABILITIES", "RLNB_ROOT", "RLNB_MEET_S", "ISAACSIM_ASSET_ROOT"),
    "PYTHONSAFEPATH",
    *("ACCEPT_EULA", "OMNI_KIT_ACCEPT_EULA", "PRIVACY_CONSENT"),
)
"""Environment variables of a node that ranks read. Docker and Podman pass on only these, the command's own and those
that ``rlnb_dask.docker`` adds, and only if they are set. So NVIDIA's terms are accepted only if the user did so."""


def contained(command: Command, image: str, runtime: str, manifest: Manifest) -> Command:
    """Return the command wrapped in a container with access to the runs, the assets and the node's GPUs.

    Args:
        command: The agent's command outside a container.
        image: A file or a URL for Apptainer and Pyxis, an image name for Docker and Podman.
        runtime: One of ``RUNTIMES``.
        manifest: The manifest of the run.
    """
    folders = _folders(manifest)
    on_gpus = manifest.resources.device != "cpu"
    inside = command.argv if manifest.python else ("python", *command.argv[1:])
    if runtime == "apptainer":
        return dataclasses.replace(command, argv=(*_apptainer(folders, on_gpus), image, *inside))
    if runtime == "pyxis":
        return dataclasses.replace(command, argv=(*_pyxis(image, folders, command, manifest), *inside))
    around = _started_on_node(runtime, folders, on_gpus, command, manifest)
    return dataclasses.replace(command, argv=(*around, image, *inside))


def mount_problems(runtime: str, manifest: Manifest) -> Iterator[Problem]:
    """Yield a problem for each folder that a runtime cannot mount: it would read the name as several folders.

    Args:
        runtime: One of ``RUNTIMES``.
        manifest: The manifest of the run.
    """
    separators = ":" if runtime in ("docker", "podman") else ":,"
    for folder in _folders(manifest):
        if marks := sorted({*separators} & {*folder}):
            what = f"{folder} cannot be mounted in a container of {runtime}, because its name contains {marks[0]!r}."
            yield Problem(what=what, fix="Use a folder of runs, or of assets, with another name.")


def _folders(manifest: Manifest) -> Sequence[str]:
    """Return the folders of this machine that ranks in a container use: the runs and the assets."""
    candidates = (str(rlnb.options.folders.path), manifest.asset_root or os.environ.get("ISAACSIM_ASSET_ROOT"))
    return [folder for folder in candidates if folder and "://" not in folder]


def _apptainer(folders: Sequence[str], on_gpus: bool) -> Sequence[str]:
    """Return the Apptainer command, which passes on the whole environment, torchrun's variables included."""
    gpus = ("--nv",) if on_gpus else ()
    return ("apptainer", "exec", *gpus, *(argument for folder in folders for argument in ("--bind", folder)))


def _pyxis(image: str, folders: Sequence[str], command: Command, manifest: Manifest) -> Sequence[str]:
    """Return the command of a step of Slurm in a container. A step has the environment and the GPUs of its job."""
    return (
        *(_node_python(manifest), "-P", "-m", "rlnb_dask.pyxis", f"--container-image={image}"),
        f"--container-mounts={','.join(f'{folder}:{folder}' for folder in folders)}",
        *((f"--container-workdir={command.cwd}",) if command.cwd else ()),
    )


def _node_python(manifest: Manifest) -> str:
    """Return the interpreter of the nodes, outside containers."""
    return str(manifest.launcher_settings.get("python") or sys.executable)


def _started_on_node(
    runtime: str, folders: Sequence[str], on_gpus: bool, command: Command, manifest: Manifest
) -> Sequence[str]:
    """Return the command of Docker or Podman, with variables by name only: every user of a node can read arguments.

    ``--init`` forwards the signals that end a run; a rank running as the container's PID 1 would ignore them. Docker's
    daemon belongs to root, so the ranks get the user's id. Podman runs as the user, whose id is then the same inside.
    """
    uid = os.getuid()
    user = ("--userns=keep-id",) if runtime == "podman" and uid else (f"--user={uid}:{os.getgid()}",)
    return (
        *(_node_python(manifest), "-P", "-m", "rlnb_dask.docker", runtime),
        *((GPUS,) if on_gpus else ()),
        *("--rm", "--init", "--network=host", "--ipc=host"),
        *(*user, "--env=HOME=/tmp"),
        *(f"--volume={folder}:{folder}" for folder in folders),
        *((f"--workdir={command.cwd}",) if command.cwd else ()),
        *(f"--env={name}" for name in dict.fromkeys((*command.env, *PASSED_ON))),
    )
