"""Ranks in a container of Apptainer; not tried with an image of Isaac Lab."""

from __future__ import annotations

import dataclasses

import rlnb
from rlnb import Command, Manifest


def apptainer(command: Command, image: str, manifest: Manifest) -> Command:
    """Return the command inside a container that sees the runs, the assets, and the node's GPUs.

    What torchrun hears from the environment reaches it: Apptainer passes that on, where it is not told otherwise.

    Args:
        command: What the agent would run.
        image: Image file, or its address.
        manifest: Of the run.
    """
    folders = (str(rlnb.options.folders.path), manifest.asset_root)
    binds = [word for folder in folders if folder and "://" not in folder for word in ("--bind", folder)]
    gpus = () if manifest.resources.device == "cpu" else ("--nv",)
    inside = command.argv if manifest.python else ("python", *command.argv[1:])
    return dataclasses.replace(command, argv=("apptainer", "exec", *gpus, *binds, image, *inside))
