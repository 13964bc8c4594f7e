"""The checks of a queue launcher's settings, which find all problems before a job is submitted."""

from __future__ import annotations

import importlib.util
import math
import re
import shlex
import shutil
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlnb import Manifest, Problem
from rlnb_dask.containers import RUNTIMES, mount_problems
from rlnb_dask.queues.reserved import objection

if TYPE_CHECKING:
    from rlnb_dask.queues.launcher import QueueLauncher

LINES = ("partition", "account", "interface", "host_interface", "python", "container")
NAMES = ("partition", "account", "interface", "host_interface")
IN_GPU_REQUEST = re.compile("gpu|gres", re.IGNORECASE)
"""Text of a directive that requests GPUs, whose number rlnb does not read."""
KEEP_S = 1.0
"""Seconds for which the queue's answer to the check of a job counts for equal jobs."""
NO_NAME = re.compile(r"[\s;&|$`\"'\\<>()]")

_answers: dict[str, tuple[float, Problem | None]] = {}
"""The latest answer of the queue with its time, in seconds of the monotonic clock, by launcher and job script."""


def setting_problems(launcher: QueueLauncher) -> Iterator[Problem]:
    """Yield a problem for each setting that is missing or malformed."""
    yield from _numbers(launcher)
    yield from _walltime(launcher)
    yield from _lines(launcher)
    if launcher.container_runtime not in RUNTIMES:
        yield Problem(what=f"container_runtime={launcher.container_runtime!r} is not one of {', '.join(RUNTIMES)}.")
    elif launcher.container and launcher.container_runtime == "pyxis" and launcher.name != "slurm":
        what = f"Pyxis is a plugin of Slurm, and {launcher.title} does not have it."
        yield Problem(what=what, fix='Use container_runtime="apptainer".')
    if launcher.dashboard and importlib.util.find_spec("bokeh") is None:
        yield Problem(what="Dask's dashboard needs bokeh, which is not installed.", fix="pip install bokeh")
    for name in NAMES:
        value = getattr(launcher, name)
        if isinstance(value, str) and NO_NAME.search(value):
            yield Problem(what=f"{name}={value!r} contains characters that are not allowed in it.")


def training_problems(launcher: QueueLauncher, manifest: Manifest) -> Iterator[Problem]:
    """Yield a problem for each folder and each size of a node that a training needs and the job would not have."""
    if launcher.container:
        yield from mount_problems(launcher.container_runtime, manifest)
    if any(_numbers(launcher)):
        return
    yield from launcher.size_problems()
    ranks, device = manifest.resources.nproc_per_node, manifest.resources.device
    kind, _, number = device.partition(":")
    if kind == "cpu" or not isinstance(ranks, int) or IN_GPU_REQUEST.search(launcher.free_text()):
        return
    ranks = launcher.gpu_ranks(manifest)
    if ranks < 1:
        return
    gpus, call = launcher.gpus_per_node, f"rlnb.{launcher.name}(gpus_per_node={ranks})"
    if kind == "cuda" and not gpus:
        what = f"device={device!r}, but gpus_per_node=0, so the job has no GPU."
        yield Problem(what=what, fix=f'Use {call}, or device="cpu".')
    elif number.isdigit() and int(number) >= gpus:
        yield Problem(what=f"device={device!r}, but gpus_per_node={gpus}.", fix='Use device="cuda".')
    elif number and ranks > 1:
        yield Problem(what=f"{ranks} ranks cannot share {device}.", fix='Use device="cuda", with a GPU for each rank.')
    elif gpus and ranks > gpus:
        what = f"{ranks} ranks need a GPU each, but gpus_per_node={gpus}."
        yield Problem(what=what, fix=f"Use nproc_per_node={gpus}, or {call}.")


def queue_problems(launcher: QueueLauncher) -> Iterator[Problem]:
    """Yield the reason why this machine's queue would not accept a job."""
    command = shlex.split(launcher.job_class().submit_command)[0]
    if shutil.which(command) is None:
        yield Problem(
            what=f"There is no {command} on this machine, so no job can be submitted from it.",
            fix="Run the notebook on a login node of the cluster.",
        )
    elif problem := _refusal(launcher):
        yield problem


def _refusal(launcher: QueueLauncher) -> Problem | None:
    """Return the queue's objection to a job, with one question for all trials of a sweep."""
    key = f"{launcher!r}\n{launcher.job_script()}"  # the site's file has settings too
    answer_s, problem = _answers.get(key, (-math.inf, None))
    if time.monotonic() - answer_s > KEEP_S:
        problem = launcher.refusal()
        _answers.clear()
        _answers[key] = (time.monotonic(), problem)
    return problem


def _numbers(launcher: QueueLauncher) -> Iterator[Problem]:
    for name in ("nodes", "cpus_per_node", "memory_gib_per_node"):
        value = getattr(launcher, name)
        if value is not None and not _is_positive(value):
            yield Problem(what=f"{name}={value!r} is not a number above 0.", fix=f"Use {name}=1.")
    if launcher.nodes is None or (_is_positive(launcher.nodes) and launcher.nodes != int(launcher.nodes)):
        yield Problem(what=f"nodes={launcher.nodes!r} is not a whole number.", fix="Use nodes=1.")
    for name in ("hang_after_s", "patience_s"):
        value = getattr(launcher, name)
        if value is not None and not _is_positive(value):
            what = f"{name}={value!r} is not a number of seconds above 0."
            yield Problem(what=what, fix=f"Use {name}=900, or None to wait forever.")
    for name in ("gpus_per_node", "max_restarts", "grace_s"):
        value = getattr(launcher, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            yield Problem(what=f"{name}={value!r} is not a whole number of 0 or more.", fix=f"Use {name}=0.")


def _is_positive(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value > 0  # type: ignore[arg-type, operator]


def _walltime(launcher: QueueLauncher) -> Iterator[Problem]:
    walltime, seconds = launcher.walltime, launcher.duration_s
    if walltime is None and launcher.needs_walltime:
        yield Problem(
            what=f"rlnb.{launcher.name}() needs a walltime, and there is no good default.",
            fix='Use walltime="08:00:00". A longer training resumes by itself in a new job.',
        )
    elif walltime is not None and seconds is None:
        yield Problem(what=f"walltime={walltime!r} is not a duration.", fix='Use walltime="2-08:00:00".')
    elif seconds is not None and isinstance(launcher.grace_s, int) and seconds <= launcher.grace_s:
        yield Problem(
            what=f"walltime={walltime!r} leaves no time to train: stopping needs the last {launcher.grace_s} s.",
            fix='Use walltime="00:30:00".',
        )


def _lines(launcher: QueueLauncher) -> Iterator[Problem]:
    values = {name: getattr(launcher, name) for name in LINES}
    values |= {f"directives[{number}]": value for number, value in enumerate(launcher.directives)}
    for name, value in values.items():
        if value is not None and (not isinstance(value, str) or not value or not value.isprintable()):
            yield Problem(what=f"{name}={value!r} is not a single line of text for the job script.")
        elif name.startswith("directives") and (why := objection(launcher.name, value or "")):
            yield Problem(what=f"{name}={value!r} cannot be used.", fix=why)
    for number, line in enumerate(launcher.prologue):
        if not isinstance(line, str) or "\0" in line:
            yield Problem(what=f"prologue[{number}]={line!r} is not text for the job script.")
