"""A training script: its task, and its interpreter, which may have another Python and Isaac Lab than rlnb."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rlnb.contracts.launchers import Launcher
from rlnb.doctor.interpreter import TIMEOUT_S, look
from rlnb.errors import CheckError, Problem
from rlnb.launch.command import interpreter
from rlnb.launch.local import LocalLauncher
from rlnb.spec import Json, Manifest, Task
from rlnb.storage import files
from rlnb.storage.files import source_hash

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


# -- script ----------------------------------------------------------------------------------------------------------


OFTEN_ITS = ("task", "max_iterations", "seed", "num_envs", "device", "deterministic")
"""Arguments of ``rlnb.train`` that many training scripts have too."""


def script_task(script: str | Path, args: Sequence[str], refused: Mapping[str, Json]) -> Task:
    """Return the task of a training script, named by its ``--task`` argument or else by its file.

    Args:
        script: Path of the script.
        args: Arguments of the script.
        refused: Arguments of ``rlnb.train`` that a script cannot use, by name; None for an argument that was not given.

    Raises:
        CheckError: The file does not exist, an argument is not a string, or an argument in ``refused`` was given.
    """
    if not isinstance(script, str | Path):
        raise CheckError("script", [Problem(what=f"script={script!r} is not a path.", fix='script="train.py"')])
    path = Path(script).absolute()
    if problems := list(_problems(path, args, refused)):
        raise CheckError(f"script {script}", problems)
    names = [word.removeprefix("--task=") for word in args if word.startswith("--task=")]
    names += [value for word, value in itertools.pairwise(args) if word == "--task"]
    return Task(id=names[0] if names else path.stem, source=str(path), source_sha256=source_hash(path.read_bytes()))


def _problems(path: Path, args: Sequence[str], refused: Mapping[str, Json]) -> Iterator[Problem]:
    if not files.there(path) or not path.is_file():
        yield Problem(what=f"the script {path} does not exist.")
    if isinstance(args, str) or not isinstance(args, Sequence) or not all(isinstance(word, str) for word in args):
        yield Problem(what=f"args={args!r} is not a list of strings.", fix='args=["--num_envs", "64"]')
    for name, value in refused.items():
        if value is not None:
            words = f'"--{name}"' if value is True else f'"--{name}", "{value}"'
            yield Problem(
                what=f"{name}={value!r} does not apply to a script, which takes its own arguments.",
                fix=f"args=[{words}], if the script has it." if name in OFTEN_ITS else "Leave it out.",
            )
