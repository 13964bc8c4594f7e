"""``nproc_per_node="auto"``: measure once which number of ranks trains a task fastest on this machine."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import logging
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rlnb.contracts.libraries import Library
from rlnb.display.status import status
from rlnb.errors import RlnbError, RunError
from rlnb.hooks import plugins
from rlnb.jobs.cancellation import cancel
from rlnb.jobs.jobs import raise_unless_completed
from rlnb.launch.local import LocalLauncher
from rlnb.machine.cores import available
from rlnb.machine.gpus import gpu_count
from rlnb.records.facts import RunFacts
from rlnb.settings import Root, options
from rlnb.spec import ENDED, Manifest, Resources
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.training.checks import check_ranks
from rlnb.training.create import create_run
from rlnb.training.inputs import InputFile
from rlnb.training.plan import Plan

logger = logging.getLogger(__name__)

MEASURE_S = 8.0
"""Seconds of training that one measurement covers, after the first iteration."""
LEAST_ITERATIONS = 4
"""Smallest number of iterations of one measurement."""
LONGEST_S = 300.0
"""Seconds that one measurement may take once the training runs."""
GAIN = 1.05
"""Factor by which more ranks must be faster than fewer ranks to be chosen. Less is within the noise."""
_POLL_S = 0.25
_NUMBER = "Use a number: nproc_per_node=1."
"""Fix for a measurement that fails."""


def with_fastest_ranks(plan: Plan) -> Plan:
    """Return a plan with the number of ranks that trains it fastest; see :func:`resources`."""
    assert plan.card is not None or not plugins.library(plan.manifest.library).simulator, "the plan was refused"
    num_envs = plan.manifest.task.num_envs or (plan.card.num_envs if plan.card else 1)
    fastest = resources(plan.manifest, num_envs, plan.inputs, trust=bool(plan.options.get("trust")))
    return dataclasses.replace(plan, manifest=dataclasses.replace(plan.manifest, resources=fastest))


def resources(
    manifest: Manifest, num_envs: int, inputs: Mapping[str, InputFile] | None = None, *, trust: bool = False
) -> Resources:
    """Return the resources that train a run fastest on this machine. The total number of envs does not change.

    With GPUs this is one rank on each GPU, or the largest smaller number of ranks that can share the envs equally. On a
    CPU, a short training measures each candidate, and a file below ``cards/`` keeps the results by machine and task.

    Args:
        manifest: A run that has been checked, with one rank.
        num_envs: Total number of envs of the run.
        inputs: Inputs of the library, by name.
        trust: Whether a checkpoint among them may hold more than weights.

    Raises:
        RlnbError: The library does not log frames per second.
        RunError: No candidate could train.
    """
    library = plugins.library(manifest.library)
    request = manifest.resources
    if not library.distributed or not library.simulator or request.device.startswith("cuda:"):
        return request
    if "fps" not in library.metrics:
        raise RlnbError(f'{library.name} logs no "fps", which "auto" measures. Use a number: nproc_per_node=2.')
    can_share = functools.partial(_can_share, manifest, library, num_envs)
    if request.device != "cpu" and (gpus := gpu_count()):
        return dataclasses.replace(request, nproc_per_node=max(filter(can_share, range(1, gpus + 1))))
    remembered = _path(options.folders, manifest)
    record = files.read_json(remembered) or {}
    rates = {name: float(rate) for name, rate in record.items() if isinstance(rate, int | float)}
    if not rates:
        shares = candidates(available().each(1), can_share)
        rates = _measure(manifest, shares, inputs, trust)
        files.make_folder(remembered.parent)
        files.write_once(remembered, rates)
    ranks, threads = choose(rates)
    logger.info("%s: %d ranks of %d threads; measured frames/s: %s", manifest.task.id, ranks, threads, rates)
    return dataclasses.replace(request, nproc_per_node=ranks, threads=threads)


def candidates(cores: int, can_share: Callable[[int], bool]) -> list[tuple[int, int]]:
    """Return the candidates (ranks, threads of each rank): powers of two up to all cores.

    Args:
        cores: Number of cores.
        can_share: Says whether a number of ranks can share the envs equally.
    """
    ranks = [2**power for power in range(cores.bit_length()) if can_share(2**power)]
    shares = [(count, cores // count) for count in ranks]
    return shares if cores == 1 else [*shares, (1, 1)]


def _can_share(manifest: Manifest, library: Library, num_envs: int, count: int) -> bool:
    """Return whether a number of ranks suits the library and its roles, and can share the envs equally."""
    task = dataclasses.replace(manifest.task, num_envs=num_envs)
    machine = dataclasses.replace(manifest.resources, nproc_per_node=count)
    return not any(check_ranks(dataclasses.replace(manifest, task=task, resources=machine), library, None))


def choose(rates: Mapping[str, float]) -> tuple[int, int]:
    """Return the fastest (ranks, threads). Among about equally fast candidates, the one with the fewest ranks wins.

    Args:
        rates: Frames per second by ``"<ranks>x<threads>"``.
    """
    best = max(rates.values())
    good = [name for name, rate in rates.items() if rate * GAIN >= best]
    fewest = min(good, key=lambda name: (int(name.split("x")[0]), -rates[name]))
    ranks, threads = fewest.split("x")
    return int(ranks), int(threads)


def _path(root: Root, manifest: Manifest) -> Path:
    parts = {
        "machine": [socket.gethostname(), available().each(1)],
        "task": dataclasses.replace(manifest.task, source=None),
        "library": [manifest.library, manifest.agent_name, manifest.agent],
        "device": [manifest.resources.device, manifest.deterministic],
        "python": manifest.python,
    }
    key = hashlib.sha256(json.dumps(to_json(parts), sort_keys=True).encode()).hexdigest()
    return root.cards / f"ranks-{key[:24]}.json"


def _measure(
    manifest: Manifest, shares: list[tuple[int, int]], inputs: Mapping[str, InputFile] | None, trust: bool
) -> dict[str, float]:
    rates: dict[str, float] = {}
    failures: list[RlnbError] = []
    seconds = len(shares) * 60
    with (
        status(f"Measuring which of {len(shares)} ways to share the cores trains fastest (about {seconds} s, once)"),
        tempfile.TemporaryDirectory(prefix="rlnb-ranks-") as folder,
    ):
        for ranks, threads in shares:
            machine = dataclasses.replace(manifest.resources, nproc_per_node=ranks, threads=threads)
            name = f"{ranks}x{threads}"
            # Without tags, since a plugin may report the runs with a certain tag.
            trial = dataclasses.replace(
                manifest, run_id=name, resources=machine, max_iterations=1_000_000, max_frames=None, tags=()
            )
            try:
                rates[name] = _rate(trial, Root(Path(folder)), inputs, trust)
            except RlnbError as exc:  # e.g. too little memory for so many ranks
                logger.warning("%d ranks of %d threads: %s", ranks, threads, exc)
                failures.append(exc)
    if not rates:
        raise failures[0]
    return rates


def _rate(manifest: Manifest, root: Root, inputs: Mapping[str, InputFile] | None, trust: bool) -> float:
    """Train for a short while, and return the frames per second of wall-clock time over all ranks."""
    run = create_run(root, manifest, LocalLauncher(), {"trust": trust}, inputs=inputs, warm=False)
    try:
        deadline: float | None = None
        while not _enough(run):
            if deadline is None and run.state == "running":
                deadline = time.monotonic() + LONGEST_S
            if deadline is not None and time.monotonic() > deadline:
                raise RunError(f"{LEAST_ITERATIONS} iterations take more than {LONGEST_S:.0f} s. {_NUMBER}")
            if run.state in ENDED:
                raise_unless_completed(run.record, run.record.training)
                raise RunError(f"{run.id} ended before it could be measured. {_NUMBER}")
            time.sleep(_POLL_S)
        started, fps = run.started, run.metrics["fps"]
        assert started is not None, "a run that logs fps has written started.json"
        times = fps.wall_time_s
        per_iteration = statistics.median(later - earlier for earlier, later in itertools.pairwise(times))
        return started.horizon * started.num_envs / per_iteration
    finally:
        cancel(run.record, save_s=0)
        while run.state not in ENDED:
            time.sleep(_POLL_S)


def _enough(run: RunFacts) -> bool:
    times = run.metrics["fps"].wall_time_s if "fps" in run.metrics else []
    return len(times) > LEAST_ITERATIONS and times[-1] - times[0] > MEASURE_S
