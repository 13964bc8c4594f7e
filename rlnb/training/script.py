"""The interpreter of a training script, which may have another Python and another Isaac Lab than rlnb."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil

from rlnb.contracts.launchers import Launcher
from rlnb.doctor.interpreter import TIMEOUT_S, look
from rlnb.errors import Problem
from rlnb.launch.command import interpreter
from rlnb.launch.local import LocalLauncher
from rlnb.spec import Manifest

PACKAGES = ("isaaclab", "isaacsim", "torch")
"""Packages of the script's interpreter whose versions a manifest records."""


def with_interpreter(manifest: Manifest, launcher: Launcher) -> tuple[Manifest, list[Problem]]:
    """Return a script's manifest with the versions in its interpreter, and a problem if there is no such interpreter.

    An interpreter that only the nodes of a cluster have is not a problem. Its versions are unknown.

    Args:
        manifest: Manifest of the script's run.
        launcher: Launcher of the run.
    """
    if manifest.python is None:  # the interpreter of this process
        return manifest, []
    versions = {name: version for name, version in manifest.versions.items() if name != "python"}
    executable, *options = interpreter(manifest.python)
    if os.sep in executable:  # the script runs in another folder
        executable = os.path.abspath(executable)
        manifest = dataclasses.replace(manifest, python=shlex.join([executable, *options]))
    if shutil.which(executable) is None:
        problem = Problem(
            what=f"python={manifest.python!r} is not an executable on this machine.",
            fix='Use python="/path/to/python" or python="/path/to/isaaclab.sh -p".',
        )
        problems = [problem] if isinstance(launcher, LocalLauncher) else []
        return dataclasses.replace(manifest, versions=versions), problems
    worker = look(manifest.python, TIMEOUT_S)
    if not worker.error:  # a slow one may still start the script
        versions["python"] = worker.python
        versions |= {name: version for name in PACKAGES if (version := worker.version(name)) is not None}
    return dataclasses.replace(manifest, versions=versions), []
