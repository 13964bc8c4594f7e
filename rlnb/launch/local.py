"""The launcher for this machine: a detached node agent per job, so a run outlives its kernel."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence

from rlnb.errors import Problem, RlnbError
from rlnb.hooks import plugins
from rlnb.launch.detached import DetachedLauncher
from rlnb.machine import cuda, gpus
from rlnb.machine.gpus import gpu_count
from rlnb.spec import Json, Manifest


class LocalLauncher(DetachedLauncher):
    """Runs jobs on this machine, at most ``max_running`` at a time; other jobs wait in a queue.

    Args:
        max_running: Most trainings at a time; None is one per GPU, or one on a machine without a GPU.
        walltime_s: Seconds after which a run is stopped; None sets no limit.

    Raises:
        RlnbError: ``max_running`` is not a positive whole number, or ``walltime_s`` is not a positive number.
    """

    name, nodes, nproc_per_node, log = "local", 1, None, "node0.log"
    module = "rlnb.node"  # a job on one node needs no other host than its agent

    def __init__(self, *, max_running: int | None = None, walltime_s: float | None = None) -> None:
        if problems := [*_check_numbers(max_running, walltime_s)]:
            raise RlnbError(" ".join(problems))
        self.max_running = max_running or max(1, gpu_count())
        self.walltime_s = walltime_s
        self.settings: Mapping[str, Json] = {"max_running": self.max_running, "walltime_s": walltime_s}
        """Arguments that recreate this launcher."""

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return a problem for each part of the run that this machine does not have."""
        problems = []
        if manifest.resources.nodes != 1:
            problems.append(
                Problem(
                    what=f"nodes={manifest.resources.nodes}, but the local launcher has one node.",
                    fix="Use a cluster launcher, or nproc_per_node for several ranks on this machine.",
                )
            )
        return [*problems, *_check_gpus(manifest)]

    def __repr__(self) -> str:
        return f"LocalLauncher(max_running={self.max_running})"


def _check_numbers(max_running: int | None, walltime_s: float | None) -> Iterator[str]:
    number = isinstance(max_running, int) and not isinstance(max_running, bool)
    if max_running is not None and not (number and max_running > 0):
        yield f"max_running={max_running!r} is not a positive whole number. Use max_running=1."
    number = isinstance(walltime_s, int | float) and not isinstance(walltime_s, bool)
    if walltime_s is not None and not (number and 0 < walltime_s < math.inf):
        yield f"walltime_s={walltime_s!r} is not a positive number. Use walltime_s=3600, or None for no limit."


def _check_gpus(manifest: Manifest) -> Iterator[Problem]:
    count, device, ranks = gpu_count(), manifest.resources.device, manifest.resources.nproc_per_node
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cuda") or (kind == "auto" and not count) or not isinstance(ranks, int):
        return
    with contextlib.suppress(RlnbError):  # a number of ranks that does not fit the roles is a problem of its own
        ranks = plugins.gpu_ranks(manifest)
    stock = f"this machine has {count or 'no'} NVIDIA GPU{'s' if count > 1 else ''}"
    if not count or (number.isdigit() and int(number) >= count):
        what = f"device={device!r}, but {stock}{_driver_error()}."
        yield Problem(what=what, fix=f'device="{"cuda" if count else "cpu"}"')
    elif ranks > 1 and number:
        yield Problem(what=f"{ranks} ranks cannot share {device}.", fix='device="cuda" gives each rank its own.')
    elif ranks > count:
        yield Problem(
            what=f"{ranks} ranks need a GPU each, but {stock}.", fix=f'nproc_per_node={count}, or device="cpu"'
        )


def _driver_error() -> str:
    """Return why CUDA offers no GPU although the machine has a driver, in brackets."""
    error = gpus.answer().error if any(os.path.exists(path) for path in cuda.FILES) else ""
    return f" that CUDA can use ({error})" if error else ""
